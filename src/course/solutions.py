"""Which solution packages this copy of the course has: the reference may be missing, as in a class's repository.

Every program that takes `--solution` asks here what there is and what runs where nobody says so.
"""

import argparse

from course.errors import CourseError
from course.paths import REFERENCE, SRC

LEARNER = "tiny_llm"
NO_REFERENCE = "this copy of the course has no reference solution"


def has_reference() -> bool:
    """Whether the reference solution is here."""
    return REFERENCE.is_dir()


def require_reference(what: str) -> None:
    """Raises CourseError where there is no reference solution, which `what` needs, such as "`compare`"."""
    if not has_reference():
        raise CourseError(f"{NO_REFERENCE}, which {what} needs: ask your instructor, or use a complete checkout")


def solutions() -> tuple[str, ...]:
    """The packages that are here, the reference first. A checkout without either still knows both names."""
    names = (REFERENCE.name, LEARNER)
    return tuple(name for name in names if (SRC / name).is_dir()) or names


SOLUTIONS = solutions()


def add_solution(parser: "argparse._ActionsContainer", help: str, default: str = SOLUTIONS[0]) -> None:
    """The option `--solution`; `default` is the reference, or the learner's package where there is none."""
    parser.add_argument("--solution", type=_existing, choices=SOLUTIONS, default=default, help=help)


def _existing(name: str) -> str:
    """An argparse `type`: a better message than the list of choices gives, for a name that the book writes."""
    if name == REFERENCE.name and name not in SOLUTIONS:
        raise argparse.ArgumentTypeError(f"{NO_REFERENCE}: use --solution {LEARNER}, or leave it out")
    return name
