"""The functions of a Python source, by qualified name and the how many-th of that name; overloads do not count.

A property has a getter and a setter of one name, a conditional definition has two branches."""

import ast
from collections.abc import Collection
from typing import NamedTuple

from course.curriculum import FileSymbols, Task
from course.starter.source import first_line, last_line, split_lines
from course.starter.symbols import Function, definitions, has_body, is_overload, is_private, listed_under


class Key(NamedTuple):
    """Which function: "Class.method", 0."""

    name: str
    number: int


def functions(tree: ast.Module) -> dict[Key, Function]:
    """All functions and methods, in their order."""
    found: dict[Key, Function] = {}
    count: dict[str, int] = {}
    for name, node in definitions(tree.body):
        if isinstance(node, Function) and not is_overload(node):
            number = count.get(name, 0)
            found[Key(name, number)] = node
            count[name] = number + 1
    return found


def task_functions(tree: ast.Module, listed: FileSymbols, tasks: Collection[Task]) -> dict[Key, str]:
    """The functions that the learner writes in some tasks, each with the listed symbol that covers it."""
    found = {}
    for key, node in functions(tree).items():
        cover, task = listed_under(key.name, listed)
        inherited = cover != key.name
        if task in tasks and cover and not (inherited and (is_private(node.name) or not has_body(node))):
            found[key] = cover
    return found


def source_of(lines: list[str], node: Function) -> str:
    """The lines of a function, with its decorators."""
    return "".join(lines[first_line(node) - 1 : last_line(lines, node)])


def function_sources(text: str) -> dict[Key, str]:
    """The source of each function of a text that parses."""
    lines = split_lines(text)
    return {key: source_of(lines, node) for key, node in functions(ast.parse(text)).items()}
