"""A grade: what a submission earned, task by task, and how it was found. `result.json` is this, encoded.

It knows no tests and no formats. Points have two decimals at most."""

import math
from collections import Counter
from datetime import datetime
from pathlib import Path

import msgspec

from course.curriculum import points_text
from course.errors import CourseError

FORMAT = 1
RESULT = "result.json"


class Protection(msgspec.Struct, frozen=True):
    """One thing that learner code cannot do, or can (`on` is false), and how that is seen to."""

    name: str
    on: bool
    detail: str = ""


class CaseGrade(msgspec.Struct, frozen=True):
    """One case: `state` is "passed", "failed", "skipped", "todo", "blocked" (`by` a task) or "not run"."""

    name: str
    property: str
    state: str
    by: str = ""
    text: str = ""
    mistakes: tuple[str, ...] = ()


class HiddenGrade(msgspec.Struct, frozen=True):
    """The same properties with secret seeds, as a share of a task's points; `failed` are properties, never inputs.

    `state`: "done", "failing", "not run" (also where the public cases do not pass).
    """

    points: float
    max_points: float
    state: str
    passed: int
    total: int
    failed: tuple[str, ...] = ()


class TaskGrade(msgspec.Struct, frozen=True):
    """One task: `points` of `max_points` include the hidden part.

    `state`: "done", "failing", "to do", "blocked by ...", "skipped", "not run" or "no graded checks".
    """

    week: int
    day: int
    task: int
    title: str
    points: float
    max_points: float
    state: str
    passed: int
    total: int
    visibility: str
    hidden_visibility: str
    hidden: HiddenGrade | None = None
    cases: tuple[CaseGrade, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.week}.{self.day}.{self.task}"

    @property
    def label(self) -> str:
        return f"Week {self.week} Day {self.day} Task {self.task}"

    @property
    def public_points(self) -> float:
        return rounded(self.points - (self.hidden.points if self.hidden else 0.0))

    @property
    def public_max_points(self) -> float:
        return rounded(self.max_points - (self.hidden.max_points if self.hidden else 0.0))

    @property
    def mistakes(self) -> Counter[str]:
        """The likely mistakes that its cases name, and how often."""
        return Counter(mistake for case in self.cases for mistake in case.mistakes)


class LeaderboardEntry(msgspec.Struct, frozen=True):
    """One measured number; `order` "asc" means that less is better."""

    name: str
    value: float
    order: str
    unit: str = ""
    hardware: str = ""


class Grade(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `complete`: everything asked for was run to its end; else `problem` says what was not, and why.

    `ignored` are the learner's own files, which the course does not know: code that uses them fails.
    """

    format: int = FORMAT
    title: str
    student: str
    submission: str
    revision: str = ""  # of the submission, where it is a git checkout
    course: str
    started: datetime
    seconds: float
    mode: str = ""
    protections: tuple[Protection, ...] = ()
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    problem: str = ""
    complete: bool
    tasks: tuple[TaskGrade, ...]
    leaderboard: tuple[LeaderboardEntry, ...] = ()

    @property
    def points(self) -> float:
        return total(task.points for task in self.tasks)

    @property
    def max_points(self) -> float:
        return total(task.max_points for task in self.tasks)


def rounded(points: float) -> float:
    """Points as they are told: two decimals."""
    return round(points, 2) + 0.0  # never -0.0


def total(points: object) -> float:
    """A sum of points, exact to two decimals."""
    return rounded(math.fsum(points))


def told(points: float) -> str:
    """Points in a text: "7.5", "10"."""
    return points_text(points)


def encode(grade: Grade) -> bytes:
    """The bytes of `result.json`; sums are told too, for readers without this module."""
    plain = msgspec.to_builtins(grade) | {"points": grade.points, "max_points": grade.max_points}
    return msgspec.json.format(msgspec.json.encode(plain), indent=1) + b"\n"


def read(path: Path) -> Grade:
    """The grade in a `result.json`, or in a folder that holds one. Raises CourseError naming the file and the fix."""
    file = path / RESULT if path.is_dir() else path
    try:
        grade = msgspec.json.decode(file.read_bytes(), type=Grade)
    except OSError as error:
        raise CourseError(f"{file} cannot be read ({error.strerror}): name a folder that `grade` has written") from None
    except msgspec.DecodeError as error:
        raise CourseError(f"{file} is not a result of `grade` ({error}): grade the submission again") from None
    if grade.format != FORMAT:
        raise CourseError(f"{file} has format {grade.format}, this course reads {FORMAT}: grade the submission again")
    return grade
