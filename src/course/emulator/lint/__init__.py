"""What a Mac refuses and a translation to C++ would accept.

Each module knows one rule of the Metal Shading Language and has `check(unit)`, which returns problems."""

from course.emulator.errors import Problem
from course.emulator.lint import mixups, parameters, pointers, recursion, variables, words
from course.emulator.translate.translator import Unit

_RULES = (words, pointers, mixups, parameters, variables, recursion)


def lint(unit: Unit) -> list[Problem]:
    """Every problem of the source, in the order of the rules."""
    return unit.attributes.unknown(unit.program) + [problem for rule in _RULES for problem in rule.check(unit)]
