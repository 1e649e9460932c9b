"""From outcomes to students' lines: points of a grade, what lateness takes, and why something is zero."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from course.classroom.clock import moment, told
from course.classroom.late import Lateness, lateness
from course.classroom.plan import Plan, Submission
from course.classroom.record import Outcome
from course.classroom.report import StudentLine, TaskPoints
from course.classroom.student import Student
from course.grading.course_file import LateTable
from course.grading.grade import Grade, rounded


@dataclass(frozen=True)
class Lateline:
    """When the class has to hand in (None: whenever), what lateness costs, and the zone that times are shown in."""

    deadline: datetime | None
    rule: LateTable
    zone: ZoneInfo | None = None

    def of(self, student: Student) -> datetime | None:
        """The student's own deadline, or the one for all."""
        if not student.deadline:
            return self.deadline
        return moment(student.deadline, self.zone, f"the roster's deadline of {student.name}")

    def told(self, when: datetime | None) -> str:
        return told(when, self.zone) if when else ""


def student_lines(plan: Plan, outcomes: Mapping[str, Outcome], late: Lateline) -> tuple[StudentLine, ...]:
    """A line for each student, by name; those who handed nothing in have zero points."""
    lines = [
        _line(submission, student, outcomes[submission.key], late)
        for submission in plan.submissions
        if submission.key in outcomes
        for student in submission.students
    ]
    lines += [
        StudentLine(id=student.id, name=student.name, ended="no submission", problem="nothing was handed in")
        for student in plan.absent
    ]
    return tuple(sorted(lines, key=lambda line: (line.name.casefold(), line.id)))


def _line(submission: Submission, student: Student, outcome: Outcome, late: Lateline) -> StudentLine:
    ended, problem = _ended(outcome)
    when = submission.moment.when if submission.moment else None
    deadline = late.of(student)
    after = lateness(when, deadline, _rule(late.rule, student)) if when and deadline else Lateness()
    points = outcome.grade.points if outcome.grade else 0.0
    return StudentLine(
        id=student.id,
        name=student.name,
        listed=submission.listed,
        submission=submission.entry.name,
        folder=submission.key,
        submitted=late.told(when),
        time_from=submission.moment.source if submission.moment else "",
        deadline=late.told(deadline),
        days_late=after.days,
        days_charged=after.charged,
        points=points,
        final=rounded(points * after.kept),
        ended=ended,
        problem=problem,
        notes=outcome.grade.notes if outcome.grade else (),
        ignored=outcome.grade.ignored if outcome.grade else (),
        seconds=outcome.record.seconds,
        tasks=_tasks(outcome.grade),
    )


def _rule(rule: LateTable, student: Student) -> LateTable:
    return rule if student.free_days is None else msgspec.structs.replace(rule, free_days=student.free_days)


def _ended(outcome: Outcome) -> tuple[str, str]:
    if outcome.record.ended != "graded" or outcome.grade is None:
        return outcome.record.ended, outcome.record.problem
    if outcome.grade.complete:
        return "graded", outcome.grade.problem
    ran = any(task.state != "not run" for task in outcome.grade.tasks)
    return ("incomplete" if ran else "unreadable"), outcome.grade.problem


def _tasks(grade: Grade | None) -> dict[str, TaskPoints]:
    found = grade.tasks if grade else ()
    return {task.key: TaskPoints(task.points, task.state, tuple(sorted(task.mistakes))) for task in found}
