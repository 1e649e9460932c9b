"""Merged files with conflicts, which wait in `.course/update/` until the learner has settled them."""

import re
from typing import NamedTuple

from course.work.change import change
from course.work.lock import locked
from course.work.names import registry_name
from course.work.place import Place
from course.work.saved import Saved
from course.work.update import PENDING

_MARKER = re.compile(rb"^(<{7} |={7}\r?$|>{7} )", re.MULTILINE)


class Settled(NamedTuple):
    """Files taken over, files that still hold markers, and the copy made before."""

    taken: tuple[str, ...]
    open: tuple[str, ...]
    saved: Saved | None


def settle(place: Place) -> Settled:
    """Put the waiting files without conflict markers in the place of the learner's. Raises CourseError."""
    with locked(place):
        folder = place.file(PENDING)
        waiting = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
        contents = {file: place.read(PENDING + file) or b"" for file in waiting}
        taken = [file for file, content in contents.items() if not _MARKER.search(content)]
        files: dict[str, bytes | None] = {registry_name(file, place): contents[file] for file in taken}
        saved = change(files | {PENDING + file: None for file in taken}, "merge", place)
    return Settled(tuple(taken), tuple(file for file in waiting if file not in taken), saved)
