"""Where the code under test runs: in this process, or in one of its own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from course.case import Case
from course.guard import ForbiddenNames
from course.isolate import Isolated
from course.local import Local


class Observer(Protocol):
    """Runs `observe` of the cases of one test file."""

    def begin(self) -> None:
        """A case starts; its property may call `observe` many times."""

    def observe(self, case: Case, inputs: object, forbidden: ForbiddenNames) -> object:
        """Copies of what the code under test returned; raises `failure.Raised` or `failure.Stopped`."""

    def close(self) -> None:
        """Put away what was started."""


def make_observer(isolate: bool, tests: Path, package: str, forbiddable: Sequence[str]) -> Observer:
    """An observer for the cases in `tests`; `forbiddable` are all names that some day forbids."""
    return Isolated(tests, package, forbiddable) if isolate else Local(package, forbiddable)
