"""What the learner's files say of each task: stubs that are left, and fingerprints of its code.

Reads the files of a package once, as text. It imports nothing of them and knows nothing of earlier runs."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from course.curriculum import Curriculum, FileSymbols, Task
from course.errors import CourseError
from course.paths import is_extension, source_file
from course.starter.regions import regions
from course.starter.source import first_line, last_line, split_lines
from course.starter.symbols import Function, definitions, listed_under
from course.stub import find_stubs

_NOT_TAKEN_APART = (SyntaxError, ValueError, RecursionError, MemoryError, CourseError)


class TaskSource(NamedTuple):
    """What the files say of one task.

    missing: its files that are not there. left: stubs of it that are still to be written. own: fingerprint of the
    functions and regions that it asks for, "" while a file cannot be taken apart. whole: fingerprint of these and of
    all else in its files but the code of other tasks.
    """

    missing: tuple[str, ...]
    left: int
    own: str
    whole: str


class Sources:
    """The files of all tasks in a package, as they were when this was made."""

    def __init__(self, curriculum: Curriculum, package: Path, before: "Sources | None" = None) -> None:
        """before: an earlier reading; what it knows of files that are the same still holds."""
        self.curriculum, self.package = curriculum, package
        known = before._files if before else {}
        self._files: dict[str, _File] = {}
        for name in _names(curriculum):
            text = _text(source_file(package, name))
            same = name in known and known[name].text == text
            self._files[name] = known[name] if same else _File(name, text, curriculum.files[name])

    def of(self, task: Task) -> TaskSource:
        """What the files say of a task."""
        files = [self._files[name] for name in task.symbols]
        missing = tuple(name for name in task.symbols if self._files[name].text is None)
        left = {stub.text for file in files for stub in find_stubs(file.text or "") if stub.label == task.label}
        own = _digest(file.own(task) for file in files) if all(file.pieces for file in files) else ""
        return TaskSource(missing, len(left), own, _digest(part for file in files for part in file.whole(task)))


class _File:
    """The text of one file; None where it is not there."""

    def __init__(self, name: str, text: str | None, listed: FileSymbols) -> None:
        self.name, self.text, self._listed = name, text, listed

    @cached_property
    def pieces(self) -> dict[Task | None, str] | None:
        """The lines of each task's functions or regions, and those of nobody (`None`); None for a broken file."""
        text = self.text or ""
        try:
            spans = _regions if is_extension(self.name) else _functions
            owners = {line: task for task, lines in spans(self.name, text, self._listed) for line in lines}
        except _NOT_TAKEN_APART:
            return None
        pieces: dict[Task | None, str] = {None: ""}
        for number, line in enumerate(split_lines(text), 1):
            owner = owners.get(number)
            pieces[owner] = pieces.get(owner, "") + line
        return pieces

    def own(self, task: Task) -> str:
        return (self.pieces or {}).get(task, "")

    def whole(self, task: Task) -> tuple[str, str]:
        return (self.own(task), self.pieces[None]) if self.pieces else ("", self.text or "")


def _functions(name: str, text: str, listed: FileSymbols) -> Iterator[tuple[Task, Iterable[int]]]:
    lines = split_lines(text)
    for symbol, node in definitions(ast.parse(text).body):
        task = listed_under(symbol, listed)[1]
        if task and isinstance(node, Function):
            yield task, range(first_line(node), last_line(lines, node) + 1)


def _regions(name: str, text: str, listed: FileSymbols) -> Iterator[tuple[Task, Iterable[int]]]:
    for symbol, region in regions(name, text).items():
        if task := listed.tasks.get(symbol):
            yield task, range(region.first, region.last + 1)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None


def _names(curriculum: Curriculum) -> list[str]:
    """The files with tasks."""
    return [name for name, listed in curriculum.files.items() if listed.tasks]


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:16]
