"""A learner's tree of the real course in a temporary folder, for tests of what changes it."""

import subprocess
import sys
from functools import cache
from pathlib import Path

from course.curriculum import Curriculum, load
from course.paths import REFERENCE, ROOT
from course.starter import render, write
from course.work.place import Place


@cache
def curriculum() -> Curriculum:
    return load()


@cache
def starter() -> dict[str, bytes]:
    """The untouched starter."""
    return render(curriculum(), REFERENCE)


@cache
def solved() -> dict[str, bytes]:
    """The starter with every task done."""
    return render(curriculum(), REFERENCE, lambda task: True)


def make_place(root: Path, files: dict[str, bytes]) -> Place:
    """A place whose learner's files are `files`, with the reference of this repository."""
    place = Place(root, root / "src" / "tiny_llm", REFERENCE)
    write(files, place.package)
    return place


def tree(place: Place) -> dict[str, bytes]:
    """All learner's files."""
    return {name: place.file(name).read_bytes() for name in place.names()}


def undefined_names(folder: Path, rules: str = "F821") -> str:
    """What ruff finds: names that no import or definition brings (F821), imports that nothing uses (F401)."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "-q", "--select", rules, folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    return done.stdout + done.stderr
