"""The manual of the commands: what a command's module says of itself, and how that is laid out as a page of help.

Knows the layout only: what a command takes, its parser says. No heavy imports, because every `--help` waits for them."""

from dataclasses import dataclass

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
