"""A class from beginning to end: read who handed in what, grade what changed, add up, write everything down."""

import fcntl
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from course.classroom.clock import told as told_time
from course.classroom.entry import find_entries, shown
from course.classroom.export import read_export
from course.classroom.files import write_files
from course.classroom.fingerprint import archive_digest, code_version, digest
from course.classroom.handed import Times, read_times
from course.classroom.job import Work
from course.classroom.lines import Lateline, student_lines
from course.classroom.plan import Plan, Submission, make_plan
from course.classroom.pool import grade_all
from course.classroom.progress import shown as shown_progress
from course.classroom.record import Outcome
from course.classroom.report import Assigned, ClassReport, StudentLine, day_lines, mistake_lines, task_lines
from course.classroom.student import read_roster
from course.curriculum import Task
from course.errors import CourseError
from course.grading.course_file import Course
from course.grading.intake import collect
from course.grading.version import course_version

if TYPE_CHECKING:
    from rich.console import Console

GRADER = (sys.executable, "-m", "course", "grade")


@dataclass(frozen=True)
class Asked:
    """What a run is asked for. `options` go to every grader; `depends` is what else a grade depends on."""

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


def plan_class(asked: Asked) -> Plan:
    """Who handed in what. Raises CourseError for what an instructor has to mend first."""
    if asked.output.resolve().is_relative_to(asked.folder.resolve()):
        raise CourseError(
            f"--output {asked.output} lies among the submissions: name a folder outside of {asked.folder}"
        )
    entries, others = find_entries(asked.folder)
    roster = read_roster(asked.roster) if asked.roster else None
    export = read_export(asked.folder)
    listed = read_times(asked.times, asked.late.zone) if asked.times else {}
    exported = {name: handed.when for name, handed in export.items() if handed.when}
    plan = make_plan(entries, roster, export, Times(listed, exported))
    if others:
        plan.notes.append(f"no folder and no archive, so not graded: {', '.join(others)}")
    for submission in plan.submissions:  # so that a wrong deadline in the roster shows before hours of grading
        for student in submission.students:
            asked.late.of(student)
    return plan


def grade_class(asked: Asked, plan: Plan, course: Course, console: "Console") -> dict[str, Outcome]:
    """Grade what has no valid result in `output` yet. Raises Interrupted, with all finished results kept."""
    works = {submission.key: _work(asked, submission, course) for submission in plan.submissions}
    names = {s.key: ", ".join(student.name for student in s.students) for s in plan.submissions}
    with shown_progress(console, names) as progress:
        return grade_all(works, asked.jobs, asked.again, progress)


def report_class(asked: Asked, plan: Plan, outcomes: Mapping[str, Outcome], course: Course) -> ClassReport:
    """Add up and write the files into `output`, without plots. Raises OSError."""
    lines = student_lines(plan, outcomes, asked.late)
    tasks = _assigned(outcomes, course)
    there = [line for line in lines if line.submission]
    final = [line.final for line in there] or [0.0]
    report = ClassReport(
        title=course.title,
        graded=told_time(datetime.now(UTC), asked.late.zone),
        version=course_version(),
        max_points=round(sum(task.points for task in tasks), 2),
        handed_in=len(there),
        mean=round(mean(final), 2),
        median=round(median(final), 2),
        students=lines,
        days=day_lines(tasks, lines),
        tasks=task_lines(tasks, lines),
        mistakes=mistake_lines(tasks, lines),
        notes=(*plan.notes, *_about_times(there, asked.late)),
    )
    write_files(asked.output, report)
    return report


def _work(asked: Asked, submission: Submission, course: Course) -> Work:
    try:
        taken = collect(submission.entry.path, course.curriculum, course.extra_files)
        files, state = taken.files, (taken.revision, *taken.notes)
    except CourseError as error:
        files, state = {}, (str(error), archive_digest(submission.entry.path))
    student = submission.students[0].id if len(submission.students) == 1 else submission.entry.name
    return Work(
        command=(*GRADER, str(submission.entry.path.resolve()), "--student", student, *asked.options),
        folder=asked.output.resolve() / "students" / submission.key,
        fingerprint=digest(files, (*state, student, code_version(), *asked.options, *asked.depends)),
        limit=asked.limit,
    )


def _assigned(outcomes: Mapping[str, Outcome], course: Course) -> list[Assigned]:
    """The graded tasks as the grades have them, or the course file's where there is no grade."""
    titles = {f"{day.week}.{day.day}": day.title for day in course.curriculum.days}
    points = {_key(task): course.points_of(task) for task in course.tasks}
    if found := {t.key: t.max_points for outcome in outcomes.values() if outcome.grade for t in outcome.grade.tasks}:
        points = found
    return [
        Assigned(_key(task), task.title, points[_key(task)], titles[_key(task).rpartition(".")[0]])
        for task in course.curriculum.tasks
        if _key(task) in points
    ]


def _key(task: Task) -> str:
    return f"{task.week}.{task.day}.{task.number}"


def _about_times(lines: Sequence[StudentLine], late: Lateline) -> list[str]:
    if not late.deadline:
        return []
    sources = sorted({line.time_from for line in lines if line.time_from})
    notes = [f"deadline {late.told(late.deadline)}; submission times from: {', '.join(sources) or 'nowhere'}"]
    if unknown := [line.name for line in lines if not line.submitted]:
        notes.append(f"no time is known of {', '.join(unknown)}, so they count as punctual: give --times")
    return notes


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """No second run writes into the same folder meanwhile. Raises CourseError."""
    try:
        (output / "students").mkdir(parents=True, exist_ok=True)
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
