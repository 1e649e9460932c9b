"""`course.toml`: what an instructor decides about a course. Absent, everything is graded with the curriculum's points.

It knows the file and the registry; it applies nothing. Keys and their limits are in `course.grading.rules`."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from course.curriculum import Curriculum, Day, Task
from course.errors import CourseError
from course.grading.grade import rounded
from course.grading.rules import VISIBILITIES, check
from course.grading.text import few
from course.paths import ROOT

NAME = "course.toml"
Table = TypeVar("Table", bound=msgspec.Struct)


class HiddenTable(msgspec.Struct, frozen=True, kw_only=True):
    """Hidden variants: so many secret seeds, worth a share of each task's points; where the secret is."""

    seeds: int = 2
    share: float = 0.3
    file: str = ""
    variable: str = ""
    show: str = "properties"


class LateTable(msgspec.Struct, frozen=True, kw_only=True):
    """What late submissions lose; `course.classroom.late` applies it."""

    deadline: datetime | None = None
    grace_minutes: int = 10
    free_days: int = 0
    percent_per_day: float = 10.0
    most_days: int = 7


class LimitsTable(msgspec.Struct, frozen=True, kw_only=True):
    """What a submission may use: seconds for one run of a day's tests and for all of them, and in the boundary."""

    day_seconds: int = 300
    total_seconds: int = 3600
    memory_mib: int = 4096
    processes: int = 512
    disk_mib: int = 512


@dataclass(frozen=True)
class Course:
    """A course file read: every question about points and visibility is answered here."""

    curriculum: Curriculum
    path: Path | None = None
    title: str = "tiny_llm"
    days: tuple[Day, ...] = ()
    points: Mapping[Task, float] = field(default_factory=dict)
    visibility: Mapping[str, str] = field(default_factory=dict)
    hidden: HiddenTable | None = None
    late: LateTable | None = None
    leaderboard: tuple[str, ...] = ()
    limits: LimitsTable = field(default_factory=LimitsTable)
    extra_files: tuple[str, ...] = ()

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The graded ones."""
        return tuple(task for day in self.days for task in day.tasks)

    @property
    def notes(self) -> tuple[str, ...]:
        """What an instructor may not have meant: points of days that are not graded."""
        days = [day.label for day in self.curriculum.days if day not in self.days and self.points.keys() & {*day.tasks}]
        return (f"[points] names days that are not graded: {few(days)}",) if days else ()

    def chosen(self, week: int | None, day: int | None) -> list[Day]:
        """The graded days of a week, or that one day of it; all of them without a week. Raises CourseError for none."""
        if week is None:
            return list(self.days)
        asked = [self.curriculum.day(week, day)] if day is not None else self.curriculum.week(week).days
        if days := [day for day in asked if day in self.days]:
            return days
        raise CourseError(f"{self.path} does not grade {asked[0].label}: change [graded], or ask for another week")

    def points_of(self, task: Task) -> float:
        """What the whole task is worth."""
        return self.points.get(task, float(task.points))

    def hidden_points_of(self, task: Task, hidden: HiddenTable) -> float:
        """How much of that its hidden part is worth."""
        return rounded(self.points_of(task) * hidden.share)

    def visibility_of(self, task: Task, hidden: bool = False) -> str:
        """The nearest of task, day, week and default; for a hidden part at least as closed as `hidden` says."""
        keys = (f"{task.week}.{task.day}.{task.number}", f"{task.week}.{task.day}", f"{task.week}", "default")
        public = next((self.visibility[key] for key in keys if key in self.visibility), VISIBILITIES[0])
        closed = self.visibility.get("hidden", "after_published")
        if self.hidden and self.hidden.show == "nothing":
            closed = VISIBILITIES[-1]
        return max(public, closed, key=VISIBILITIES.index) if hidden else public


def load_course(path: Path | None, curriculum: Curriculum) -> Course:
    """Read a course file; without a name the one in the root, or none. Raises CourseError in one line."""
    path = path or (ROOT / NAME if (ROOT / NAME).is_file() else None)
    if path is None:
        return Course(curriculum, days=curriculum.days)
    file = path.name
    tables = check(file, _parsed(path))
    top, graded = tables[""], tables["graded"]
    extra = tuple(top.get("extra_files", ()))
    _check_extra(file, extra, curriculum)
    if {"file", "variable"} <= tables["hidden"].keys():
        raise CourseError(f"{file}: [hidden] has both file and variable: keep the one that holds the secret")
    return Course(
        curriculum,
        path=path,
        title=top.get("title", Course.title),
        days=_days(file, graded, curriculum),
        points=_points(file, tables["points"], curriculum),
        visibility=_visibility(file, tables["visibility"], curriculum),
        hidden=_table(tables["hidden"], HiddenTable),
        late=_table(tables["late"], LateTable),
        leaderboard=tuple(tables["leaderboard"].get("names", ())),
        limits=msgspec.convert(tables["limits"], LimitsTable),
        extra_files=extra,
    )


def _parsed(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(f"{path} cannot be read ({error.strerror}): name a course file, or leave it out") from None
    except UnicodeDecodeError as error:
        raise CourseError(f"{path.name}: is not UTF-8 text at byte {error.start}: save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{path.name}: is no TOML: {error}") from None


def _table(values: dict[str, object], kind: type[Table]) -> Table | None:
    return msgspec.convert(values, kind) if values else None


def _days(file: str, graded: dict[str, object], curriculum: Curriculum) -> tuple[Day, ...]:
    if not graded:
        return curriculum.days
    chosen = [
        task for number in graded.get("weeks", ()) for task in _tasks(file, "graded.weeks", str(number), curriculum)
    ]
    chosen += [task for number in graded.get("days", ()) for task in _tasks(file, "graded.days", number, curriculum)]
    numbers = {(task.week, task.day) for task in chosen}
    return tuple(day for day in curriculum.days if (day.week, day.day) in numbers)


def _points(file: str, table: Mapping[str, float], curriculum: Curriculum) -> dict[Task, float]:
    """A task's own number, or its share of what its day or week is worth; a task has one of these at most."""
    points: dict[Task, float] = {}
    source: dict[Task, str] = {}
    for key, value in table.items():
        tasks = _tasks(file, "points", key, curriculum)
        if double := next((task for task in tasks if task in source), None):
            raise CourseError(
                f'{file}: points "{key}" and "{source[double]}" both set {double.label}: keep one of them'
            )
        source.update(dict.fromkeys(tasks, key))
        points.update(_shared(value, tasks))
    return points


