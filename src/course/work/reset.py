"""Makes tasks stubs again in the learner's files; whatever else is in these files stays."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from course.curriculum import Curriculum, Task
from course.stub import find_stubs
from course.work.change import change
from course.work.graft import CannotGraft
from course.work.lock import locked
from course.work.place import HERE, Place
from course.work.pristine import pristine_file
from course.work.saved import Saved
from course.work.splice import splice


class Whole(NamedTuple):
    """A file that is reset as a whole: why, and the other tasks whose code goes with it."""

    name: str
    why: str
    tasks: tuple[Task, ...]


class Reset(NamedTuple):
    """What was done: files that changed, those reset as a whole, why and with which others' code, the copy before."""

    changed: tuple[str, ...]
    whole: tuple[Whole, ...]
    saved: Saved | None


def reset_tasks(curriculum: Curriculum, tasks: Collection[Task], reason: str, place: Place = HERE) -> Reset:
    """Put the stubs of `tasks` back. A file in which they cannot be found is reset as a whole. Raises CourseError."""
    names = list(dict.fromkeys(name for task in tasks for name in task.symbols))
    whole: dict[str, str] = {}
    with locked(place):
        files = {name: _reset(curriculum, tasks, name, whole, place) for name in names}
        changed = [name for name in names if place.read(name) != files[name]]
        told = [_whole(curriculum, tasks, name, why, place) for name, why in whole.items() if name in changed]
        saved = change(files, reason, place)
    return Reset(tuple(changed), tuple(told), saved)


def reset_files(curriculum: Curriculum, names: Collection[str], reason: str, place: Place = HERE) -> Reset:
    """Make files of the course as they were at the start. Raises CourseError for one that is not of the course."""
    with locked(place):
        files = {name: pristine_file(curriculum, name, place) for name in names}
        changed = [name for name in names if place.read(name) != files[name]]
        saved = change(files, reason, place)
    return Reset(tuple(changed), (), saved)


def whole_files(curriculum: Curriculum, task: Task, place: Place = HERE) -> list[Whole]:
    """The files that a reset of `task` would take back as a whole. Writes nothing. Raises CourseError."""
    whole: dict[str, str] = {}
    for name in task.symbols:
        _reset(curriculum, [task], name, whole, place)
    return [_whole(curriculum, [task], name, why, place) for name, why in whole.items()]


def _whole(curriculum: Curriculum, tasks: Collection[Task], name: str, why: str, place: Place) -> Whole:
    mine = place.read(name)
    if mine is None:
        return Whole(name, why, ())
    left, stubs = _stubs(mine), _stubs(pristine_file(curriculum, name, place))
    others = dict.fromkeys(other for other in curriculum.files[name].tasks.values() if other not in tasks)
    return Whole(name, why, tuple(other for other in others if left[other.label] < stubs[other.label]))


def _stubs(content: bytes) -> Counter[str]:
    """How many stubs of each task a file holds."""
    return Counter(stub.label for stub in find_stubs(content.decode("utf-8", "replace")))


def _reset(curriculum: Curriculum, tasks: Collection[Task], name: str, whole: dict[str, str], place: Place) -> bytes:
    start, mine = pristine_file(curriculum, name, place), place.read(name)
    if mine is None:
        whole[name] = "it was missing"
        return start
    try:
        return splice(curriculum, name, mine, start, start, tasks)
    except CannotGraft as problem:
        whole[name] = str(problem)
        return start
