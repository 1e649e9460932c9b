"""Macros and `#include` of a Metal source, by the C++ compiler's own preprocessor and empty Metal headers."""

import re
from pathlib import Path

from course.emulator.errors import KernelError, Problem
from course.emulator.process import run

STUBS = Path(__file__).with_name("stubs")
TIMEOUT = 20.0  # seconds; a source takes milliseconds

_FLAGS = ("-E", "-x", "c++", "-std=gnu++20", "-nostdinc", "-undef", "-D__METAL__=1", "-D__METAL_VERSION__=310")
_LINE = re.compile(r'^\s*#line \d+ "(.*)"$', re.MULTILINE)
_MARKER = re.compile(r'# (\d+) "(.*?)"(?: \d)*$')
_NO_FILES = frozenset({"<stdin>", "<built-in>", "<command-line>", "<command line>"})  # names of the preprocessor's own
_MESSAGE = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)


def preprocess(source: str, compiler: str, *folders: Path) -> str:
    """The source with its macros expanded and comments gone; line markers tell where each line came from.

    folders: of further headers, after the Metal ones. Raises KernelError with file and line for an unknown header or
    one that is not in these folders, an open comment or `#if`, and for `#error`, whose text it carries.
    """
    bad = next((i for i, letter in enumerate(source) if _is_odd(letter)), -1)
    if bad >= 0:
        raise KernelError.of([Problem(*_place(source, bad), f"cannot read {source[bad]!r}: delete that character")])
    places = [word for folder in (STUBS, *folders) for word in ("-I", str(folder))]
    command = [compiler, *_FLAGS, *places, "-"]
    result = run(command, TIMEOUT, stdin=source)
    if result.status == 0:
        if stranger := _stranger(result.stdout, _NO_FILES | {*_LINE.findall(source)}, (STUBS, *folders)):
            raise KernelError.of([stranger])
        return result.stdout
    problems = [
        Problem(match["file"].replace("<stdin>", "kernel"), int(match["line"]), _words(match["text"]))
        for match in _MESSAGE.finditer(result.stderr)
    ]
    if not problems:
        raise KernelError(f"the preprocessor of {compiler} failed: {result.stderr.strip()[-400:] or 'no message'}")
    raise KernelError.of(problems)


def _stranger(text: str, known: frozenset[str], folders: tuple[Path, ...]) -> Problem | None:
    """The first place from which text comes that is neither of a `known` file nor of one in `folders`."""
    file, line = "kernel", 1
    for words in text.split("\n"):
        marker = _MARKER.match(words)
        if not marker:
            line += 1
            continue
        if marker[2] not in known and not any(Path(marker[2]).is_relative_to(folder) for folder in folders):
            return Problem(file, line, f"{_words(f'{marker[2]}: No such file or directory')}, and no #line")
        file, line = marker[2], int(marker[1])
    return None


def _is_odd(letter: str) -> bool:
    return not letter.isprintable() and letter not in "\t\n\r\f\v"


def _place(source: str, index: int) -> tuple[str, int]:
    """File and line of a character, by the last `#line` before it."""
    file, line = "kernel", 1
    for text in source[:index].split("\n")[:-1]:
        marker = re.match(r'\s*#line (\d+) "(.*)"', text)
        line += 1
        if marker:
            file, line = marker[2], int(marker[1])
    return file, line


def _words(text: str) -> str:
    missing = re.match(r"(\S+): No such file or directory|'(\S+)' file not found", text)
    if missing:
        header = missing[1] or missing[2]
        return f"no header {header}: a kernel may include <metal_stdlib> and the other Metal headers only"
    return text.removeprefix("#error ")
