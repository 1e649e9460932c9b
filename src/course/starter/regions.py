"""Task regions of C++ and Metal sources: the lines between `// begin task: NAME` and `// end task: NAME`.

The two lines stay in the starter, with a statement between them that fails with the task's name."""

import re
from typing import NamedTuple

from course.curriculum import FileSymbols
from course.errors import CourseError
from course.starter.header import header
from course.starter.source import split_lines
from course.starter.symbols import Done, nothing

_MARKER = re.compile(r"\s*//\s*(begin|end) task: (\S+)\s*$")
_ALMOST = re.compile(r"//.*\b(begin|end) task\b")


class Region(NamedTuple):
    """Lines `first` to `last` (counted from 1) are the two comments of the region `name`."""

    name: str
    first: int
    last: int
    indent: str


def regions(file: str, text: str) -> dict[str, Region]:
    """The regions of a source by name, `file` is for errors only. Raises CourseError for comments that do not pair."""
    found: dict[str, Region] = {}
    opened: Region | None = None
    for number, line in enumerate(split_lines(text), 1):
        marker = _MARKER.fullmatch(line)
        if marker is None:
            if _ALMOST.search(line):
                raise CourseError(f"{file}:{number}: write `// begin task: NAME` or `// end task: NAME`, and no more")
            continue
        kind, name = marker.groups()
        if kind == "begin":
            if opened:
                raise CourseError(f"{file}:{number}: {name} begins inside {opened.name}: regions do not nest")
            if name in found:
                raise CourseError(f"{file}:{number}: {name} is a region already at line {found[name].first}")
            opened = Region(name, number, 0, line[: len(line) - len(line.lstrip())])
        else:
            if opened is None or opened.name != name:
                raise CourseError(f"{file}:{number}: {name} ends here, but {opened.name if opened else 'none'} is open")
            found[name] = opened._replace(last=number)
            opened = None
    if opened:
        raise CourseError(f"{file}:{opened.first}: {opened.name} has no end: add `// end task: {opened.name}`")
    return found


def stubbed_source(file: str, text: str, listed: FileSymbols, done: Done = nothing) -> str:
    """The starter's text of one C++ or Metal file. Raises CourseError where its regions are not those listed."""
    found = regions(file, text)
    for name, task in listed.tasks.items():
        if name not in found:
            raise CourseError(
                f'{file}: "{name}" of {task.label} is not in the file: put `// begin task: {name}` and '
                f"`// end task: {name}` around what the learner writes"
            )
    if unknown := sorted(found.keys() - listed.tasks.keys()):
        raise CourseError(f'{file}: the region "{unknown[0]}" is of no task: list it under a task\'s symbols')
    statement = _metal_stub if file.endswith(".metal") else _cpp_stub
    if statement is _cpp_stub and "#include <stdexcept>" not in text:
        raise CourseError(f"{file}: needs `#include <stdexcept>`, because a task's stub throws std::runtime_error")
    bodies = {
        name: f"{found[name].indent}{statement(task.stub(name))}\n"
        for name, task in listed.tasks.items()
        if not done(task)
    }
    return header(listed, "//") + "\n" + _with_bodies(text, found, bodies)


def replaced(file: str, text: str, bodies: dict[str, str]) -> str:
    """The source with other lines in the regions that `bodies` names. Raises CourseError for a region it lacks."""
    found = regions(file, text)
    if unknown := sorted(bodies.keys() - found.keys()):
        raise CourseError(f"{file} has no region {unknown[0]}: choose from {', '.join(found) or 'none'}")
    return _with_bodies(text, found, bodies)


def bodies_of(file: str, text: str) -> dict[str, str]:
    """The lines in each region of a source. Raises CourseError for comments that do not pair."""
    lines = split_lines(text)
    return {name: "".join(lines[region.first : region.last - 1]) for name, region in regions(file, text).items()}


def _with_bodies(text: str, found: dict[str, Region], bodies: dict[str, str]) -> str:
    lines = split_lines(text)
    for name in sorted(bodies, key=lambda name: found[name].first, reverse=True):
        lines[found[name].first : found[name].last - 1] = split_lines(bodies[name])
    return "".join(lines)


def _cpp_stub(message: str) -> str:
    return f'throw std::runtime_error("{message}");'


def _metal_stub(message: str) -> str:
    return f'#error "{message}"'
