"""What the learner's files hold of a task: its source, and the symbols that are still stubs."""

import ast

from course.curriculum import Curriculum, Task
from course.errors import CourseError
from course.paths import is_extension
from course.starter.regions import bodies_of
from course.starter.source import split_lines
from course.work.functions import functions, source_of, task_functions
from course.work.place import HERE, Place


def task_source(curriculum: Curriculum, task: Task, name: str, text: str) -> dict[str, str]:
    """The source of a task's functions or regions in a file, by symbol; what is not there is left out.

    Nothing for a text that does not parse.
    """
    if is_extension(name):
        try:
            bodies = bodies_of(name, text)
        except CourseError:
            return {}
        return {symbol: bodies[symbol] for symbol in task.symbols.get(name, ()) if symbol in bodies}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    lines, found = split_lines(text), functions(tree)
    sources: dict[str, str] = {}
    for key in task_functions(tree, curriculum.files[name], [task]):
        sources[key.name] = sources.get(key.name, "") + source_of(lines, found[key])
    return sources


def unwritten(task: Task, place: Place = HERE) -> tuple[str, ...]:
    """The symbols whose stub is still in the learner's files, or whose file is missing; () once all are written."""
    found = []
    for name, symbols in task.symbols.items():
        content = place.read(name)
        text = None if content is None else content.decode("utf-8", "replace")
        found += [symbol for symbol in symbols if text is None or _is_stub(task, symbol, text)]
    return tuple(found)


def _is_stub(task: Task, symbol: str, text: str) -> bool:
    """Whether a text holds the stub of a symbol, or, for a class that is a task, of one of its methods."""
    start = f"{task.label}: {symbol}"
    return f"{start} - see " in text or f"{start}." in text
