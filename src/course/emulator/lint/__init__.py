"""What a Mac refuses and a translation to C++ would accept."""

from course.emulator.errors import Problem
from course.emulator.translate.translator import Unit


def lint(unit: Unit) -> list[Problem]:
    """Every problem of the source, in its order."""
    return unit.attributes.unknown(unit.program)