def _shared(value: float, tasks: list[Task]) -> dict[Task, float]:
    """Points for tasks in the ratio of the curriculum, in hundredths that add up."""
    whole, left, shares = sum(task.points for task in tasks), rounded(value), {}
    for task in tasks:
        shares[task] = rounded(left * task.points / whole)
        left, whole = rounded(left - shares[task]), whole - task.points
    return shares


def _visibility(file: str, table: Mapping[str, str], curriculum: Curriculum) -> Mapping[str, str]:
    for key in table.keys() - {"default", "hidden"}:
        _tasks(file, "visibility", key, curriculum)
    return table


def _tasks(file: str, table: str, key: str, curriculum: Curriculum) -> list[Task]:
    """The tasks that "1.2.3", "1.2" or "1" means. Raises CourseError for a number that does not exist."""
    numbers = [int(part) for part in key.split(".")]
    look_up = {1: curriculum.week, 2: curriculum.day, 3: curriculum.task}[len(numbers)]
    try:
        found = look_up(*numbers)
    except CourseError as error:
        raise CourseError(f'{file}: "{key}" in [{table}]: {error}') from None
    if isinstance(found, Task):
        return [found]
    days: Iterable[Day] = [found] if isinstance(found, Day) else found.days
    return [task for day in days for task in day.tasks]


def _check_extra(file: str, names: Iterable[str], curriculum: Curriculum) -> None:
    for name in names:
        if name in curriculum.files:
            raise CourseError(f'{file}: "{name}" in extra_files is a file of the course already: leave it out')
