"""Brings a saved copy back, after a copy of what is there now."""

from collections.abc import Iterable

from course.errors import CourseError
from course.work.change import change
from course.work.lock import locked
from course.work.place import HERE, Place
from course.work.saved import Saved


def restore(saved: Saved, place: Place = HERE, names: Iterable[str] | None = None) -> Saved | None:
    """Make the files (all of the copy, or `names`) what they were. Files that the copy does not name stay.

    Returns the copy of what was there before; None where nothing had changed. Raises CourseError.
    """
    wanted = list(saved.manifest.files if names is None else names)
    if unknown := [name for name in wanted if name not in saved.manifest.files]:
        raise CourseError(f"{place.show(unknown[0])} is not in the saved copy {saved.name}")
    with locked(place):
        files = {name: saved.read(name) for name in wanted}
        return change(files, "before-restore", place, keep=wanted)
