"""Replaces the body of a function by a stub that names its task."""

import ast

from course.starter.source import LINE_LENGTH, Edit, column, first_line, indent_of, last_line
from course.starter.symbols import Function, has_docstring

NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def stub_body(lines: list[str], node: Function, message: str) -> Edit:
    """Keep decorators, signature and docstring of `node`; raise NotImplementedError(message) instead of the rest."""
    head = node.body[0]
    line = lines[first_line(head) - 1]
    start = column(line, head.col_offset)
    own_line = not line[:start].strip()
    indent = line[:start] if own_line else indent_of(lines[node.lineno - 1]) + "    "
    if has_docstring(node):
        first, kept = _after_docstring(lines, node, indent, own_line)
    elif own_line:
        first, kept = header_end(lines, node) + 1, ""
    else:
        first, kept = head.lineno, line[:start].rstrip() + "\n"
    generator = f"{indent}yield  # only makes this a generator: replace it, too\n" * _yields(node)
    return Edit(first, last_line(lines, node), kept + _raise(indent, message) + generator)


def _after_docstring(lines: list[str], node: Function, indent: str, own_line: bool) -> tuple[int, str]:
    """Where the replaced lines begin, and the text of the docstring's own line where it shares one with code."""
    doc = node.body[0]
    start, end = lines[doc.lineno - 1], lines[doc.end_lineno - 1]
    shared_after = len(node.body) > 1 and node.body[1].lineno == doc.end_lineno
    if own_line and not shared_after:
        return doc.end_lineno + 1, "" if end.endswith("\n") else "\n"
    if doc.lineno != doc.end_lineno:
        return doc.end_lineno, end[: column(end, doc.end_col_offset)] + "\n"
    cut = column(start, doc.col_offset)
    stop = column(end, doc.end_col_offset) if shared_after else len(end.rstrip())
    header = "" if own_line else start[:cut].rstrip() + "\n"
    return doc.lineno, header + indent + start[cut:stop] + "\n"


def header_end(lines: list[str], node: Function) -> int:
    """The line of the colon; comments and blank lines between it and the first statement belong to the body."""
    last = first_line(node.body[0]) - 1
    while not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#"):
        last -= 1
    return last


def _raise(indent: str, message: str) -> str:
    """The raise statement as a formatter would leave it; the text stays in one piece so that grep finds it."""
    line = f'{indent}raise NotImplementedError("{message}")\n'
    if len(line) <= LINE_LENGTH + 1:
        return line
    return f'{indent}raise NotImplementedError(\n{indent}    "{message}"\n{indent})\n'


def _yields(node: Function) -> bool:
    """Whether a function is a generator by a yield of its own, not one of a function inside it."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        here = waiting.pop()
        if isinstance(here, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(here, NESTED):
            waiting.extend(ast.iter_child_nodes(here))
    return False
