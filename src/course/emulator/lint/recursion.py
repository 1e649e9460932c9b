"""Functions that call themselves, directly or through others."""

from collections import Counter

from course.emulator.errors import Problem
from course.emulator.translate.scopes import Function
from course.emulator.translate.translator import Unit


def check(unit: Unit) -> list[Problem]:
    """Cycles among the source's own functions.

    Templates and overloaded names are left out: their calls may end, and what never ends meets the compiler's
    depth limit or the checked build's stack limit.
    """
    names = Counter(function.name for function in unit.scopes.functions)
    plain = {f.name: f for f in unit.scopes.functions if names[f.name] == 1 and not f.is_template}
    calls = {name: _calls(unit, function, plain.keys()) for name, function in plain.items()}
    found = []
    for name, function in plain.items():
        path = _cycle(name, calls)
        if path and unit.is_own(function.params[0] - 1):
            words = " -> ".join(f"`{step}`" for step in path)
            found.append(unit.problem(function.params[0] - 1, f"recursion, {words}: Metal has none, write a loop"))
    return found


def _calls(unit: Unit, function: Function, known: "set[str] | object") -> set[str]:
    first, last = function.body
    program = unit.program
    return {
        program.text(i)
        for i in range(first, last)
        if program.text(i) in known and program.text(i + 1) == "(" and program.text(i - 1) not in (".", "->")
    }


def _cycle(start: str, calls: dict[str, set[str]]) -> list[str]:
    """A shortest way from `start` back to it, [] where there is none."""
    paths = [[start]]
    seen: set[str] = set()
    for path in paths:
        for name in sorted(calls[path[-1]]):
            if name == start:
                return [*path, start]
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    return []
