"""Lines of a Python source and edits to them: every line that no edit names stays as it is, byte for byte."""

import ast
import re
from typing import NamedTuple

LINE_LENGTH = 120
BLOCK_START = re.compile(r":\s*(#.*)?$")
IMPORT_END = re.compile(r"import |from |\)")
NOT_SPACED = re.compile(r"(?!def |class |async |@|#)")


class Edit(NamedTuple):
    """Replace the lines `first` to `last` (counted from 1, both included) by `text`; "" removes them."""

    first: int
    last: int
    text: str


def split_lines(text: str) -> list[str]:
    """Lines with their ends, counted as `ast` counts them (a form feed ends no line)."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def column(line: str, offset: int) -> int:
    """An `ast` column counts UTF-8 bytes; this is the same place in characters."""
    return len(line.encode()[:offset].decode())


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def first_line(node: ast.stmt | ast.alias) -> int:
    """The line on which a statement starts, decorators included."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


def last_line(lines: list[str], node: ast.stmt) -> int:
    """The last line of a definition, with comments at its end that are indented as its body is."""
    last = here = node.end_lineno
    depth = len(indent_of(lines[node.lineno - 1]))
    while here < len(lines):
        line = lines[here]
        if line.strip() and not (line.lstrip().startswith("#") and len(indent_of(line)) > depth):
            break
        here += 1
        if line.strip():
            last = here
    return last


def with_comments(lines: list[str], node: ast.stmt | ast.alias) -> int:
    """The first line of a statement, with the comments right above it; a comment that opens the file stays."""
    first = first_line(node)
    indent = indent_of(lines[first - 1])
    above = first
    while above > 1 and lines[above - 2].startswith(indent + "#"):
        above -= 1
    return first if above == 1 else above


def stands_alone(lines: list[str], node: ast.stmt) -> bool:
    """Whether no other statement shares the node's lines."""
    start, end = lines[node.lineno - 1], lines[node.end_lineno - 1]
    after = end[column(end, node.end_col_offset) :].strip()
    return not start[: column(start, node.col_offset)].strip() and (not after or after.startswith("#"))


def apply(text: str, edits: list[Edit]) -> str:
    """Apply edits, which must not overlap, from the last to the first."""
    lines = split_lines(text)
    for edit in sorted(edits, reverse=True):
        lines[edit.first - 1 : edit.last] = split_lines(edit.text)
        if not edit.text:
            close_gap(lines, edit.first - 1)
    return "".join(lines)


def close_gap(lines: list[str], at: int) -> None:
    """Leave as many blank lines around a removal at index `at` as a formatter would."""
    before = after = at
    while before > 0 and not lines[before - 1].strip():
        before -= 1
    while after < len(lines) and not lines[after].strip():
        after += 1
    blanks = max(at - before, after - at)
    if before == 0 or after == len(lines) or BLOCK_START.search(lines[before - 1]):
        blanks = 0
    elif IMPORT_END.match(lines[before - 1]) and NOT_SPACED.match(lines[after]):
        blanks = min(blanks, 1)
    lines[before:after] = ["\n"] * blanks
