"""What a grade depends on, as one short text: while it stays the same, the grade of the last run still holds."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from course.paths import CURRICULUM, REFERENCE, SRC, TESTS, extension_folder

_GRADED_BY = (SRC / "course", TESTS, CURRICULUM, REFERENCE, extension_folder(REFERENCE))
"""The starter, which is under every submission, is made from the reference."""
_NOT_GRADED_BY = {"mutants", "alternatives", "classroom", "__pycache__"}
_BUILT = {".so", ".dylib"}


@cache
def code_version() -> str:
    """A digest of everything in this copy of the course that decides a grade."""
    return digest({f"{folder.name}/{name}": content for folder in _GRADED_BY for name, content in _sources(folder)}, ())


def _sources(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") or part in _NOT_GRADED_BY for part in name.parts)
        if not hidden and path.suffix not in _BUILT and path.is_file():
            yield name.as_posix(), path.read_bytes()


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
