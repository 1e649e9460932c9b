"""Runs `observe` in this process: quick, and stops what Python can stop."""

from collections.abc import Sequence

from course.case import Case
from course.codec import pack, unpack
from course.failure import describe
from course.guard import ForbiddenNames
from course.limit import TimeLimit
from course.solution import Solution


class Local:
    """An observer: `observe(case, inputs, forbidden)` gives copies of what the code under test returned."""

    def __init__(self, package: str, forbiddable: Sequence[str]) -> None:
        self.solution = Solution(package, forbiddable)

    def begin(self) -> None:
        """Nothing to prepare."""

    def observe(self, case: Case, inputs: object, forbidden: ForbiddenNames) -> object:
        """Raises `Raised` or `Stopped` for whatever the code under test does instead of returning plain values."""
        copy = unpack(pack(inputs))
        try:
            with TimeLimit(case.timeout), self.solution.guard.forbid(forbidden, case.observe.__module__):
                answer = pack(case.observe(self.solution, copy))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise describe(error, self.solution.folder).exception() from None
        return unpack(answer)

    def close(self) -> None:
        """Nothing to put away."""
