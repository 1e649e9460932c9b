"""Several lazy tasks at once: all of them, so many at a time, or the first to end.

As async_simple's collectAll, collectAllWindowed and collectAny.
"""

from asyncio import CancelledError
from collections.abc import Callable, Sequence
from typing import TypeVar

from .awaitable import Context, Err, Ok, Suspend, Try
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
    if window is not None and window < 1:
        raise ValueError(f"a window of {window} tasks: nothing would begin, expected at least 1")

    async def body() -> list[Try[T]]:
        outcomes: list[Try[T]] = [Err(CancelledError())] * len(tasks)
        todo = iter(enumerate(tasks))

        async def work() -> None:
            for index, task in todo:
                outcomes[index] = await task.attempt()

        await together([Lazy(work) for _ in tasks[:window]])
        return outcomes

    return Lazy(body)


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
    if not tasks:
        raise ValueError("collect_any of no tasks: nothing would ever end")

    def start(resume: Callable[[Try[tuple[int, Try[T]]]], None], context: Context) -> None:
        children = Context(context.executor, signal or context.signal)
        for index, task in enumerate(tasks):
            task.start(lambda outcome, index=index: resume(Ok((index, outcome))), children)

    async def body() -> tuple[int, Try[T]]:
        try:
            return await Suspend(start)
        finally:
            if signal is not None:
                signal.emit()

    return Lazy(body)
