"""The verdict of a graded run, written where its own process cannot lose it.

An exit status proves nothing: the learner's code runs in the same process and may end it at any moment with any status
(`os._exit(0)`, a crash, a handler of `atexit`). So `supervise` runs pytest in a child that writes down which case is
running and, at the end of the session, the status and the number of cases. Only what is written counts: a run that
stopped half-way has none. That costs one more start of Python (about 0.1 s), and the child keeps the terminal: colours
and debuggers work as ever. Ctrl-C ends the child and what it has started at once, without a word of theirs. It is a
guard against accidents, not a sandbox.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from course.errors import CourseError
from course.signals import signal_name
from course.summary import Result

NOTHING_GRADED = 5  # pytest's own status for a run without tests
PATIENCE = 10.0
"""s: that a child has to end once its verdict is there. A thread that the learner's code left behind may never end."""


@dataclass(frozen=True)
class Verdict:
    """How far a run has come: the case that runs last, and in the end pytest's exit status and the cases graded."""

    running: str = ""
    status: int | None = None
    cases: int = 0

    def write(self, path: Path) -> None:
        """Note it down."""
        path.write_text(json.dumps(asdict(self)))


class Notes:
    """What a run writes down in a folder: how far it is, and in the end the results of its cases."""

    def __init__(self, folder: Path) -> None:
        self._verdict, self._results = folder / "verdict.json", folder / "results.json"

    @property
    def options(self) -> list[str]:
        """What tells pytest where to write."""
        return ["--verdict", str(self._verdict), "--results", str(self._results)]

    def verdict(self) -> Verdict | None:
        """How far the run has come; None before it began."""
        with suppress(FileNotFoundError, json.JSONDecodeError):  # it may be being written
            return Verdict(**json.loads(self._verdict.read_text()))
        return None

    def results(self) -> list[Result]:
        """The results; none of a session that did not end."""
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return [Result(**result) for result in json.loads(self._results.read_text())]
        return []


def supervise(pytest_arguments: Sequence[str], keep: Callable[[list[Result]], None] = lambda results: None) -> int:
    """Run pytest with this plugin in a child; 0 only if its session ended, graded something, and all of it passed.

    `keep` gets the results of a session that ended.
    """
    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as folder:
        notes = Notes(Path(folder))
        command = [sys.executable, "-m", "pytest", *notes.options, *pytest_arguments]
        ended = watch(command, lambda: (verdict := notes.verdict()) is not None and verdict.status is not None)
        verdict = notes.verdict()
        interrupted = ended == -signal.SIGINT and (verdict is None or verdict.status is None)
        if not interrupted:
            keep(notes.results())
    if interrupted:
        return stopped()
    if verdict is None:
        return ended or NOTHING_GRADED  # pytest never began: a wrong argument, which it names, or --version
    if verdict.status is None and ended == -signal.SIGTERM:
        return 128 - ended
    if verdict.status is None:
        raise CourseError(f"{no_verdict(ended, verdict)}; --isolate grades the other cases")
    return verdict.status or ended or (0 if verdict.cases else NOTHING_GRADED)


def stopped() -> int:
    """Say that Ctrl-C ended the run; returns the exit status. A terminal has shown a part of a line before."""
    lead = "\n" if sys.stderr.isatty() else ""
    print(f"{lead}stopped by Ctrl-C: nothing was noted down", file=sys.stderr)
    return 128 + signal.SIGINT


def watch(command: list[str], over: Callable[[], bool] = lambda: False) -> int:
    """Wait for a child; its return code, or -number of the first signal that came meanwhile.

    The child does not hear Ctrl-C: it is ended, from its first moment on. SIGTERM is passed on. A child that does not
    end although it is `over` is killed, and counts as ended.
    """
    came: list[int] = []
    with _terminal_kept(), _ignored(signal.SIGINT):
        process = subprocess.Popen(command)  # inherits that
        handlers = {
            signal.SIGINT: lambda number, frame: (came.append(number), _kill_tree(process)),
            signal.SIGTERM: lambda number, frame: (came.append(number), process.terminate()),
        }
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            with process:
                status = _wait(process, over)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return -came[0] if came else status


@contextmanager
def _ignored(number: int) -> Iterator[None]:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def _terminal_kept() -> Iterator[None]:
    """A debugger that is ended changes the terminal's settings and cannot put them back."""
    settings = None
    with suppress(termios.error, OSError, ValueError, AttributeError):
        settings = termios.tcgetattr(sys.stdin.fileno())
    try:
        yield
    finally:
        with suppress(termios.error, OSError, ValueError, AttributeError):
            if settings and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp():
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, settings)


def _kill_tree(process: subprocess.Popen) -> None:
    import psutil

    doomed: list[psutil.Process] = []
    with suppress(psutil.Error):
        doomed = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for child in doomed:
        with suppress(psutil.Error):
            child.kill()


def _wait(process: subprocess.Popen, over: Callable[[], bool]) -> int:
    deadline = None
    while deadline is None or time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(0.5)
        if deadline is None and over():
            deadline = time.monotonic() + PATIENCE
    process.kill()
    print("all was graded, but a thread of your code goes on for ever: the run was ended", file=sys.stderr)
    return 0


def no_verdict(ended: int, verdict: Verdict) -> str:
    """What to tell of a run whose process ended with the code `ended` before its session did."""
    return (
        f"your code ended the whole run ({_told(ended)}) in {verdict.running or 'the test files'}, so there is no "
        "verdict: look for os._exit, a crash, or a call that never returns"
    )


def _told(code: int) -> str:
    return f"exit status {code}" if code >= 0 else f"signal {signal_name(-code)}"
