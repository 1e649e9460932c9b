"""Where the code under test runs: in this process, in one of its own, or behind a process boundary."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from course.boundary.sandboxed import Sandboxed
from course.boundary.settings import Boundary
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


def make_observer(
    tests: Path, package: str, forbiddable: Sequence[str], isolate: bool, boundary: Boundary | None
) -> Observer:
    """An observer for the cases in `tests`; `forbiddable` are all names that some day forbids."""
    if boundary:
        return Sandboxed(tests, package, forbiddable, boundary)
    return Isolated(tests, package, forbiddable) if isolate else Local(package, forbiddable)
