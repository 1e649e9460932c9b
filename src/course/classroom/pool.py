"""Several submissions at once: those that wait, those that run, and an orderly end when someone presses Ctrl-C."""

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from course.classroom.job import Job, Work
from course.classroom.record import Outcome, kept

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PAUSE = 0.05
_PATIENCE = 5.0
"""s: for all running graders together, after Ctrl-C."""


class Progress(Protocol):
    """Who is told how it goes."""

    def started(self, key: str) -> None: ...

    def ended(self, key: str, outcome: Outcome) -> None: ...

    def tick(self, running: Mapping[str, Job]) -> None: ...


class Interrupted(Exception):
    """Someone ended the run early with this signal; all that was finished is kept."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def grade_all(works: Mapping[str, Work], jobs: int, again: bool, progress: Progress) -> dict[str, Outcome]:
    """Grade everything that has no valid outcome yet, `jobs` at a time. Raises Interrupted."""
    outcomes: dict[str, Outcome] = {}
    waiting: deque[str] = deque()
    for key, work in works.items():
        earlier = None if again else kept(work.folder, work.fingerprint, work.limit)
        if earlier:
            outcomes[key] = earlier
            progress.ended(key, earlier)
        else:
            waiting.append(key)
    running: dict[str, Job] = {}
    with _signals() as came:
        try:
            while waiting or running:
                if number := came():
                    raise Interrupted(number)
                while waiting and len(running) < jobs:
                    key = waiting.popleft()
                    running[key] = Job(works[key])
                    progress.started(key)
                _collect(running, outcomes, progress)
                progress.tick(running)
                time.sleep(_PAUSE)
        finally:
            _abandon(running)
    return outcomes


def _collect(running: dict[str, Job], outcomes: dict[str, Outcome], progress: Progress) -> None:
    for key, job in list(running.items()):
        if outcome := job.poll():
            del running[key]
            outcomes[key] = outcome
            progress.ended(key, outcome)


def _abandon(running: Mapping[str, Job]) -> None:
    for job in running.values():
        job.stop()
    deadline = time.monotonic() + _PATIENCE
    for job in running.values():
        job.abandon(max(0.0, deadline - time.monotonic()))


@contextmanager
def _signals() -> Iterator[Callable[[], int]]:
    """While this runs, those signals are only noted; the function tells the first one's number, or 0."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield lambda: came[0] if came else 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
