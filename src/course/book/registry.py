"""Looks up weeks, days and tasks by the numbers that chapters use: "1" is a week, "1.2" a day, "1.2.3" a task."""

from course.book.page import Page
from course.curriculum import Curriculum, Day, Task, Week
from course.errors import CourseError


def week_at(course: Curriculum, page: Page, line: int, number: str) -> Week:
    """The week, or an error for this page and line."""
    try:
        return course.week(int(number))
    except (ValueError, CourseError) as error:
        raise page.error(line, f"no week {number!r} in the registry", "write a number as in curriculum/") from error


def day_at(course: Curriculum, page: Page, line: int, number: str) -> Day:
    """The day "WEEK.DAY", or an error for this page and line."""
    try:
        week, day = map(int, number.split("."))
        return course.day(week, day)
    except (ValueError, CourseError) as error:
        raise page.error(line, f"no day {number!r} in the registry", "write WEEK.DAY as in curriculum/") from error


def task_at(course: Curriculum, page: Page, line: int, number: str) -> Task:
    """The task "WEEK.DAY.TASK", or an error for this page and line."""
    try:
        week, day, task = map(int, number.split("."))
        return course.task(week, day, task)
    except (ValueError, CourseError) as error:
        raise page.error(
            line, f"no task {number!r} in the registry", "write WEEK.DAY.TASK as in curriculum/"
        ) from error
