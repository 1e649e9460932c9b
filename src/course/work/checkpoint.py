"""The learner's files as they are once some tasks are done: the reference's bodies for these, stubs for the others."""

from collections.abc import Callable

from course.curriculum import Curriculum, Task
from course.errors import CourseError
from course.solutions import NO_REFERENCE
from course.starter import render
from course.work.place import HERE, Place
from course.work.pristine import has_reference


def render_checkpoint(curriculum: Curriculum, done: Callable[[Task], bool], place: Place = HERE) -> dict[str, bytes]:
    """All files. Raises CourseError in a copy of the course that has no reference."""
    need_reference("a checkpoint", place)
    return render(curriculum, place.reference, done)


def before(week: int, day: int = 1) -> Callable[[Task], bool]:
    """Whether a task comes before a day."""
    return lambda task: (task.week, task.day) < (week, day)


def need_reference(what: str, place: Place = HERE) -> None:
    """Raises CourseError in a copy of the course that has no reference, which `what` needs."""
    if not has_reference(place):
        raise CourseError(f"{NO_REFERENCE}, which {what} needs: ask your instructor, or use a complete checkout")
