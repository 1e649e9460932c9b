"""Puts tasks of one version of a file into another one, in any language of the course."""

from collections.abc import Collection

from course.curriculum import Curriculum, Task
from course.errors import CourseError
from course.paths import is_extension
from course.starter.regions import bodies_of, regions, replaced
from course.work.functions import Key, task_functions
from course.work.graft import CannotGraft, graft
from course.work.needs import Source
from course.work.text import NoText, Text


def splice(
    curriculum: Curriculum, name: str, mine: bytes, source: bytes, given: bytes, tasks: Collection[Task]
) -> bytes:
    """The file `mine` with the functions or regions of `tasks` as `source` has them; the rest stays as it is.

    given: the file as the learner got it. Raises CannotGraft where this cannot be done.
    """
    try:
        text = Text.of(mine, name)
        other, start = source.decode(), given.decode()
        if is_extension(name):
            names = [symbol for task in tasks for symbol in task.symbols.get(name, ())]
            return text.with_body(_with_regions(name, text.body, other, names)).content()
        keys = list(task_keys(curriculum, name, other, tasks))
        return text.with_body(graft(text.body, other, start, keys)).content()
    except NoText as error:
        raise CannotGraft(f"the file is no text ({error})") from None


def task_keys(curriculum: Curriculum, name: str, text: str, tasks: Collection[Task]) -> dict[Key, str]:
    """The functions of some tasks in a Python file of the course."""
    return task_functions(Source.of(text).tree, curriculum.files[name], tasks)


def _with_regions(name: str, mine: str, source: str, names: list[str]) -> str:
    try:
        bodies, there = bodies_of(name, source), regions(name, mine)
    except CourseError as error:
        raise CannotGraft(f"the comments around its tasks do not pair ({error})") from None
    if gone := [region for region in names if region not in there]:
        raise CannotGraft(f"the comments around the task {gone[0]} are not in the file")
    return replaced(name, mine, {region: bodies[region] for region in names})
