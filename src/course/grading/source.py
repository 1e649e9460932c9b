"""A submission as a list of entries and a way to read one: a folder here, archives in `course.grading.archive`.

Nothing is unpacked and no link is followed. Whoever reads says how many bytes at most, so sizes that lie do no harm."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from course.errors import CourseError

MOST_ENTRIES = 50_000
MOST_DEPTH = 24
SUBMIT = "submit src/tiny_llm and src/extensions only"
SKIPPED = {"__pycache__", "__MACOSX", "node_modules", "site-packages"}
"""Folders that are nobody's own work; neither are those that begin with a dot."""

_SETTINGS = {"conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "sitecustomize.py"}
_SETTINGS |= {"usercustomize.py"}


class Unreadable(CourseError):
    """The submission cannot be graded at all: zero points, with this reason."""


class Entry(NamedTuple):
    """A file by its path from the top, with slashes. `kind`: "file", "link" or "special" (a pipe, a device)."""

    name: str
    kind: str


class Source(Protocol):
    """Where the files of a submission come from."""

    def entries(self) -> Iterator[Entry]:
        """All files, folders left out. Raises Unreadable where there are too many."""

    def read(self, name: str, most: int) -> bytes:
        """The first `most` bytes of a file among the entries. Raises OSError."""


def is_skipped(name: str) -> bool:
    """Whether a path leads through a folder that holds nothing to grade."""
    return any(part in SKIPPED or part.startswith(".") for part in name.split("/")[:-1])


def is_setting(name: str) -> bool:
    """Whether a file would configure Python or pytest, if it were used."""
    last = name.rpartition("/")[2]
    return last in _SETTINGS or last.endswith(".pth")


class Folder:
    """A folder on this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def entries(self) -> Iterator[Entry]:
        for count, entry in enumerate(self._walk("", 0)):
            if count >= MOST_ENTRIES:
                raise Unreadable(f"it holds more than {MOST_ENTRIES} files: {SUBMIT}")
            yield entry

    def _walk(self, prefix: str, depth: int) -> Iterator[Entry]:
        try:
            children = sorted(os.scandir(self.root / prefix), key=lambda child: child.name)
        except OSError as error:
            if not prefix:
                raise Unreadable(f"the folder cannot be read: {error.strerror}") from None
            return
        for child in children:
            name = f"{prefix}{child.name}"
            if child.is_symlink():
                yield Entry(name, "link")
            elif child.is_file():
                yield Entry(name, "file")
            elif not child.is_dir():
                yield Entry(name, "special")
            elif depth < MOST_DEPTH and not is_skipped(f"{name}/"):
                yield from self._walk(f"{name}/", depth + 1)

    def read(self, name: str, most: int) -> bytes:
        """Opens without following a link and without waiting for a pipe's other end."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
        with open(os.open(self.root / name, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(0, "it is no plain file")
            return file.read(most)


def revision(root: Path) -> str:
    """The commit that a checkout stands at; nothing where there is none. Reads files only: git would run hooks."""
    with suppress(OSError, ValueError):
        git = root / ".git"
        head = _line(git / "HEAD")
        if head.startswith("ref: refs/") and ".." not in head:
            name = head.removeprefix("ref: ")
            head = _line(git / name) if (git / name).is_file() else _packed(git / "packed-refs", name)
        if len(head) in (40, 64) and int(head, 16) >= 0:
            return head
    return ""


def _line(path: Path) -> str:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 1000:
        return ""
    return path.read_text().strip()


def _packed(path: Path, name: str) -> str:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 20:
        return ""
    lines = (line.split(" ") for line in path.read_text().splitlines())
    return next((line[0] for line in lines if line[1:] == [name]), "")
