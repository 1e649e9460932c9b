"""When was it handed in: from a list of times, a git commit, the export, or the files themselves, in this order."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

from course.classroom.clock import moment
from course.classroom.commit import commit_time
from course.classroom.entry import Entry
from course.classroom.sheet import column, read_sheet
from course.classroom.student import Student
from course.errors import CourseError

_WHO = ("id", "student id", "sid", "email", "github", "github username", "folder", "entry", "submission", "name")
_WHEN = ("time", "submitted", "submission time", "submitted at", "date", "created at")
_MOST_FILES = 20_000


@dataclass(frozen=True)
class Moment:
    """`source` says in words where the time comes from."""

    when: datetime
    source: str


class Times:
    """The times of a class; `listed` comes from `--times`, by any name of a student or an entry in small letters."""

    def __init__(self, listed: Mapping[str, datetime], exported: Mapping[str, datetime]) -> None:
        self._listed = listed
        self._exported = exported

    def of(self, entry: Entry, students: Sequence[Student]) -> Moment | None:
        """None where nothing tells it."""
        names = [entry.name, entry.path.name]
        for student in students:
            names += [student.id, student.email, student.github, student.group, student.folder, student.name]
        for name in map(_key, filter(None, names)):
            if name in self._listed:
                return Moment(self._listed[name], "the list of times")
        if when := self._exported.get(entry.name):
            return Moment(when, "Gradescope")
        if when := commit_time(entry.path):
            return Moment(when, "git commit")
        when = _newest(entry.path)
        return Moment(when, "time of the files") if when else None


def read_times(path: Path, zone: ZoneInfo | None) -> dict[str, datetime]:
    """A CSV of who (id, email, github, folder or name) and time. Raises CourseError naming the row."""
    times: dict[str, datetime] = {}
    for number, row in enumerate(read_sheet(path), 2):
        text = column(row, _WHEN)
        names = [row[name] for name in _WHO if row.get(name)]
        if not names or not any(name in row for name in _WHEN):
            raise CourseError(f"{path} row {number}: it needs the columns id (or email, github, folder) and time")
        if text:
            times.update(dict.fromkeys(map(_key, names), moment(text, zone, f"{path} row {number}: time")))
    return times


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _newest(path: Path) -> datetime | None:
    """The newest file of a folder, or an archive's own time."""
    inside = islice(path.rglob("*"), _MOST_FILES) if path.is_dir() else [path]
    try:
        times = [file.stat().st_mtime for file in inside if file.is_file() and not file.is_symlink()]
        return datetime.fromtimestamp(max(times), UTC) if times else None
    except (OSError, ValueError, OverflowError):
        return None
