"""Several lazy tasks at once: all of them, so many at a time, or the first to end.

As async_simple's collectAll and collectAny.
"""

from asyncio import CancelledError
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from .awaitable import CURRENT, Context, Err, Ok, Suspend, Try
from .lazy import Lazy
from .signal import Signal

T = TypeVar("T")


def collect_all(tasks: Sequence[Lazy[T]], window: int | None = None) -> Lazy[list[Try[T]]]:
    """The outcomes of all tasks, in the order of `tasks`; one that raises does not stop the others.

    At most `window` have begun and not ended at any time; None for no bound. With an executor they take turns there;
    without one each runs here until it waits or ends, and only then does the next begin: serial, unless they wait.
    Raises ValueError for a window below 1.
    """
    if window is not None and window < 1:
        raise ValueError(f"a window of {window} tasks: nothing would begin, expected at least 1")

    async def body() -> list[Try[T]]:
        context = await CURRENT
        return await Suspend(_Window(tasks, window or len(tasks), context).start, shielded=True)

    return Lazy(body)


class _Window(Generic[T]):
    """Tasks of which some run. A task that ends lets the next begin, in a loop: nothing nests."""

    def __init__(self, tasks: Sequence[Lazy[T]], window: int, context: Context):
        self.todo = iter(enumerate(tasks))
        self.outcomes: list[Try[T]] = [Err(CancelledError())] * len(tasks)
        self.left, self.free, self.context = len(tasks), window, context
        self.filling = False

    def start(self, resume: Callable[[Try[list[Try[T]]]], None]) -> None:
        """Begin the first ones."""
        self.resume = resume
        self.fill()

    def fill(self) -> None:
        """Begin tasks while the window has room; resume who waits once all have ended."""
        if self.filling:
            return
        self.filling = True
        while self.free and (item := next(self.todo, None)) is not None:
            self.free -= 1
            item[1].start(partial(self.ended, item[0]), self.context)
        self.filling = False
        if not self.left:
            self.resume(Ok(self.outcomes))

    def ended(self, index: int, outcome: Try[T]) -> None:
        """Note an outcome."""
        self.outcomes[index] = outcome
        self.left -= 1
        self.free += 1
        self.fill()


def collect_any(tasks: Sequence[Lazy[T]], signal: Signal | None = None) -> Lazy[tuple[int, Try[T]]]:
    """The index and the outcome of the task that ends first.

    The others run on, detached: what they hold they keep until they end. With a `signal` they are told to stop then,
    and also when the one who waits is. Raises ValueError without a task: nothing would ever end.
    """
    if not tasks:
        raise ValueError("collect_any of no tasks: nothing would ever end")

    async def body() -> tuple[int, Try[T]]:
        executor, outer = await CURRENT
        key = outer.connect(signal.emit) if outer is not None and signal is not None else None
        children = Context(executor, signal or outer)

        def start(resume: Callable[[Try[tuple[int, Try[T]]]], None]) -> None:
            for index, task in enumerate(tasks):
                task.start(lambda outcome, index=index: resume(Ok((index, outcome))), children)

        try:
            return await Suspend(start, shielded=True)
        finally:
            if outer is not None:
                outer.disconnect(key)
            if signal is not None:
                signal.emit()

    return Lazy(body)
