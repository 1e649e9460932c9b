"""Which address space the names of a function belong to, as far as their declarations say it plainly."""

from collections.abc import Iterable
from dataclasses import dataclass

from course.emulator.lint.types import type_names, type_start
from course.emulator.translate.program import Program
from course.emulator.translate.scopes import Function
from course.emulator.translate.spaces import QUALIFIERS
from course.emulator.translate.translator import Unit

_SPACES = ("device", "constant", "threadgroup", "thread")


@dataclass(frozen=True)
class Name:
    """A variable: a pointer to memory of a space, or an object that lies in it."""

    space: str
    is_pointer: bool


class Memory:
    """The spaces of declared names, and of the expressions that are nothing but such a name with an index or offset."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._program = program = unit.program
        self._types = type_names(unit.program)
        self._indexed = {program.text(i) for i in range(len(program)) if program.text(i + 1) == "["}
        scopes = unit.scopes
        outside = [i for i in range(len(unit.program)) if scopes.kind_at(i) == "namespace" and scopes.is_variable(i)]
        self._constants = self._collect(outside)

    def names(self, function: Function) -> dict[str, Name]:
        """Names that mean one thing in the whole function; one declared twice in different spaces is left out."""
        found = self._constants | self._collect([*range(*function.params), *range(*function.body)])
        for declaration in self._unit.threadgroup.declarations:
            if function.body[0] < declaration.start < function.body[1]:
                found |= {name: Name("threadgroup", False) for name, _ in declaration.declarators}
        return {name: kind for name, kind in found.items() if kind}

    def _collect(self, indices: Iterable[int]) -> dict[str, Name | None]:
        """The declarations among these tokens; None for a name that is declared in several ways."""
        found: dict[str, Name | None] = {}
        for index in indices:
            declared = self._declared(index)
            if declared:
                name = self._program.text(index)
                found[name] = declared if found.get(name, declared) == declared else None
        return found

    def _declared(self, index: int) -> Name | None:
        """What the name at `index` is, where that is its declaration: `device T* x`, `thread T& x` or `T x[...]`."""
        program = self._program
        if program.kind(index) != "name" or program.text(index) in QUALIFIERS:
            return None
        mark = index - 1
        while program.text(mark) in ("const", "volatile"):
            mark -= 1
        is_pointer, is_reference = program.text(mark) == "*", program.text(mark) == "&"
        end = mark - 1 if is_pointer or is_reference else mark
        start = type_start(program, end, self._types)
        if start < 0:
            return None
        space, before = "thread", start - 1
        while program.text(before) in QUALIFIERS or program.text(before) in _SPACES:
            space = program.text(before) if program.text(before) in _SPACES else space
            before -= 1
        if is_pointer or is_reference or program.text(index + 1) == "[":
            return Name(space, is_pointer)
        return Name(space, False) if program.text(index + 1) in ("=", ";") and space == "thread" else None

    def pointed(self, start: int, end: int, names: dict[str, Name]) -> str | None:
        """The space that the pointer expression `start:end` points to; None where it is not plain."""
        program = self._program
        if program.text(start) == "&":
            return self.lies_in(start + 1, end, names)
        name = names.get(program.text(start))
        if name is None or (program.text(start + 1) not in ("+", "-", ";", ",", ")") and start + 1 < end):
            return None
        if self._is_compared(start, end) or (not name.is_pointer and program.text(start) not in self._indexed):
            return None
        return name.space

    def lies_in(self, start: int, end: int, names: dict[str, Name]) -> str | None:
        """The space of the object that `start:end` names; None where it is not plain."""
        program = self._program
        dereferenced = program.text(start) == "*"
        start += dereferenced
        name = names.get(program.text(start))
        place = start + 1
        indices = 0
        while place < end and program.text(place) == "[":
            place = program.partner[place] + 1
            indices += 1
        if name is None or place != end:
            return None
        if name.is_pointer:
            return name.space if dereferenced or indices else None
        return name.space

    def _is_compared(self, start: int, end: int) -> bool:
        compared = {"<", ">", "==", "!=", "<=", ">=", "?", "&&", "||"}
        return any(self._program.text(i) in compared for i in range(start, end))


def arguments(program: Program, opening: int) -> list[tuple[int, int]]:
    """The argument ranges of the call whose parenthesis stands at `opening`."""
    return program.split(opening + 1, program.partner[opening])
