"""Folders that learner code writes to: how much is in them, and how they are emptied, however deep they are.

Nothing here recurses, and removal raises nothing: a folder may hold anything, in any shape."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_BLOCK = 512
_LEAST = 4096
"""Bytes that each file or folder counts at least: an empty one takes room, too."""
_LONGEST = 1800
"""Bytes of a path. Deeper folders could hide files, as a path may not have more than 4096."""
_SECONDS = 20.0


class TooDeep(Exception):
    """Folders are nested so deeply that what is in them cannot be counted."""


def used(places: Iterable[Path], enough: int) -> int:
    """Bytes in folders and files; stops counting at `enough`. Raises TooDeep."""
    total = 0
    waiting = [os.fspath(place) for place in places]
    total += sum(_size(place) for place in waiting)
    while waiting and total <= enough:
        folder = waiting.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                total += _size(entry.path)
                if total > enough:
                    break
                if entry.is_dir(follow_symlinks=False):
                    if len(os.fsencode(entry.path)) > _LONGEST:
                        raise TooDeep
                    waiting.append(entry.path)
    return total


def room(status: os.stat_result) -> int:
    """Bytes that a file takes."""
    return max(status.st_blocks * _BLOCK, _LEAST)


def empty(folder: Path) -> None:
    """Remove what is in a folder; it itself stays."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            remove(Path(entry.path))


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it."""
    if not path.is_dir() or path.is_symlink():
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return
    with suppress(RecursionError):  # Python before 3.12
        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):  # folders that are closed, or too deep for Python
        for command in (["chmod", "-R", "u+rwx", str(path)], ["rm", "-rf", str(path)]):
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False)


def _size(path: str) -> int:
    with suppress(OSError):
        return room(os.lstat(path))
    return 0
