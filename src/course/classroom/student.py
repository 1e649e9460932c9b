"""The students of a class, from a roster. Knows the columns that usual exports have; not what anyone handed in."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course.classroom.sheet import Row, column, read_sheet
from course.errors import CourseError
from course.grading.text import clean

_COLUMNS = {
    "id": ("id", "student id", "sid", "sis user id", "id number", "matriculation number", "identifier", "user id"),
    "name": ("name", "full name", "student", "student name"),
    "email": ("email", "email address", "e mail", "mail"),
    "folder": ("folder", "entry", "submission"),
    "github": ("github", "github username", "github user", "github login"),
    "group": ("group", "team", "group name"),
    "deadline": ("deadline", "extension"),
    "free_days": ("free days",),
}
_FIRST, _LAST = ("first name", "given name"), ("last name", "surname", "family name")


@dataclass(frozen=True)
class Student:
    """One row. `id` is never empty; `deadline` (own, as written) and `free_days` replace those of the class."""

    id: str
    name: str
    email: str = ""
    folder: str = ""
    github: str = ""
    group: str = ""
    deadline: str = ""
    free_days: int | None = None


def read_roster(path: Path) -> list[Student]:
    """The students in the order of the file. Raises CourseError for one without ids or names, or with an id twice."""
    rows = read_sheet(path)
    _check_columns(path, rows[0])
    students = [student for number, row in enumerate(rows, 2) if (student := _student(path, number, row))]
    counts = Counter(student.id.casefold() for student in students)
    if twice := [student.id for student in students if counts[student.id.casefold()] > 1]:
        raise CourseError(f"{path} has the id {twice[0]} twice: every student needs an id of their own")
    return students


def _check_columns(path: Path, row: Row) -> None:
    wanted = {"id": _COLUMNS["id"], "name": (*_COLUMNS["name"], *_FIRST, *_LAST)}
    if missing := [name for name, names in wanted.items() if not row.keys() & set(names)]:
        has = ", ".join(filter(None, row)) or "without a name"
        columns = f"column{'s' if len(missing) > 1 else ''} {' and '.join(missing)}"
        raise CourseError(f"{path} lacks the {columns} (it has {has}): write them into its first line")


def _student(path: Path, number: int, row: Row) -> Student | None:
    cells = {name: _cell(row, names) for name, names in _COLUMNS.items()}
    name = cells["name"] or " ".join(filter(None, (_cell(row, _FIRST), _cell(row, _LAST))))
    if name.casefold() == "points possible":  # the second line of a gradebook of Canvas
        return None
    if broken := next((cell for cell in (cells["id"], name) if "\n" in cell), None):
        start = broken.partition("\n")[0].strip()
        raise CourseError(f'{path} row {number} has a line break after "{start}": close the quote (") before it')
    identity = cells["id"] or cells["email"] or cells["github"] or name
    if not identity:
        raise CourseError(f"{path} row {number} has neither id nor name: fill in one of them")
    free = cells.pop("free_days")
    if free and not free.isdecimal():
        raise CourseError(f"{path} row {number}: free days {free!r} is not a number of days")
    return Student(**cells | {"id": identity, "name": name or identity}, free_days=int(free) if free else None)


def _cell(row: Row, names: Sequence[str]) -> str:
    """What a cell says, fit to be shown: people choose their names themselves."""
    return clean(unicodedata.normalize("NFC", column(row, names)), 200).strip()
