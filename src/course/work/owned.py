"""The files that belong to the course and not to the learner, and a record of them as they were delivered.

A release comes with the record in `curriculum/files.json`; an update keeps its own in `.course/owned.json`."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from course.starter.generate import BUILT
from course.work.newer import git_output
from course.work.place import Place

RECORD = "/.course/owned.json"
RELEASED = "/curriculum/files.json"
_LEFT = {"__pycache__", "build", "node_modules"}
_HIDDEN = {".github", ".ci", ".devcontainer", ".gitignore", ".gitattributes", ".editorconfig", ".python-version"}


def owned_files(root: Path) -> dict[str, Path]:
    """The files of the course in a delivered folder, by name: "/src/course/cli.py". No learner's files."""
    place = Place.of(root)
    learners = (place.package, place.file("extensions/x").parent)
    found = (path for path in _walk(root) if not any(path.is_relative_to(folder) for folder in learners))
    return {f"/{path.relative_to(root).as_posix()}": path for path in sorted(found)}


def _walk(root: Path) -> Iterator[Path]:
    """Plain files, without what programs and editors leave; links are not followed."""
    for folder, folders, files in os.walk(root):
        top = Path(folder) == root
        folders[:] = [name for name in folders if name not in _LEFT and not _hidden(name)]
        for name in files:
            path = Path(folder, name)
            if path.suffix not in BUILT and not (_hidden(name) and top) and not name.startswith(".built_"):
                yield from [path] if path.is_file() and not path.is_symlink() else []


def _hidden(name: str) -> bool:
    return name.startswith(".") and name not in _HIDDEN


def record_of(files: dict[str, Path]) -> bytes:
    """SHA-256 of each file, as JSON."""
    sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if name != RELEASED}
    return (json.dumps({"format": 1, "files": sums}, indent=0, sort_keys=True) + "\n").encode()


def delivered(place: Place) -> dict[str, str]:
    """SHA-256 of the course's files as this copy got them; empty where nothing was recorded."""
    for name in (RECORD, RELEASED):
        if content := place.read(name):
            try:
                return msgspec.convert(json.loads(content)["files"], dict[str, str])
            except (ValueError, KeyError, TypeError, msgspec.ValidationError):
                continue
    return {}


def changed_by_user(names: list[str], place: Place) -> list[str]:
    """Those of `names` that are known not to be as delivered: by the record, or else by git."""
    record = delivered(place)
    edited = {f"/{name}" for name in git_output(place.root, "diff", "--name-only", "-z", "HEAD").split("\0") if name}
    return [name for name in names if (_differs(name, record, place) if record else name in edited)]


def _differs(name: str, record: dict[str, str], place: Place) -> bool:
    content = place.read(name)
    return content is not None and hashlib.sha256(content).hexdigest() != record.get(name)
