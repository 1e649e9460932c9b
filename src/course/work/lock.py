"""One command at a time changes the learner's files. A reader needs no lock: files are replaced whole."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager

from course.errors import CourseError
from course.work.place import Place

_PATIENCE = 10.0  # s; commands hold the lock for much less


@contextmanager
def locked(place: Place, patience: float = _PATIENCE) -> Iterator[None]:
    """Raises CourseError where another command holds the lock for longer than `patience` seconds."""
    path = place.course / "work.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise CourseError(f"cannot write {path} ({error.strerror}): saved copies need a folder you may write") from None
    with file:
        deadline = time.monotonic() + patience
        while not _taken(file.fileno()):
            if time.monotonic() > deadline:
                raise CourseError("another command is changing your files: wait for its end, then try again")
            time.sleep(0.02)
        yield


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks does not stop the work
        return True
    return True
