"""Merged files with conflicts, which wait in `.course/update/` until the learner has settled them."""

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from course.work.change import change
from course.work.fingerprints import FINGERPRINTS, fingerprint, fingerprints, record
from course.work.lock import locked
from course.work.names import registry_name
from course.work.place import Place
from course.work.saved import Saved
from course.work.update import PENDING

_MARKER = re.compile(rb"^(<{7} |={7}\r?$|>{7} )", re.MULTILINE)


class Settled(NamedTuple):
    """Files taken over, files that still hold markers, those that changed since, and the copy made before."""

    taken: tuple[str, ...]
    open: tuple[str, ...]
    changed: tuple[str, ...]
    saved: Saved | None


def settle(place: Place) -> Settled:
    """Put the waiting files without conflict markers in the place of the learner's. Raises CourseError.

    A file that is not as it was when its merged text was written stays, and so does that text.
    """
    with locked(place):
        folder = place.file(PENDING)
        waiting = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
        contents = {file: place.read(PENDING + file) or b"" for file in waiting}
        names = {file: registry_name(file, place) for file in waiting}
        prints = fingerprints(place)
        changed = [file for file in waiting if _is_later(place.read(names[file]), contents[file], prints.get(file))]
        taken = [file for file in waiting if file not in changed and not _MARKER.search(contents[file])]
        files: dict[str, bytes | None] = {names[file]: contents[file] for file in taken}
        files |= {PENDING + file: None for file in taken}
        if taken:
            files[FINGERPRINTS] = record({file: prints[file] for file in waiting if file in prints.keys() - set(taken)})
        saved = change(files, "merge", place)
        _remove_empty(folder)
    settled = {*taken, *changed}
    return Settled(tuple(taken), tuple(file for file in waiting if file not in settled), tuple(changed), saved)


def _is_later(mine: bytes | None, merged: bytes, seen: str | None) -> bool:
    """Whether the learner's file holds work that the merged text may lack."""
    return mine is not None and mine != merged and fingerprint(mine) != seen


def _remove_empty(folder: Path) -> None:
    """Folders without a file, the innermost first; those with one stay."""
    for path in sorted([folder, *(path for path in folder.rglob("*") if path.is_dir())], reverse=True):
        with suppress(OSError):
            path.rmdir()
