"""The sums of a class: from its grades to the report and its files, all but the plots."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import mean, median

from course.classroom.clock import told as told_time
from course.classroom.desk import Asked, Graded
from course.classroom.files import write_files
from course.classroom.final import write_final
from course.classroom.lines import Lateline, student_lines
from course.classroom.plan import Plan
from course.classroom.record import Outcome
from course.classroom.report import (
    Assigned,
    ClassReport,
    SimilarLine,
    StudentLine,
    day_lines,
    mistake_lines,
    task_lines,
)
from course.classroom.similar import Files, find_similar
from course.curriculum import Curriculum, Task
from course.grading.course_file import Course
from course.grading.grade import rounded, total
from course.grading.version import course_version
from course.paths import REFERENCE
from course.starter import read_package
from course.work.pristine import pristine_file


def report_class(asked: Asked, plan: Plan, graded: Graded, course: Course) -> ClassReport:
    """Add up and write the files into `output`. Raises OSError."""
    lines = student_lines(plan, graded.outcomes, asked.late)
    tasks = _assigned(graded.outcomes, course)
    there = [line for line in lines if line.submission]
    final = [line.final for line in there] or [0.0]
    report = ClassReport(
        title=course.title,
        graded=told_time(datetime.now(UTC), asked.late.zone),
        version=course_version(),
        max_points=total(task.points for task in tasks),
        handed_in=len(there),
        mean=rounded(mean(final)),
        median=rounded(median(final)),
        students=lines,
        days=day_lines(tasks, lines),
        tasks=task_lines(tasks, lines),
        mistakes=mistake_lines(tasks, lines),
        similar=_similar(plan, graded, tasks, course.curriculum),
        notes=(*plan.notes, *_about_times(there, asked.late)),
    )
    write_files(asked.output, report)
    write_final(asked.output / "students", report)
    return report


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


def _similar(plan: Plan, graded: Graded, tasks: Sequence[Assigned], curriculum: Curriculum) -> tuple[SimilarLine, ...]:
    """Among the files of the graded tasks only."""
    if len(plan.submissions) < 2:
        return ()
    keys = {task.key for task in tasks}
    wanted = {file for task in curriculum.tasks if _key(task) in keys for file in task.symbols}
    names = {s.key: ", ".join(student.name for student in s.students) for s in plan.submissions}
    known: list[Files] = [{name: pristine_file(curriculum, name) for name in wanted}]
    if REFERENCE.is_dir():
        known.append(_only(read_package(REFERENCE), wanted))
    return find_similar({names[key]: _only(files, wanted) for key, files in graded.files.items()}, known)


def _only(files: Files, wanted: set[str]) -> Files:
    return {name: content for name, content in files.items() if name in wanted}


def _about_times(lines: Sequence[StudentLine], late: Lateline) -> list[str]:
    if not late.deadline:
        return []
    sources = sorted({line.time_from for line in lines if line.time_from})
    notes = [f"deadline {late.told(late.deadline)}; submission times from: {', '.join(sources) or 'nowhere'}"]
    if unknown := [line.name for line in lines if not line.submitted]:
        notes.append(f"no time is known of {', '.join(unknown)}, so they count as punctual: give --times")
    return notes
