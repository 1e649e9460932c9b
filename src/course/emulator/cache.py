"""Compiled kernels on disk, found by what went into them; several processes may use the folder at once."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from course.emulator import compiler
from course.emulator.errors import KernelError, Problem
from course.emulator.lint import lint
from course.emulator.places import last_own_lines, source_lines
from course.emulator.preprocess import STUBS, preprocess
from course.emulator.translate.translator import read, translate
from course.paths import cache_folder

KEEP = 600  # compiled kernels; the ones not used for longest go first


def folder() -> Path:
    """Where compiled kernels are kept for this user. Raises KernelError where it cannot be made."""
    path = cache_folder() / "kernels"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def build(source: str, checked: bool, own: frozenset[str]) -> Path:
    """The shared object of a complete Metal source, compiled unless an earlier run has left it.

    `own` names the files that `#line` gives to the author's text: errors are told in their lines.
    Raises KernelError.
    """
    target = folder() / f"{_key(source, checked)}.so"
    if target.exists():
        with contextlib.suppress(OSError):
            os.utime(target)
        return target
    try:
        _compile(source, target, checked, own)
    except OSError as error:
        raise _unwritable(target.parent, error) from None
    except KernelError as error:
        if not error.problems:
            raise
        lines = source_lines(source)
        ends = last_own_lines(lines, own)
        places = [(*ends.get(problem.file, (problem.file, problem.line)), problem.text) for problem in error.problems]
        raise KernelError.of([Problem(*place) for place in places], lines) from None
    _prune(target.parent)
    return target


def _compile(source: str, target: Path, checked: bool, own: frozenset[str]) -> None:
    unit = read(preprocess(source, compiler.compiler()), own)
    problems = lint(unit)
    if problems:
        raise KernelError.of(problems)
    text = translate(unit)
    with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as scratch:
        cpp, built = Path(scratch, "kernel.cpp"), Path(scratch, target.name)
        cpp.write_text(text, encoding="utf-8")
        compiler.compile_to(built, cpp, checked, own)
        lines = built.with_name(f"{target.name}.dSYM")  # on a Mac
        if lines.exists() and not target.with_name(lines.name).exists():
            lines.replace(target.with_name(lines.name))
        built.replace(target)


def _unwritable(place: Path, error: OSError) -> KernelError:
    return KernelError(f"cannot keep compiled kernels in {place} ({error.strerror}): make room, or set XDG_CACHE_HOME")


def _key(source: str, checked: bool) -> str:
    """Everything that decides what the compiler makes: source, translator, headers, compiler and flags."""
    path = compiler.compiler()
    parts = [source, repr(checked), _tools(), path, compiler.version(path), *compiler.flags(path, checked)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


@cache
def _tools() -> str:
    """A digest of the translator and of the headers."""
    here = Path(__file__).parent
    files = [*here.glob("*.py"), *here.glob("*/*.py"), *compiler.INCLUDE.rglob("*"), *STUBS.rglob("*")]
    digest = hashlib.sha256()
    for file in sorted(path for path in files if path.is_file()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _prune(place: Path) -> None:
    """Keep the folder small. Another process may delete the same files."""
    with contextlib.suppress(OSError):
        kept = sorted(place.glob("*.so"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in kept[KEEP:]:
            old.unlink(missing_ok=True)
            shutil.rmtree(old.with_name(f"{old.name}.dSYM"), ignore_errors=True)
