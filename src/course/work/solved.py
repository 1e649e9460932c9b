"""A task in the reference beside the same task in the learner's files: source text, no judgement."""

from typing import NamedTuple

from course.curriculum import Curriculum, Task
from course.paths import is_extension, source_file
from course.work.functions import Key, functions, source_of, task_functions
from course.work.needs import Source, bindings, missing
from course.work.place import HERE, Place
from course.work.pristine import pristine_file
from course.work.source import task_source
from course.work.text import NoText, Text


class Solved(NamedTuple):
    """One file's part of a task: how the learner wrote it ("" where it is not to be found), and the reference."""

    name: str
    mine: str
    reference: str


def solved(curriculum: Curriculum, task: Task, place: Place = HERE) -> list[Solved]:
    """The task's functions and regions, file by file, in Python with the imports and helpers they brought along."""
    found = []
    for name in task.symbols:
        reference = source_file(place.reference, name).read_text(encoding="utf-8")
        parts = _parts if not is_extension(name) else _regions
        found.append(Solved(name, *parts(curriculum, task, name, _mine(name, place), reference, place)))
    return found


def _mine(name: str, place: Place) -> str:
    content = place.read(name)
    try:
        return "" if content is None else Text.of(content, name).body
    except NoText:
        return ""


def _regions(curriculum: Curriculum, task: Task, name: str, mine: str, reference: str, place: Place) -> tuple[str, str]:
    sides = (task_source(curriculum, task, name, text) for text in (mine, reference))
    ours, theirs = ("\n".join(f"// {symbol}\n{body}" for symbol, body in side.items()) for side in sides)
    return ours, theirs


def _parts(curriculum: Curriculum, task: Task, name: str, mine: str, reference: str, place: Place) -> tuple[str, str]:
    """Helpers are those that the untouched file lacks; of the learner's file, those of the same names."""
    given = Source.of(pristine_file(curriculum, name, place).decode())
    other = Source.of(reference)
    keys = task_functions(other.tree, curriculum.files[name], [task])
    helpers = missing(given, other, given, keys)
    theirs = _written(other, helpers, list(keys))
    if not task_source(curriculum, task, name, mine):
        return "", theirs
    return _written(Source.of(mine), helpers, list(keys)), theirs


def _written(source: Source, helpers: list[str], keys: list[Key]) -> str:
    """Imports, then the rest, in the order of the file."""
    bound, found = bindings(source), functions(source.tree)
    needed = [bound[name] for name in helpers if name in bound]
    imports = "".join(dict.fromkeys(binding.statement for binding in needed if binding.is_import))
    blocks = {binding.node.lineno: binding.statement for binding in needed if not binding.is_import}
    blocks |= {found[key].lineno: source_of(source.lines, found[key]) for key in keys if key in found}
    return "\n".join(filter(None, [imports, *(blocks[line] for line in sorted(blocks))]))
