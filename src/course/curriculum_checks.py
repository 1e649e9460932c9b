"""Rules of the registry that its types cannot say. Each is one `if` with a sentence that names file, key and fix."""

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.paths import is_extension

if TYPE_CHECKING:
    from course.curriculum import DayTable, TaskTable, WeekTable

SYMBOL = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def check_order(tables: "list[tuple[str, WeekTable]]") -> None:
    """Weeks and days count 1, 2, 3; `needs` names days that come earlier."""
    earlier: list[str] = []
    for number, (file, week) in enumerate(tables, 1):
        if week.week != number or not file.endswith(f"/week{number}.toml"):
            raise CourseError(f"{file}: $.week: weeks count 1, 2, 3 and match the file's name: got {week.week}")
        if not week.days:
            raise CourseError(f"{file}: $.day: a week needs at least one [[day]]")
        check_forbidden(f"{file}: $.forbidden", week.forbidden)
        for index, day in enumerate(week.days):
            key = f"{file}: $.day[{index}]"
            if day.day != index + 1:
                raise CourseError(f"{key}.day: days count 1, 2, 3: got {day.day}, expected {index + 1}")
            for need in day.needs:
                if need not in earlier:
                    known = ", ".join(earlier) or "none"
                    raise CourseError(f'{key}.needs: "{need}" is no earlier day ("week.day"): choose from {known}')
            earlier.append(f"{week.week}.{day.day}")


def check_day(file: str, index: int, week: "WeekTable", day: "DayTable") -> None:
    """The chapter's name, forbidden names and tasks of one day."""
    key = f"{file}: $.day[{index}]"
    prefix = f"week{week.week}-{day.day:02}-"
    if not re.fullmatch(prefix + r"[a-z0-9-]+\.md", day.chapter):
        raise CourseError(f'{key}.chapter: "{day.chapter}" must be called {prefix}topic.md (in book/src)')
    if not day.tasks:
        raise CourseError(f"{key}.task: a day needs at least one [[day.task]]")
    check_forbidden(f"{key}.forbidden", day.forbidden)
    if not day.title.strip():
        raise CourseError(f"{key}.title: is empty: give the day a title")
    for number, task in enumerate(day.tasks):
        check_task(f"{key}.task[{number}]", task)


def check_task(key: str, task: "TaskTable") -> None:
    """A title, three hints that say something, at least one symbol."""
    if not task.title.strip():
        raise CourseError(f"{key}.title: is empty: give the task a title")
    for level, hint in enumerate(task.hints):
        if not hint.strip():
            raise CourseError(f"{key}.hints[{level}]: is empty: write a nudge, an invariant and nearly the code")
    if not any(task.symbols.values()):
        raise CourseError(f"{key}.symbols: is empty: list what the learner writes, by file")


def check_forbidden(key: str, names: tuple[str, ...]) -> None:
    for name in names:
        if not SYMBOL.fullmatch(name):
            raise CourseError(f'{key}: "{name}" is no dotted name under mlx.core, like "fast.rms_norm"')


def check_symbols(tables: "list[tuple[str, WeekTable]]") -> None:
    """Files are relative; a symbol is listed once in the whole course, as task or as given."""
    seen: dict[tuple[str, str], str] = {}
    for toml, week in tables:
        for index, day in enumerate(week.days):
            groups = [(f"task[{number}].symbols", task.symbols) for number, task in enumerate(day.tasks)]
            for group, listed in [*groups, ("given", day.given)]:
                for file, names in listed.items():
                    key = f'{toml}: $.day[{index}].{group}."{file}"'
                    check_file(key, file)
                    for name in names:
                        check_symbol(key, name, seen.get((file, name)))
                        seen[file, name] = key


def check_file(key: str, file: str) -> None:
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or str(path) != file or path.stem == "__init__":
        raise CourseError(f'{key}: must be a path inside the package like "model/basics.py", and no __init__ file')
    suffixes = (".cpp", ".h", ".metal") if is_extension(file) else (".py",)
    if path.suffix not in suffixes:
        raise CourseError(f"{key}: a task's file ends in {' or '.join(suffixes)} here: got {path.name}")


def check_symbol(key: str, name: str, before: str | None) -> None:
    if not SYMBOL.fullmatch(name):
        raise CourseError(f'{key}: "{name}" is no symbol: write "function", "Class" or "Class.method"')
    if before:
        raise CourseError(f'{key}: "{name}" is listed already at {before}: keep one of the two')
