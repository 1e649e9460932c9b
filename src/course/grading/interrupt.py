"""Signals that end grading early: the first one lets it write down what it has, a second one ends it at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from course.grading.runner import Stop

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stopping(stop: Stop) -> Iterator[list[int]]:
    """While in the body, these signals set `stop`; the list holds the numbers of those that came."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)
        stop.reason = f"grading was stopped by {signal.Signals(number).name}"
        stop.set()

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
