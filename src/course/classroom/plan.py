"""Who handed in what: every entry of the folder with its students, its time and the folder of its results."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from course.classroom.entry import Entry
from course.classroom.export import Handed
from course.classroom.handed import Moment, Times
from course.classroom.match import Ambiguous, owners
from course.classroom.student import Student

_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LONGEST = 50  # characters, of four bytes at most: file systems allow 255 bytes


@dataclass(frozen=True)
class Submission:
    """`key` names the folder of its results; `listed`: its students stand in the roster, or there is none."""

    key: str
    entry: Entry
    students: tuple[Student, ...]
    moment: Moment | None
    listed: bool = True


@dataclass
class Plan:
    """What to grade; `absent` students handed nothing in; `notes` say what an instructor should know of it."""

    submissions: list[Submission] = field(default_factory=list)
    absent: list[Student] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def make_plan(
    entries: Sequence[Entry], roster: Sequence[Student] | None, export: Mapping[str, Handed], times: Times
) -> Plan:
    """Match entries and students. Of several entries of one student the latest counts, and the others are named."""
    plan = Plan()
    found = [_find(entry, roster, export, times, plan.notes) for entry in entries]
    plan.submissions = _latest(found, plan.notes)
    there = {student.id for submission in plan.submissions for student in submission.students}
    plan.absent = [student for student in roster or () if student.id not in there]
    if roster and (strangers := [s.entry.name for s in plan.submissions if not s.listed]):
        plan.notes.append(
            f"not in the roster: {', '.join(strangers)}: give the student a column folder with this name in it"
        )
    plan.notes += _lost(entries, roster or ())
    return plan


def _lost(entries: Sequence[Entry], roster: Iterable[Student]) -> Iterator[str]:
    """Folders of the roster that are not there: a typing error would be a zero."""
    there = {name.casefold() for entry in entries for name in (entry.name, entry.path.name)}
    for student in roster:
        if student.folder and student.folder.casefold() not in there:
            yield f"the roster's folder {student.folder} of {student.name} is not among the submissions"


def _find(
    entry: Entry, roster: Sequence[Student] | None, export: Mapping[str, Handed], times: Times, notes: list[str]
) -> Submission:
    handed = export[entry.name].students if entry.name in export else ()
    students: Sequence[Student] = ()
    if roster is not None:
        try:
            students = owners(entry, roster, handed)
        except Ambiguous as several:
            notes.append(f"{entry.name} may be of {several}: say which in a column folder of the roster")
    listed = roster is None or bool(students)
    students = students or handed or [_unknown(entry)]
    key = folder_name(students[0].id if len(students) == 1 else entry.name)
    return Submission(key, entry, tuple(students), times.of(entry, students), listed)


def _unknown(entry: Entry) -> Student:
    """A student made of an entry's name."""
    name, number = entry.exported or (entry.name, entry.name)
    return Student(number, name)


def _latest(found: Iterable[Submission], notes: list[str]) -> list[Submission]:
    """One submission for each student; an equal time is decided by the name."""
    order = sorted(found, key=lambda s: (s.moment.when if s.moment else _EARLIEST, s.entry.name), reverse=True)
    taken: dict[str, Submission] = {}
    kept = []
    for submission in order:
        if earlier := [taken[s.id] for s in submission.students if s.id in taken]:
            who = ", ".join(s.name for s in submission.students)
            notes.append(f"{who} handed in twice: {earlier[0].entry.name} counts, {submission.entry.name} came before")
        students = tuple(student for student in submission.students if student.id not in taken)
        if students:
            taken.update({student.id: submission for student in students})
            kept.append(replace(submission, students=students))
    return _distinct(sorted(kept, key=lambda submission: (submission.key.casefold(), submission.entry.name)))


def _distinct(submissions: Sequence[Submission]) -> list[Submission]:
    """Keys that no file system takes for one another."""
    counts = Counter(submission.key.casefold() for submission in submissions)
    return [s if counts[s.key.casefold()] == 1 else replace(s, key=_marked(s.key, s.entry.name)) for s in submissions]


def folder_name(name: str) -> str:
    """A name for a folder that no system objects to; equal names give equal folders, different ones different."""
    plain = re.sub(r"[^\w.@+ -]", "_", name).strip(". ")[:_LONGEST]
    return plain if plain and plain == name else _marked(plain or "student", name)


def _marked(plain: str, name: str) -> str:
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
