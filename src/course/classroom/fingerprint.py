"""What a grade depends on, as one short text: while it stays the same, the grade of the last run still holds."""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from course.paths import CURRICULUM, SRC, TESTS

_NOT_GRADED_BY = ("mutants", "alternatives", "classroom", "__pycache__")


@cache
def code_version() -> str:
    """A digest of everything in this copy of the course that decides a grade."""
    files = [
        path
        for folder, pattern in ((SRC / "course", "*.py"), (TESTS, "*.py"), (CURRICULUM, "*.toml"))
        for path in folder.rglob(pattern)
        if not set(_NOT_GRADED_BY) & set(path.parts)
    ]
    return digest({path.as_posix(): path.read_bytes() for path in files}, ())


def digest(files: Mapping[str, bytes], others: Iterable[str]) -> str:
    """One digest of files by name and of texts in their order."""
    found = hashlib.sha256()
    for name in sorted(files):
        found.update(f"{name}\0{len(files[name])}\0".encode(errors="replace"))
        found.update(files[name])
    for text in others:
        found.update(f"{len(text)}\0{text}".encode())
    return found.hexdigest()


def archive_digest(path: Path) -> str:
    """For a submission that cannot be taken apart: its size and time."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns}"
