"""Secret seeds of hidden variants: numbers made from a secret that is in a file or an environment variable.

The secret never reaches a program that runs learner code but as one number through a pipe, and no output holds it."""

import hashlib
import os
import sys
from pathlib import Path

from course.errors import CourseError
from course.grading.course_file import Course, HiddenTable
from course.paths import ROOT

LEAST = 16
_MAKE = 'python3 -c "import secrets; print(secrets.token_hex())" > FILE'


def load_seeds(course: Course, file: Path | None = None) -> tuple[int, ...]:
    """The seeds: from `file`, else from where the course file says; none without hidden variants.

    Takes the variable out of the environment. Raises CourseError.
    """
    if file is None and course.hidden is None:
        return ()
    secret = secret_text(course, file)
    return tuple(_seed(secret, number) for number in range((course.hidden or HiddenTable()).seeds))


def secret_text(course: Course, file: Path | None = None) -> str:
    """The secret itself. Raises CourseError where there is none, or a short one."""
    secret, name = _secret(course.hidden or HiddenTable(), file, course.path)
    if len(secret) < LEAST:
        raise CourseError(
            f"the secret in {name} has {len(secret)} characters, fewer than {LEAST}: make one with {_MAKE}"
        )
    return secret


def _secret(table: HiddenTable, file: Path | None, course_path: Path | None) -> tuple[str, str]:
    if file is None and table.variable:
        secret = os.environ.pop(table.variable, "")
        if not secret:
            raise CourseError(
                f"hidden variants need the environment variable {table.variable}: set it, or use --seeds FILE"
            )
        return secret.strip(), table.variable
    if file is None and not table.file:
        raise CourseError("[hidden] names no secret: add file or variable to it, or use --seeds FILE")
    path = file or (course_path.parent if course_path else ROOT) / table.file
    return _read(path), str(path)


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            print(
                f"warning: others can read {path}, which holds the secret of the hidden variants: chmod 600 it",
                file=sys.stderr,
            )
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise CourseError(
            f"the secret of the hidden variants, {path}, cannot be read ({why}): make it with {_MAKE}"
        ) from None


def _seed(secret: str, number: int) -> int:
    """96 bits: nobody finds the secret, or another seed, from one of them."""
    return int.from_bytes(hashlib.sha256(f"{secret}:{number}".encode()).digest()[:12])
