"""Who waits, and for what: what a run says when it cannot go on."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import Task

    from .virtual_loop import VirtualLoop


ROUNDS = 100_000
"""Rounds of callbacks in one nanosecond, after which a loop is taken to be caught in it."""


class DeadlockError(RuntimeError):
    """Tasks wait, and nothing is left to happen that could wake them."""


class LivelockError(RuntimeError):
    """Tasks keep each other busy, and time stands still."""


def waiting(loops: "Iterable[VirtualLoop]") -> str:
    """The tasks that have not ended, one a line, with where they wait."""
    tasks = (task for loop in loops if not loop.crashed for task in loop.tasks)
    return "\n".join(f"  {task.get_name()} in {place(task)}" for task in tasks)


def place(task: "Task[object]") -> str:
    """Where a task waits: the innermost coroutine that can be seen, its file and line."""
    coro = task.get_coro()
    found = coro.__qualname__
    while (frame := getattr(coro, "cr_frame", None) or getattr(coro, "ag_frame", None)) is not None:
        found = f"{coro.__qualname__} ({frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"
        coro = getattr(coro, "cr_await", None) or getattr(coro, "ag_await", None)
    return found


class Watchdog:
    """Counts the rounds of a loop in which time stands still."""

    def __init__(self) -> None:
        self.rounds = self.time = 0

    def look(self, loop: "VirtualLoop") -> None:
        """Another round. Raises LivelockError where there are too many."""
        self.rounds = self.rounds + 1 if self.time == loop.now else 0
        self.time = loop.now
        if self.rounds > ROUNDS:
            self.rounds = 0
            raise LivelockError(f"{loop.now} ns, {ROUNDS} rounds of {loop.name}:\n{waiting(loop.processes)}")
