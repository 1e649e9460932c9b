"""Every pointer and reference says where it points: device, constant, threadgroup or thread."""

from course.emulator.errors import Problem
from course.emulator.lint.types import type_names, type_start
from course.emulator.translate.spaces import QUALIFIERS, SPACES
from course.emulator.translate.translator import Unit


def check(unit: Unit) -> list[Problem]:
    """Pointers and references without an address space."""
    types = type_names(unit.program)
    found = []
    for index in range(len(unit.program)):
        mark = unit.program.text(index)
        if mark not in ("*", "&", "&&") or not unit.is_own(index):
            continue
        start, spaced = _pointee(unit, index, types)
        if start >= 0 and not spaced:
            words = unit.program.snippet(start, index + 1)
            kind = "pointer" if mark == "*" else "reference"
            found.append(unit.problem(index, f"{kind} `{words}` has no address space: {_advice(words)}"))
    return found


def _advice(words: str) -> str:
    return f"write `device {words}`, or constant, threadgroup or thread: where does it point?"


def _pointee(unit: Unit, index: int, types: frozenset[str]) -> tuple[int, bool]:
    """Where the type before `*` or `&` starts (-1: there is none) and whether it has an address space."""
    program = unit.program
    end, spaced = index - 1, False
    while program.text(end) in QUALIFIERS | SPACES:
        spaced |= program.text(end) in SPACES
        end -= 1
    if program.text(end) == "*" and program.text(index) != "&&":  # a pointer to a pointer
        start, _ = _pointee(unit, end, types)
        return start, spaced or program.text(index) == "&"  # a reference to a pointer needs no space of its own
    start = type_start(program, end, types)
    if start < 0:
        return -1, spaced
    before = start - 1
    while program.text(before) in QUALIFIERS | SPACES or program.text(before) == "METAL_FUNC":
        spaced |= program.text(before) in SPACES
        before -= 1
    return start, spaced
