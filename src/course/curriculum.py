"""The registry as typed objects: weeks, their days and their tasks, read from `curriculum/weekN.toml`.

It knows what belongs to which task and where its chapter, tests and mutants are. It does not look into the packages
(the starter generator checks symbols) nor into the book (the book's lints check chapters).
"""

import re
import tomllib
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from course.curriculum_checks import check_day, check_order, check_symbols
from course.errors import CourseError
from course.paths import CURRICULUM, TESTS, is_extension

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(gt=0)]
Points = Count | Positive  # an instructor may share 100 points over the tasks of a week
Names = tuple[str, ...]


class TaskTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    """A `[[day.task]]` as written."""

    title: str
    points: Points
    hints: tuple[str, str, str]
    symbols: dict[str, Names]


class DayTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    """A `[[day]]` as written."""

    day: Count
    title: str
    chapter: str
    hours: Positive
    needs: Names = ()
    forbidden: Names = ()
    given: dict[str, Names] = {}
    tasks: tuple[TaskTable, ...] = msgspec.field(name="task")


class WeekTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, eq=False):
    """A `curriculum/weekN.toml` as written."""

    week: Count
    title: str
    forbidden: Names = ()
    days: tuple[DayTable, ...] = msgspec.field(name="day")


class Task(TaskTable, frozen=True, eq=False):
    """One task: what the learner writes (`symbols`: names by file of the package), its hints and points."""

    week: int
    day: int
    number: int
    chapter: str

    @property
    def label(self) -> str:
        return f"Week {self.week} Day {self.day} Task {self.number}"

    @property
    def anchor(self) -> str:
        return f"book/src/{self.chapter}#task-{self.number}"

    @property
    def options(self) -> str:
        """What selects it on a command line."""
        return f"--week {self.week} --day {self.day} --task {self.number}"

    def stub(self, symbol: str) -> str:
        """The text that an unwritten `symbol` of this task raises."""
        return f"{self.label}: {symbol} - see {self.anchor}"


class Day(DayTable, frozen=True, eq=False):
    """One day; `forbidden` holds the week's names too."""

    week: int
    tasks: tuple[Task, ...]

    @property
    def label(self) -> str:
        return f"Week {self.week} Day {self.day}"

    @property
    def tests(self) -> Path:
        return TESTS / f"week_{self.week}" / f"test_day_{self.day}.py"

    def lists(self, file: str) -> bool:
        """Whether the day has tasks or given code in a file."""
        return file in self.given or any(file in task.symbols for task in self.tasks)

    @property
    def mutants(self) -> Path:
        return TESTS / f"week_{self.week}" / "mutants" / f"day_{self.day}.py"

    @property
    def alternatives(self) -> tuple[Path, Path]:
        folder = TESTS / f"week_{self.week}" / "alternatives"
        return folder / f"day_{self.day}_a.py", folder / f"day_{self.day}_b.py"


class Week(WeekTable, frozen=True, eq=False):
    """One week with its days."""

    days: tuple[Day, ...]


class FileSymbols(NamedTuple):
    """What the registry says about one file of the package: the task of each task symbol, and the given symbols."""

    tasks: dict[str, Task]
    given: set[str]


class Curriculum(msgspec.Struct, frozen=True, eq=False, dict=True):
    """All weeks."""

    weeks: tuple[Week, ...]

    @cached_property
    def days(self) -> tuple[Day, ...]:
        return tuple(day for week in self.weeks for day in week.days)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(task for day in self.days for task in day.tasks)

    @cached_property
    def files(self) -> dict[str, FileSymbols]:
        """Every file that the registry names, as "model/basics.py"."""
        files: dict[str, FileSymbols] = {}
        for task in self.tasks:
            for file, names in task.symbols.items():
                files.setdefault(file, FileSymbols({}, set())).tasks.update(dict.fromkeys(names, task))
        for day in self.days:
            for file, names in day.given.items():
                files.setdefault(file, FileSymbols({}, set())).given.update(names)
        return files

    def forbidden_on(self, day: Day) -> dict[str, list[str]]:
        """The names forbidden on a day, each with the files that may use it all the same.

        Those belong to other days only, and none of these days forbids the name: the model of Week 1 goes on
        multiplying matrices on the day when a kernel for that is written.
        """
        listing = {file: [d for d in self.days if d.lists(file)] for file in self.files}
        other = {file: days for file, days in listing.items() if day not in days}
        return {
            name: [file for file, days in other.items() if not any(name in d.forbidden for d in days)]
            for name in day.forbidden
        }

    def built_for(self, day: Day) -> set[str]:
        """What must be built for a day and those it needs: "library" for tasks in C++, "emulator" for Metal."""
        files = {file for task in day.tasks for file in task.symbols if is_extension(file)}
        own = {"emulator" if file.endswith(".metal") else "library" for file in files}
        return own.union(*(self.built_for(self.day(*map(int, need.split(".")))) for need in day.needs))

    def week(self, number: int) -> Week:
        """Raises CourseError for a week that does not exist."""
        for week in self.weeks:
            if week.week == number:
                return week
        raise CourseError(f"week {number} does not exist: choose from {_choices(w.week for w in self.weeks)}")

    def day(self, week: int, number: int) -> Day:
        """Raises CourseError for a week or day that does not exist."""
        days = self.week(week).days
        for day in days:
            if day.day == number:
                return day
        raise CourseError(f"week {week} has no day {number}: choose from {_choices(d.day for d in days)}")

    def task(self, week: int, day: int, number: int) -> Task:
        """Raises CourseError for a week, day or task that does not exist."""
        tasks = self.day(week, day).tasks
        for task in tasks:
            if task.number == number:
                return task
        raise CourseError(
            f"week {week} day {day} has no task {number}: choose from {_choices(t.number for t in tasks)}"
        )


def points_text(points: float) -> str:
    """Points for a reader: "10", "7.25"; sums of hundredths are not exact."""
    return f"{round(points, 2):.2f}".rstrip("0").rstrip(".")


def load(folder: Path = CURRICULUM) -> Curriculum:
    """Read and check every `weekN.toml` of `folder`. Raises CourseError naming the file and the key."""
    found = {int(m[1]): p for p in folder.glob("week*.toml") if (m := re.fullmatch(r"week(\d+)", p.stem))}
    if not found:
        raise CourseError(f"{folder} holds no weekN.toml: run the command in a complete checkout of the course")
    tables = [(_name(found[n]), _read(found[n])) for n in sorted(found)]
    check_order(tables)
    for name, week in tables:
        for index, day in enumerate(week.days):
            check_day(name, index, week, day)
    check_symbols(tables)
    return Curriculum(tuple(_build_week(table) for _, table in tables))


def _read(path: Path) -> WeekTable:
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), WeekTable)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise CourseError(f"{_name(path)}: {error}") from None


def _build_week(week: WeekTable) -> Week:
    return Week(**_fields(week) | {"days": tuple(_build_day(week, day) for day in week.days)})


def _build_day(week: WeekTable, day: DayTable) -> Day:
    tasks = tuple(
        Task(**_fields(task), week=week.week, day=day.day, number=number, chapter=day.chapter)
        for number, task in enumerate(day.tasks, 1)
    )
    merged = {"tasks": tasks, "forbidden": tuple(dict.fromkeys(week.forbidden + day.forbidden))}
    return Day(**_fields(day) | merged, week=week.week)


def _fields(table: msgspec.Struct) -> dict[str, object]:
    return {name: getattr(table, name) for name in table.__struct_fields__}


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _choices(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
