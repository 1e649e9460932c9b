"""A course file in two parts: what decides how cases end, and what their points are and who sees them.

Where only the second has changed, the grades of an earlier run are scored again, and no test runs."""

import msgspec

from course.classroom.job import Work
from course.classroom.record import kept, note
from course.grading.course_file import Course, HiddenTable
from course.grading.formats import write
from course.grading.score import rescored


def decides(course: Course) -> str:
    """As a text to compare: all that another grader run could show in a result. Late days are none of it."""
    show = (course.hidden or HiddenTable()).show
    days = tuple((day.week, day.day) for day in course.days)
    return repr((days, course.limits, course.extra_files, course.leaderboard, show))


def scoring(course: Course) -> str:
    """As a text to compare: title, points and visibility."""
    tasks = [
        (course.points_of(task), course.visibility_of(task), course.visibility_of(task, hidden=True))
        for task in course.tasks
    ]
    return repr((course.title, tasks, (course.hidden or HiddenTable()).share))


def score_again(work: Work, course: Course) -> None:
    """Bring an earlier grade that still holds up to the course's points. Raises CourseError, OSError."""
    earlier = kept(work.folder, work.fingerprint, work.limit)
    if earlier and earlier.grade and earlier.record.scoring != work.scoring:
        write(rescored(earlier.grade, course), work.folder)
        note(work.folder, msgspec.structs.replace(earlier.record, scoring=work.scoring))
