"""A class up to its grades: read who handed in what, and grade what changed since the last run."""

import fcntl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course.classroom.entry import find_entries, shown
from course.classroom.export import read_export
from course.classroom.fingerprint import archive_digest, code_version, digest
from course.classroom.handed import Times, read_times
from course.classroom.job import Work
from course.classroom.lines import Lateline
from course.classroom.plan import Plan, Submission, make_plan
from course.classroom.pool import grade_all
from course.classroom.progress import shown as shown_progress
from course.classroom.record import Outcome
from course.classroom.student import read_roster
from course.classroom.worth import score_again
from course.errors import CourseError
from course.grading.course_file import Course
from course.grading.intake import collect

if TYPE_CHECKING:
    from rich.console import Console

GRADER = (sys.executable, "-m", "course", "grade")


@dataclass(frozen=True)
class Asked:
    """What a run is asked for. `options` go to every grader; `depends` is what else a grade depends on.
    `scoring` is what its points depend on besides.

    `mode` is that of the process boundary.
    """

    folder: Path
    output: Path
    late: Lateline
    roster: Path | None = None
    times: Path | None = None
    jobs: int = 1
    limit: float = 3600.0
    again: bool = False
    options: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    scoring: str = ""
    mode: str = ""


@dataclass(frozen=True)
class Graded:
    """How each submission ended, and the learner's files that were taken from it; both by the submission's key."""

    outcomes: Mapping[str, Outcome]
    files: Mapping[str, Mapping[str, bytes]]


def plan_class(asked: Asked) -> Plan:
    """Who handed in what. Raises CourseError for what an instructor has to mend first."""
    roster = read_roster(asked.roster) if asked.roster else None
    entries, others = find_entries(asked.folder)
    export = read_export(asked.folder)
    listed = read_times(asked.times, asked.late.zone) if asked.times else {}
    exported = {name: handed.when for name, handed in export.items() if handed.when}
    plan = make_plan(entries, roster, export, Times(listed, exported))
    if others:
        plan.notes.append(f"no folder and no archive, so not graded: {', '.join(others)}")
    if asked.mode == "user" and _is_open(asked.folder):
        plan.notes.append(f"learner code can read other submissions here: chmod 700 {asked.folder}")
    for submission in plan.submissions:  # so that a wrong deadline in the roster shows before hours of grading
        for student in submission.students:
            asked.late.of(student)
    return plan


def _is_open(folder: Path) -> bool:
    """Whether every user of this machine can reach the files in it."""
    return all(place.stat().st_mode & 0o001 for place in (folder.resolve(), *folder.resolve().parents))


def grade_class(asked: Asked, plan: Plan, course: Course, console: "Console") -> Graded:
    """Grade what has no valid result in `output` yet. Raises Interrupted, with all finished results kept."""
    works, files = {}, {}
    for submission in plan.submissions:
        files[submission.key], state = _taken(submission, course)
        work = works[submission.key] = _work(asked, submission, files[submission.key], state)
        score_again(work, course)
    names = {s.key: ", ".join(student.name for student in s.students) for s in plan.submissions}
    with shown_progress(console, names) as progress:
        return Graded(grade_all(works, asked.jobs, asked.again, progress), files)


def _taken(submission: Submission, course: Course) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files of a submission, and what else of it shows in the result."""
    try:
        taken = collect(submission.entry.path, course.curriculum, course.extra_files)
        return taken.files, (*taken.notes, digest(taken.others, ()))
    except CourseError as error:
        return {}, (str(error), archive_digest(submission.entry.path))


def _work(asked: Asked, submission: Submission, files: Mapping[str, bytes], state: tuple[str, ...]) -> Work:
    student = submission.students[0].id if len(submission.students) == 1 else submission.entry.name
    return Work(
        command=(*GRADER, str(submission.entry.path.resolve()), f"--student={student}", *asked.options),
        folder=asked.output.resolve() / "students" / submission.key,
        fingerprint=digest(files, (*state, student, code_version(), *asked.options, *asked.depends)),
        limit=asked.limit,
        scoring=asked.scoring,
    )


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """No second run writes into the same folder meanwhile. Raises CourseError."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        (output / "students").mkdir(mode=0o700, exist_ok=True)  # grades are nobody else's business
        file = (output / ".lock").open("w")
    except OSError as error:
        raise CourseError(f"--output {output} cannot be written ({error.strerror}): name another folder") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CourseError(
                f"another run grades into {shown(str(output))} now: wait for it, or name another --output"
            ) from None
        yield
