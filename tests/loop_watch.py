"""`pdm run watch` at a pseudo-terminal, for the tests that play the learner."""

import os
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from loop_checkout import Checkout
from terminal import Terminal

READY = "? help"
"""What ends each outcome: the line with the keys."""


class Watch(Terminal):
    """The program at its terminal; `expect` waits for the next outcome."""

    def __init__(self, checkout: Checkout, *arguments: str, terminal: str) -> None:
        before = os.getcwd()
        os.chdir(checkout.root)
        command = ["/usr/bin/env", f"TERM={terminal}", sys.executable, "-m", "course", "watch", *arguments]
        super().__init__(command, checkout.environment)
        os.chdir(before)

    def expect(self, *texts: str, seconds: float = 60.0) -> str:
        """What was shown up to the next time that keys are offered, which holds all of `texts`."""
        self.wait_for(READY, seconds)
        shown, _, self.output = self.output.partition(READY)
        for text in texts:
            assert text in shown, f"no {text!r} in {shown!r}"
        return shown

    def forget(self) -> None:
        self.output = ""

    def settings(self) -> list:
        """The terminal's, without what says how fast a line is."""
        return termios.tcgetattr(self.file)[:4]


@contextmanager
def watching(checkout: Checkout) -> Iterator[Callable[..., Watch]]:
    """A function that starts watch with arguments. What is left at the end is ended."""
    started: list[Watch] = []

    def start(*arguments: str, terminal: str = "dumb") -> Watch:
        started.append(Watch(checkout, *arguments, terminal=terminal))
        return started[-1]

    try:
        yield start
    finally:
        for program in started:
            program.close()


def gone(checkout: Checkout, seconds: float = 5.0) -> bool:
    """Whether nothing of a watch is left, at once or a moment later."""
    deadline = time.monotonic() + seconds
    while (left := checkout.processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left
