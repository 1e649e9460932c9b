"""The secret seed of a grader: read once from a pipe, and kept where code of a submission cannot look."""

import os

from course.boundary import kernel
from course.errors import CourseError

_MOST = 200


def read_seed(fd: int) -> int:
    """The number that stands in the pipe `fd`, in decimal; closes it. Raises CourseError."""
    try:
        with os.fdopen(fd, "rb") as file:
            text = file.read(_MOST + 1).strip()
    except OSError as error:
        raise CourseError(f"--seed-fd {fd} cannot be read ({error.strerror}): hand on an open pipe") from None
    if not text.isdigit() or len(text) > _MOST:
        raise CourseError(f"--seed-fd {fd} holds no seed: write a whole number of at most {_MOST} digits to the pipe")
    return int(text)


def close_memory() -> None:
    """Keep other processes of this user from looking into this one's memory, environment and files. Linux only."""
    kernel.set_dumpable(False)
