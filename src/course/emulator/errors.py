"""The error of a kernel that cannot be translated, compiled or launched."""

from dataclasses import dataclass

from course.errors import CourseError


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong at one place of a source."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class KernelError(CourseError):
    """A kernel's source or its launch is wrong: one line per problem, each with file, line and what to do."""

    @classmethod
    def of(cls, problems: list[Problem], most: int = 5) -> "KernelError":
        """The error that tells the first `most` of `problems`, each once."""
        lines = list(dict.fromkeys(str(problem) for problem in problems))
        rest = [f"and {len(lines) - most} more"] if len(lines) > most else []
        return cls("\n".join(lines[:most] + rest))
