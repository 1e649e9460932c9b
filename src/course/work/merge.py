"""Three-way merge of one file: what the course changed in its starter, put into the file that the learner wrote.

Function bodies that the learner wrote, and task regions, are taken as they are: the starter never competes with them,
only with what stands around them. Functions that the learner left alone are taken from the new starter."""

import ast
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from course.errors import CourseError
from course.paths import is_extension
from course.starter.bodies import header_end
from course.starter.regions import bodies_of, replaced
from course.starter.source import Edit, apply, first_line, indent_of, last_line, split_lines
from course.starter.symbols import Function, has_docstring
from course.stub import find_stub
from course.work.functions import Key, function_sources, functions, source_of
from course.work.text import NoText, Text

_LABELS = ("your file", "the starter that you began with", "the new starter")


class Merged(NamedTuple):
    """The merged file; with conflicts it holds markers. `reshaped`: functions you wrote whose signature is new."""

    content: bytes
    conflicts: int
    reshaped: tuple[str, ...] = ()


def merge(name: str, mine: bytes, base: bytes, theirs: bytes) -> Merged:
    """Merge one text file. Raises CourseError where git is missing."""
    try:
        text, before, after = (Text.of(content, name) for content in (mine, base, theirs))
    except NoText:
        return Merged(theirs, 1)
    if is_extension(name):
        sides = [text.body, *(_with_regions(name, text.body, version.body) for version in (before, after))]
    elif all(_parses(version.body) for version in (text, before, after)):
        sides = [*_with_news(text.body, before.body, after.body), after.body]
        sides[1:] = [_with_bodies(text.body, version) for version in sides[1:]]
    else:
        sides = [text.body, before.body, after.body]
    result, conflicts = _merge_file(*sides)
    if not conflicts and name.endswith(".py") and _parses(text.body) and not _parses(result):
        conflicts = 1
    try:
        content = text.with_body(result).content()
    except NoText:
        return Merged(result.encode("utf-8", "surrogateescape"), max(conflicts, 1))
    return Merged(content, conflicts, () if is_extension(name) else _reshaped(text.body, before.body, after.body))


def _merge_file(mine: str, base: str, theirs: str) -> tuple[str, int]:
    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as folder:
        paths = [Path(folder, name) for name in ("mine", "base", "theirs")]
        for path, text in zip(paths, (mine, base, theirs), strict=True):
            path.write_text(text, "utf-8", "surrogateescape", newline="")
        labels = [word for label in _LABELS for word in ("-L", label)]
        command = ["git", "merge-file", "-p", "-q", *labels, *map(str, paths)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=60, stdin=subprocess.DEVNULL, cwd=folder)
        except FileNotFoundError:
            raise CourseError("git is missing, which merges your files with the new ones: install it") from None
    if done.returncode > 127:
        return theirs, 1
    return done.stdout.decode("utf-8", "surrogateescape"), done.returncode


def _with_regions(name: str, mine: str, version: str) -> str:
    """A version of a C++ or Metal file with the task regions that the learner wrote."""
    try:
        own, regions = bodies_of(name, mine), bodies_of(name, version)
    except CourseError:
        return version
    written = {key: body for key, body in own.items() if not find_stub(body) and find_stub(regions.get(key, ""))}
    return replaced(name, version, written)


def _with_news(mine: str, base: str, theirs: str) -> list[str]:
    """The learner's file and its base, with the new form of each function that the learner left alone."""
    own, start, end = (function_sources(text) for text in (mine, base, theirs))
    alone = {key: end[key] for key in end if own.get(key) == start.get(key) is not None}
    alone = {key: text for key, text in alone.items() if indent_of(text) == indent_of(own[key])}
    return [_replaced(text, alone) for text in (mine, base)]


def _replaced(text: str, sources: dict[Key, str]) -> str:
    lines, found = split_lines(text), functions(ast.parse(text))
    edits = [Edit(first_line(found[key]), last_line(lines, found[key]), source) for key, source in sources.items()]
    return apply(text, edits)


def _with_bodies(mine: str, version: str) -> str:
    """A version of a Python file with the function bodies that the learner wrote in place of stubs."""
    own_lines, lines = split_lines(mine), split_lines(version)
    edits = []
    for own, node in _written(mine, version).values():
        span, body = _body(lines, node), _body(own_lines, own)
        if span and body and indent_of(lines[span[0] - 1]) == indent_of(own_lines[body[0] - 1]):
            edits.append(Edit(*span, "".join(own_lines[body[0] - 1 : body[1]])))
    return apply(version, edits)


def _written(mine: str, version: str) -> dict[str, tuple[Function, Function]]:
    """The functions that are stubs in `version` and not in `mine`, as both have them."""
    own, there = functions(ast.parse(mine)), functions(ast.parse(version))
    own_lines, lines = split_lines(mine), split_lines(version)
    return {
        key.name: (own[key], node)
        for key, node in there.items()
        if key in own and find_stub(source_of(lines, node)) and not find_stub(source_of(own_lines, own[key]))
    }


def _body(lines: list[str], node: Function) -> tuple[int, int] | None:
    """First and last line of what follows signature and docstring; None where they share a line."""
    head = node.body[0]
    if has_docstring(node):
        if len(node.body) == 1 or node.body[1].lineno == head.end_lineno:
            return None
        return head.end_lineno + 1, last_line(lines, node)
    if lines[head.lineno - 1][: head.col_offset].strip():
        return None
    return header_end(lines, node) + 1, last_line(lines, node)


def _reshaped(mine: str, base: str, theirs: str) -> tuple[str, ...]:
    if not all(map(_parses, (mine, base, theirs))):
        return ()
    before = {name: _signature(node) for name, (_, node) in _written(mine, base).items()}
    after = {name: _signature(node) for name, (_, node) in _written(mine, theirs).items()}
    return tuple(name for name, signature in after.items() if name in before and before[name] != signature)


def _signature(node: Function) -> str:
    return ast.dump(node.args) + (ast.dump(node.returns) if node.returns else "")


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
