"""Types of a kernel's thread attributes."""

import re

from course.emulator.errors import Problem
from course.emulator.translate.attributes import ARGUMENTS
from course.emulator.translate.translator import Unit

_UNSIGNED = re.compile(r"u(?:short|int)[23]?|uint(?:16|32)_t|unsigned")
_MEMORY = {"buffer", "threadgroup"}


def check(unit: Unit) -> list[Problem]:
    """Thread attributes of a signed or floating type, and `auto` parameters, which are C++20."""
    return [*_thread_attributes(unit), *_auto(unit)]


def _thread_attributes(unit: Unit) -> list[Problem]:
    found = []
    for group in unit.attributes.groups:
        name = next((item for item, _ in group.items if item in ARGUMENTS and item not in _MEMORY), None)
        type_index = group.start - 2
        if name is None or not unit.is_own(group.start) or _UNSIGNED.fullmatch(unit.program.text(type_index)):
            continue
        text = f"[[{name}]] is a {unit.program.text(type_index)}: Metal wants ushort, uint or a vector of them"
        found.append(unit.problem(group.start, text))
    return found


def _auto(unit: Unit) -> list[Problem]:
    text = "an `auto` parameter is C++20, which Metal does not have: use a template"
    return [
        unit.problem(index, text)
        for function in unit.scopes.functions
        for index in range(*function.params)
        if unit.program.text(index) == "auto" and unit.is_own(index)
    ]
