# This file is yours to edit. Read book/src/week4-02-workloads-and-slos.md.
"""Several lazy tasks at once: all of them, so many at a time, or the first to end.

As async_simple's collectAll, collectAllWindowed and collectAny.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from .awaitable import Context, Ok, Suspend, Try
from .lazy import Lazy
from .signal import Signal

T = TypeVar("T")


def collect_all(tasks: Sequence[Lazy[T]], window: int | None = None) -> Lazy[list[Try[T]]]:
    """The outcomes of all tasks, in the order of `tasks`; one that raises does not stop the others.

    At most `window` have begun and not ended at any time; None for no bound. With a queue for an executor they take
    turns there; without one each runs until it waits or ends, and only then does the next begin: serial, unless they
    wait. Told to stop, it returns when all that began have ended; Err(CancelledError()) stands for those that were
    stopped, or had not begun. Raises ValueError, at once, for a window below 1.
    """
    raise NotImplementedError("Week 4 Day 2 Task 3: collect_all - see book/src/week4-02-workloads-and-slos.md#task-3")


def together(tasks: Sequence[Lazy[object]]) -> Suspend[None]:
    """Wait until all of them have ended, also where they are told to stop."""

    def start(resume: Callable[[Try[None]], None], context: Context) -> None:
        ended: list[Try[object]] = []

        def end(outcome: Try[object]) -> None:
            ended.append(outcome)
            if len(ended) == len(tasks):
                resume(Ok(None))

        if not tasks:
            resume(Ok(None))
        for task in tasks:
            task.start(end, context)

    return Suspend(start, shielded=True)


def collect_any(tasks: Sequence[Lazy[T]], signal: Signal | None = None) -> Lazy[tuple[int, Try[T]]]:
    """The index and the outcome of the task that ends first.

    The others run on, detached: what they hold they keep until they end. With a `signal` they are told to stop then,
    and also when the one who waits is. Raises ValueError, at once, without a task: nothing would ever end.
    """
    raise NotImplementedError("Week 4 Day 2 Task 3: collect_any - see book/src/week4-02-workloads-and-slos.md#task-3")
