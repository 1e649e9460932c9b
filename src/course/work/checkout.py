"""Puts the learner's files where a day begins: earlier tasks done by the reference, that day and later ones stubs."""

from collections.abc import Callable
from typing import NamedTuple

from course.curriculum import Curriculum, Task
from course.starter import render_file
from course.work.change import change
from course.work.checkpoint import need_reference, render_checkpoint
from course.work.graft import CannotGraft
from course.work.lock import locked
from course.work.place import HERE, Place
from course.work.pristine import pristine_file
from course.work.saved import Saved
from course.work.source import unwritten
from course.work.splice import splice

STATE = "/.course/state.json"  # progress comes back together with the files that it tells of


class Checkout(NamedTuple):
    """What was done: files that changed, tasks filled from the reference, files taken as a whole (why), the copy."""

    changed: tuple[str, ...]
    filled: tuple[Task, ...]
    whole: dict[str, str]
    saved: Saved | None


def checkout(curriculum: Curriculum, done: Callable[[Task], bool], place: Place = HERE) -> Checkout:
    """All files of the course anew; own files beside them stay. Raises CourseError where there is no reference."""
    need_reference("`checkout`", place)
    with locked(place):
        files = render_checkpoint(curriculum, done, place)
        return _write(files, tuple(task for task in curriculum.tasks if done(task)), {}, place)


def fill(curriculum: Curriculum, done: Callable[[Task], bool], place: Place = HERE) -> Checkout:
    """Only what is still to be written of the `done` tasks, from the reference; all other code stays as it is."""
    need_reference("`checkout`", place)
    with locked(place):
        filled = [task for task in curriculum.tasks if done(task) and unwritten(task, place)]
        whole: dict[str, str] = {}
        names = dict.fromkeys(name for task in filled for name in task.symbols)
        files = {name: _filled(curriculum, name, filled, whole, place) for name in names}
        files |= {name: pristine_file(curriculum, name, place) for name in _missing(curriculum, place) - files.keys()}
        return _write(files, tuple(filled), whole, place)


def _filled(curriculum: Curriculum, name: str, filled: list[Task], whole: dict[str, str], place: Place) -> bytes:
    """The learner's file with some tasks done by the reference, or the course's file with all of these done."""
    solution = render_file(curriculum, place.reference, name, filled.__contains__)
    mine = place.read(name)
    if mine is None:
        whole[name] = "it was missing"
        return solution
    tasks = [task for task in filled if name in task.symbols]
    try:
        return splice(curriculum, name, mine, solution, pristine_file(curriculum, name, place), tasks)
    except CannotGraft as problem:
        whole[name] = str(problem)
        return solution


def _missing(curriculum: Curriculum, place: Place) -> set[str]:
    return {name for name in curriculum.files if place.read(name) is None}


def _write(files: dict[str, bytes], filled: tuple[Task, ...], whole: dict[str, str], place: Place) -> Checkout:
    changed = tuple(sorted(name for name, content in files.items() if place.read(name) != content))
    saved = change(files, "checkout", place, keep={*place.names(), STATE})
    return Checkout(changed, filled, whole, saved)
