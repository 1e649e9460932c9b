"""Puts functions of one version of a Python file into another one, and leaves the rest of that as it is."""

import ast
import inspect
from collections.abc import Collection

from course.starter.source import Edit, apply, first_line, indent_of, last_line
from course.starter.symbols import Function, definitions, has_docstring
from course.work.functions import Key, functions, source_of
from course.work.needs import Clash, Source, insertions, missing, reindented


class CannotGraft(Exception):
    """Why a file cannot be changed function by function."""


def graft(mine: str, source: str, given: str, keys: Collection[Key]) -> str:
    """`mine` with the functions `keys` of `source`, and the imports and private helpers that they need.

    given: the file as the learner got it; what is in there may have been changed on purpose. Raises CannotGraft.
    """
    own = _parsed(mine)
    other = Source.of(source)
    before, wanted = functions(own.tree), functions(other.tree)
    edits = _replacements(own, other, before, wanted, keys)
    extras = [key for key in before if key not in wanted and key.name in {key.name for key in keys}]
    edits += [Edit(first_line(before[key]), last_line(own.lines, before[key]), "") for key in extras]
    try:
        edits += insertions(own, other, missing(own, other, Source.of(given), keys))
    except Clash as clash:
        raise CannotGraft(f"your {clash} is not the one that the solution needs") from None
    text = apply(mine if mine.endswith("\n") else mine + "\n", edits)
    _check(text, {key: node for key, node in before.items() if key not in extras}, wanted, keys)
    return text


def _parsed(text: str) -> Source:
    try:
        return Source.of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise CannotGraft("the file does not parse" + (f" at line {line}" if line else "")) from None


def _replacements(
    own: Source, other: Source, before: dict[Key, Function], wanted: dict[Key, Function], keys: Collection[Key]
) -> list[Edit]:
    others = {name for name, node in definitions(own.tree.body) if not isinstance(node, Function)}
    edits = []
    for key in keys:
        if key not in before:
            raise CannotGraft(f"{key.name} is not in the file")
        if key.name in others:
            raise CannotGraft(f"{key.name} is more than a function in the file")
        node = before[key]
        indent = indent_of(own.lines[first_line(node) - 1])
        text = reindented(source_of(other.lines, wanted[key]), indent)
        edits.append(Edit(first_line(node), last_line(own.lines, node), text))
    return edits


def _check(text: str, before: dict[Key, Function], wanted: dict[Key, Function], keys: Collection[Key]) -> None:
    """The new functions are in the text, and all others are as they were: else lines were counted differently."""
    try:
        after = functions(ast.parse(text))
    except (SyntaxError, ValueError):
        after = {}
    for key, node in {**before, **{key: wanted[key] for key in keys}}.items():
        if key not in after or _shape(after[key]) != _shape(node):
            raise CannotGraft("the file cannot be taken apart function by function")


def _shape(node: Function) -> str:
    """The syntax of a function, whatever its indent."""
    if has_docstring(node):
        node.body[0].value.value = inspect.cleandoc(node.body[0].value.value)
    return ast.dump(node)
