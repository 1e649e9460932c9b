"""Lints of commands in chapters: each `pdm run` and `./run` line parses with the real command and selects a task."""

import argparse
import re
import shlex
import tomllib
from collections.abc import Iterator
from typing import TextIO

from course.book.library import Library, code_spans
from course.book.page import Finding, Page, fences
from course.curriculum import Curriculum
from course.errors import CourseError
from course.manual import command_module, command_names

SHELLS = ("bash", "sh", "console")
_PLACEHOLDER = re.compile(r"<[a-zA-Z][^<>]*>|\.\.\.$|…")


class _Parser(argparse.ArgumentParser):
    """Reads a line without running it: mistakes are raised, and `--help` shows nothing."""

    def error(self, message: str) -> None:
        raise ValueError(message)

    def print_help(self, file: TextIO | None = None) -> None:
        """Nothing."""


def check(library: Library) -> Iterator[Finding]:
    """All findings of this module."""
    scripts = _scripts(library)
    for page in library.chapters.values():
        for line, number in _command_lines(page):
            for problem in _problems(library.course, scripts, line):
                yield page.finding(
                    number, f"`{line.strip()}`: {problem}", "write a line that runs, or mark <places to fill in>"
                )


def _scripts(library: Library) -> dict[str, list[str]]:
    """Each PDM script that runs a course command, as that command's words: test-refsol -> [test, --solution, ...]."""
    table = tomllib.loads((library.root / "pyproject.toml").read_text(encoding="utf-8"))
    lines = {name: shlex.split(line) for name, line in table["tool"]["pdm"]["scripts"].items() if isinstance(line, str)}
    return {name: words[3:] for name, words in lines.items() if words[:3] == ["python", "-m", "course"]}


def _command_lines(page: Page) -> Iterator[tuple[str, int]]:
    for fence in fences(page.text):
        if fence.language in SHELLS:
            joined, start = "", 0
            for offset, line in enumerate(fence.body.splitlines(), 1):
                start = start or fence.line + offset
                joined += line.removesuffix("\\")
                if not line.endswith("\\"):
                    yield joined, start
                    joined, start = "", 0
    for text, line in code_spans(page):
        if text.startswith(("pdm run", "./run")):
            yield " ".join(text.split()), line


def _problems(course: Curriculum, scripts: dict[str, list[str]], line: str) -> Iterator[str]:
    for words in _commands(line):
        if words[:2] == ["pdm", "run"]:
            words = words[2:]
        elif words[0] == "./run":
            words = words[1:]
        else:
            continue
        if not words or words[0] == "PLACEHOLDER":
            continue
        if words[0] not in scripts:
            if words[0] != "python":  # which `pdm run` and `./run` start as it is
                yield f"there is no command {words[0]!r}"
        elif not _PLACEHOLDER.search(line):
            yield from _parse(course, scripts[words[0]] + words[1:])


def _commands(line: str) -> Iterator[list[str]]:
    """The simple commands of a shell line, as words, without redirections and variables."""
    plain = re.sub(r"\d*>>?\s*(&\d|\S+)", "", re.sub(r"^\s*\$ ", "", line))
    if _PLACEHOLDER.search(line):
        plain = _PLACEHOLDER.sub("PLACEHOLDER", line)
    lexer = shlex.shlex(plain, posix=True, punctuation_chars="();|&")
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        tokens = list(lexer)
    except ValueError:  # an open quote, as in a here-document: no command of ours
        return
    for token in [*tokens, ";"]:
        if set(token) <= set("();|&"):
            if words:
                yield words
            words = []
        elif words or not re.match(r"[A-Za-z_]\w*=", token):
            words.append(token)


def _parse(course: Curriculum, words: list[str]) -> Iterator[str]:
    name, *rest = words
    if name not in command_names():
        yield f"src/course/commands has no {name}"
        return
    parser = _Parser(prog=name)
    command_module(name).add_arguments(parser)
    try:
        args = parser.parse_args(rest)
    except (ValueError, argparse.ArgumentError) as error:
        yield str(error)
        return
    except SystemExit:  # --help
        return
    yield from _selects(course, args)


def _selects(course: Curriculum, args: argparse.Namespace) -> Iterator[str]:
    """A week, day or task that does not exist, or a day without its test file; nothing where none is named."""
    named = (vars(args).get(key) for key in ("week", "day", "task"))
    week, day, task = (value if isinstance(value, int) else None for value in named)
    try:
        if task is not None and day is not None and week is not None:
            course.task(week, day, task)
        days = [course.day(week, day)] if day is not None else (course.week(week).days if week is not None else ())
    except CourseError as error:
        yield str(error)
        return
    for chosen in days:
        if not chosen.tests.exists():
            yield f"{chosen.tests.name} of {chosen.label} does not exist"
