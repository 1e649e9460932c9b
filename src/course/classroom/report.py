"""The result of a class as one value: a line for each student, sums for each task, and what went wrong most often.

`class.json` is this, encoded. It does not know how anything is shown or drawn."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import mean

import msgspec

from course.grading.grade import rounded
from course.grading.text import few


class TaskPoints(msgspec.Struct, frozen=True):
    """One student's task: state as in `Grade`."""

    points: float
    state: str
    mistakes: tuple[str, ...] = ()


class StudentLine(msgspec.Struct, frozen=True, kw_only=True):
    """One student. `points` as graded, `final` after late days; `ended`: "graded", "no submission", "unreadable",
    "incomplete", "time limit" or "failed" (the grader itself), explained by `problem`. `ignored` are files of
    the learner's own that the course does not know. Times are ISO 8601 with offset.
    """

    id: str
    name: str
    listed: bool = True
    submission: str = ""
    folder: str = ""
    submitted: str = ""
    time_from: str = ""
    deadline: str = ""
    days_late: int = 0
    days_charged: int = 0
    points: float = 0.0
    final: float = 0.0
    ended: str
    problem: str = ""
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    seconds: float = 0.0
    tasks: dict[str, TaskPoints] = {}

    @property
    def not_graded(self) -> str:
        """How many files of the learner's own the course does not grade; "" for none."""
        count = len(self.ignored)
        return f"{count} file{'s' if count > 1 else ''} not graded" if count else ""

    @property
    def remarks(self) -> str:
        """What an instructor should know of a submission that was graded."""
        return f"{self.not_graded}: {few(self.ignored)}" if self.ignored else ""


class SumLine(msgspec.Struct, frozen=True):
    """One task ("1.1.3") or day ("1.1") over all who handed in: mean points, and how many are in which state."""

    key: str
    title: str
    points: float
    mean: float
    done: int
    partly: int
    failing: int
    todo: int


class MistakeLine(msgspec.Struct, frozen=True):
    """A likely mistake, named by the tests, and how many students made it."""

    key: str
    title: str
    mistake: str
    students: int


class SimilarLine(msgspec.Struct, frozen=True):
    """Two submissions with more in common than chance gives; `share` of the smaller one's own code, and where."""

    first: str
    second: str
    share: float
    files: tuple[str, ...]


class ClassReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `handed_in` counts the students with a submission; mean and median are theirs, after late days."""

    format: int = 1
    title: str
    graded: str
    version: str
    max_points: float
    handed_in: int
    mean: float
    median: float
    students: tuple[StudentLine, ...]
    days: tuple[SumLine, ...]
    tasks: tuple[SumLine, ...]
    mistakes: tuple[MistakeLine, ...]
    similar: tuple[SimilarLine, ...] = ()
    notes: tuple[str, ...] = ()


class Assigned(msgspec.Struct, frozen=True):
    """A graded task as the course file has it; `day` is the title of its day."""

    key: str
    title: str
    points: float
    day: str = ""


def task_lines(tasks: Sequence[Assigned], students: Sequence[StudentLine]) -> tuple[SumLine, ...]:
    """Over the students with a submission."""
    return tuple(_sum_line(task.key, task.title, [task], students) for task in tasks)


def day_lines(tasks: Sequence[Assigned], students: Sequence[StudentLine]) -> tuple[SumLine, ...]:
    """The same for whole days: progress by day."""
    days: dict[str, list[Assigned]] = defaultdict(list)
    for task in tasks:
        days[task.key.rpartition(".")[0]].append(task)
    return tuple(_sum_line(key, own[0].day, own, students) for key, own in days.items())


def _sum_line(key: str, title: str, tasks: Sequence[Assigned], students: Sequence[StudentLine]) -> SumLine:
    points = rounded(sum(task.points for task in tasks))
    found = [
        [student.tasks[t.key] for t in tasks if t.key in student.tasks] for student in students if student.submission
    ]
    earned = [rounded(sum(task.points for task in own)) for own in found]
    kinds = Counter(_kind(sum_, points, own) for sum_, own in zip(earned, found, strict=True))
    counts = (kinds[kind] for kind in ("done", "partly", "failing", "to do"))
    return SumLine(key, title, points, rounded(mean(earned)) if earned else 0.0, *counts)


def _kind(earned: float, points: float, tasks: Sequence[TaskPoints]) -> str:
    """ "done" (all points), "partly" (some), "failing" (it was tried), "to do" (still a stub, or nothing was run)."""
    if earned >= points:
        return "done"
    if earned > 0:
        return "partly"
    return "failing" if any(task.state == "failing" for task in tasks) else "to do"


def mistake_lines(tasks: Sequence[Assigned], students: Sequence[StudentLine]) -> tuple[MistakeLine, ...]:
    """By task, the most common first. A student counts once for a mistake, however many cases named it."""
    who: dict[tuple[str, str], set[str]] = defaultdict(set)
    for student in students:
        for key, task in student.tasks.items():
            for mistake in task.mistakes:
                who[key, mistake].add(student.id)
    found = []
    for task in tasks:
        lines = [(mistake, len(ids)) for (key, mistake), ids in who.items() if key == task.key]
        lines.sort(key=lambda line: (-line[1], line[0]))
        found += [MistakeLine(task.key, task.title, mistake, count) for mistake, count in lines]
    return tuple(found)
