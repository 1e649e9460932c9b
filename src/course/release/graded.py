"""How a class is graded, in words for its students: what the course file says, and nothing where it is silent."""

from collections.abc import Iterable, Iterator, Sequence

from course.curriculum import Day, Task, points_text
from course.grading.course_file import Course, HiddenTable, LateTable
from course.grading.rules import VISIBILITIES
from course.paths import is_extension

_WHEN = dict(zip(VISIBILITIES, ("at once", "after the due date", "once they are published", "never"), strict=True))
_FILES = (
    "**Graded files**: those that say `This file is yours to edit` in their first line{extra}. A grader takes no other "
    "file, so a helper module of your own works here and fails there: put its code into a graded file. `./run test` "
    "and `./run status` tell you of one."
)


def how_graded(course: Course, released: Sequence[Day]) -> str:
    """A list in Markdown. released: the graded days that the students have."""
    return "\n".join(f"- {line}" for line in _lines(course, released))


def _lines(course: Course, released: Sequence[Day]) -> Iterator[str]:
    tasks = [task for day in released for task in day.tasks]
    total = points_text(sum(map(course.points_of, tasks)))
    later = "; more days follow in a later version of this copy" if len(released) < len(course.days) else ""
    yield (
        f"**What counts**: {_days(course, released)}, {total} points in all{later}. "
        "The public tests of a task give all they are worth, or nothing."
    )
    extra = ", ".join(f"`{_place(name)}`" for name in course.extra_files)
    yield _FILES.format(extra=extra and f", and {extra} if you write it")
    if course.late and course.late.deadline:
        yield _deadline(course.late)
    if course.hidden:
        yield _hidden(course.hidden)
    if course.visibility:
        yield f"**Results of the grader** are shown {_when(map(course.visibility_of, tasks))}."
    if course.hidden:
        yield f"**Results of hidden variants** are shown {_when(_closed(course, tasks))}."


def _days(course: Course, released: Sequence[Day]) -> str:
    """ "Week 1, Week 3 Days 1 and 2"."""
    found = []
    for week in course.curriculum.weeks:
        days = [day for day in released if day.week == week.week]
        if len(days) == len(week.days):
            found.append(f"Week {week.week}")
        elif days:
            numbers = " and ".join(filter(None, [", ".join(f"{day.day}" for day in days[:-1]), f"{days[-1].day}"]))
            found.append(f"Week {week.week} Day{'s' if len(days) > 1 else ''} {numbers}")
    return ", ".join(found)


def _deadline(late: LateTable) -> str:
    moment = late.deadline.isoformat(" ", "minutes") if late.deadline else ""
    free = f"Free late days: {late.free_days}. Each one more" if late.free_days else "Each late day"
    return (
        f"**Deadline**: {moment[:16]} (UTC{moment[16:]}), with {late.grace_minutes} minutes of grace. {free} costs "
        f"{points_text(late.percent_per_day)} % of what you earned; after {late.most_days} days nothing counts."
    )


def _hidden(hidden: HiddenTable) -> str:
    share = points_text(round(hidden.share * 100, 2))
    return (
        f"**Hidden variants**: the grader also runs the same tests with other numbers. {share} % of a task's points "
        "need them to pass too."
    )


def _closed(course: Course, tasks: Iterable[Task]) -> Iterator[str]:
    return (course.visibility_of(task, hidden=True) for task in tasks)


def _when(visibilities: Iterable[str]) -> str:
    found = set(visibilities)
    return " or ".join(word for name, word in _WHEN.items() if name in found) + (", by task" if len(found) > 1 else "")


def _place(name: str) -> str:
    return f"src/{name}" if is_extension(name) else f"src/tiny_llm/{name}"
