"""What a command says of itself: its manual, from which `--help`, the book and the tests of the examples are made.

Knows no layout (that is `course.help_page`), no options (those are in the parser), and imports nothing heavy."""

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from course.paths import BOOK, REFERENCE, ROOT

GROUPS = {
    "for learners": (
        "doctor",
        "test",
        "watch",
        "status",
        "hint",
        "solution",
        "compare",
        "reset",
        "checkout",
        "restore",
        "starter",
        "update",
        "build-ext",
        "kernel",
    ),
    "to run the engine": ("main", "serve", "batch", "bench", "sim"),
    "for instructors": ("grade", "class", "release"),
    "for maintainers": ("book", "lint", "mutants", "gates", "soak"),
}
"""All commands, in the order in which one needs them."""
OTHERS = "others"
EXITS = ((0, "done"), (2, "a mistake; one line on standard error says what to change"))


@dataclass(frozen=True)
class Example:
    """A line that works, and what it does.

    line: `pdm run NAME ...`, without pipes or variables. needs: the preparation, by its name in tests/test_manual.py.
    ends: its exit status. untried: why no test runs it (a terminal, the network, minutes); it is parsed all the same.
    """

    line: str
    does: str
    needs: str = ""
    ends: int = 0
    untried: str = ""

    @property
    def of_reference(self) -> bool:
        """Whether it works only where the reference solution is."""
        return bool(re.search(rf"{REFERENCE.name}|-ref(sol)?\b", self.line))


@dataclass(frozen=True)
class Manual:
    """What the module of a command tells: in one line, in paragraphs, by examples; files, exit statuses, what else."""

    name: str
    help: str
    about: str
    examples: tuple[Example, ...]
    files: tuple[tuple[str, str], ...] = ()
    exits: tuple[tuple[int, str], ...] = EXITS
    see_also: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str) -> "Manual":
        """The manual of the command `name`, which must be one. What this copy of the course lacks is left out."""
        told = vars(command_module(name))
        return cls(
            name,
            told["HELP"],
            told.get("ABOUT", "").strip(),
            tuple(one for one in told.get("EXAMPLES", ()) if REFERENCE.is_dir() or not one.of_reference),
            told.get("FILES", ()),
            told.get("EXITS", EXITS),
            tuple(filter(_is_here, told.get("SEE_ALSO", ()))),
        )


def command_names() -> list[str]:
    """Names of all commands, from the files in `course/commands`: `build_ext.py` is the command `build-ext`."""
    folder = Path(__file__).with_name("commands")
    return sorted(p.stem.replace("_", "-") for p in folder.glob("*.py") if p.stem != "__init__")


def command_module(name: str) -> ModuleType:
    """The module of the command `name`, which must be one."""
    return importlib.import_module(f"course.commands.{name.replace('-', '_')}")


def _is_here(name: str) -> bool:
    """A command, a chapter of the book, or another file of the repository, in this copy of the course."""
    return name in command_names() or (BOOK / "src" / name).is_file() or (ROOT / name).is_file()


def grouped() -> dict[str, list[str]]:
    """The commands that there are, in groups; those that no group lists come last."""
    names = command_names()
    listed = {name for group in GROUPS.values() for name in group}
    groups = GROUPS | {OTHERS: tuple(name for name in names if name not in listed)}
    present = {title: [name for name in group if name in names] for title, group in groups.items()}
    return {title: group for title, group in present.items() if group}
