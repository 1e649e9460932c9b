"""Who waits, and for what: what a run says when it cannot go on."""

from asyncio import Task
from collections.abc import Iterable


class DeadlockError(RuntimeError):
    """Tasks wait, and nothing is left to happen that could wake them."""


class LivelockError(RuntimeError):
    """Tasks keep each other busy, and time stands still."""


# ANCHOR: waiting
def waiting(tasks: Iterable[Task[object]]) -> str:
    """One line for each task: its name, and where it waits."""
    return "\n".join(f"  {task.get_name()} in {place(task)}" for task in tasks)


def place(task: Task[object]) -> str:
    """The innermost coroutine of a task that can be seen, its file and line."""
    coro = task.get_coro()
    found = coro.__qualname__
    while (frame := getattr(coro, "cr_frame", None) or getattr(coro, "ag_frame", None)) is not None:
        found = f"{coro.__qualname__} ({frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"
        coro = getattr(coro, "cr_await", None) or getattr(coro, "ag_await", None)
    return found
    # ANCHOR_END: waiting
