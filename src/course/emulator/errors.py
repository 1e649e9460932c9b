"""The error of a kernel that cannot be translated, compiled or launched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course.errors import CourseError

_MOST = 5


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong at one place of a source."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class KernelError(CourseError):
    """A kernel's source or its launch is wrong: a line per problem with file, line and what to do, and the source's."""

    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, problems: Sequence[Problem], lines: Mapping[tuple[str, int], str] | None = None) -> "KernelError":
        """The error that tells the first few of `problems`, each once, with the text of its line where it is known."""
        told: dict[str, str] = {}
        for problem in problems:
            text = (lines or {}).get((problem.file, problem.line), "")
            told.setdefault(str(problem), f"{problem}\n    {text}" if text else str(problem))
        rest = [f"and {len(told) - _MOST} more"] if len(told) > _MOST else []
        error = cls("\n".join([*list(told.values())[:_MOST], *rest]))
        error.problems = tuple(problems)
        return error
