# This file is yours to edit. Read book/src/week4-02-workloads-and-slos.md.
"""Lazy coroutines, as async_simple's `Lazy<T>`: creation runs nothing, awaiting transfers control, errors go upwards.

A task is a stack of suspended coroutines that one loop drives, a trampoline: awaiting pushes, returning pops. So the
depth of awaits is bounded by memory, not by Python's stack. Knows no time and no threads.
"""

from collections.abc import Callable, Coroutine, Generator
from functools import partial, wraps
from typing import Generic, ParamSpec, TypeVar

from .awaitable import Context, Err, Ok, Suspend, Try
from .executor import HERE, Here

T = TypeVar("T")
P = ParamSpec("P")


# ANCHOR: lazy
class Lazy(Generic[T]):
    """A task that has not begun.

    It runs once: awaited, started with a callback, or driven by `sync_await`.

    body: a function that makes the coroutine, or a generator that yields what
    it awaits. executor: where it runs; None for where who awaits it runs.
    """

    def __init__(self, body: Callable[[], Coroutine[object, object, T]], executor: Here | None = None):
        self.body, self.executor = body, executor
        self.begun = False

    def __await__(self) -> Generator[object, object, T]:
        return (yield self)

    # ANCHOR_END: lazy

    def via(self, executor: Here) -> "Lazy[T]":
        """The same task, bound to an executor. What it awaits inherits that."""
        return Lazy(self.begin, executor)

    def attempt(self) -> "Lazy[Try[T]]":
        """Its outcome, as a value or an exception: awaiting this does not raise (coAwaitTry)."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 3: Lazy.attempt - see book/src/week4-02-workloads-and-slos.md#task-3"
        )

    def begin(self) -> Coroutine[object, object, T]:
        """Its coroutine. Raises RuntimeError the second time."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 3: Lazy.begin - see book/src/week4-02-workloads-and-slos.md#task-3"
        )

    def start(self, callback: Callable[[Try[T]], object], context: Context | None = None) -> None:
        """Run it, and call `callback` with its outcome. It begins on its own executor, else on the context's."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 3: Lazy.start - see book/src/week4-02-workloads-and-slos.md#task-3"
        )


def lazy(function: Callable[P, Coroutine[object, object, T]]) -> Callable[P, Lazy[T]]:
    """Let calls of an `async def` make a Lazy."""

    @wraps(function)
    def create(*args: P.args, **kwargs: P.kwargs) -> Lazy[T]:
        return Lazy(partial(function, *args, **kwargs))

    return create


# ANCHOR: running
class Running:
    """A task that has begun.

    stack: its coroutines, the innermost last. outcome: what the innermost is to
    be sent, None while it waits. running: whether `run` is on Python's stack.
    waiting: the wait that may resume it, as any object of its own.
    """

    def __init__(self, callback: Callable[[Try[object]], object], context: Context):
        self.callback, self.context = callback, context
        self.stack: list[Coroutine[object, object, object]] = []
        self.outcome: Try[object] | None = None
        self.running = False
        self.waiting: object | None = None

    def enter(self, task: Lazy[object]) -> None:
        """Begin with a task."""
        self.push(task)
        self.run()

    def push(self, task: Lazy[object]) -> None:
        """Put the coroutine of a task on the stack, to be sent None.

        Where that raises, the exception is sent to who awaited it.
        """
        try:
            self.stack.append(task.begin())
            self.outcome = Ok(None)
        except Exception as error:
            self.outcome = Err(error)

    def resume(self, outcome: Try[object]) -> None:
        """Go on. A wait that ends at once must not nest: `run` sees to it."""
        self.outcome = outcome
        if not self.running:
            self.run()

    def meet(self, awaited: object) -> None:
        """Begin what the innermost coroutine awaits."""
        if isinstance(awaited, Suspend):
            self.wait(awaited)
        elif not isinstance(awaited, Lazy):
            self.outcome = Err(TypeError(f"a lazy task awaits Lazy and Suspend, not {type(awaited).__name__}"))
        elif awaited.executor in (None, self.context.executor):
            self.push(awaited)
        else:
            self.wait(Suspend(awaited.start, shielded=True))

    # ANCHOR_END: running

    def run(self) -> None:
        """The trampoline: send each outcome to the innermost coroutine, until it waits or none is left.

        A coroutine that returns or raises leaves the stack, and what came of it is the outcome for the next one. The
        outcome of the last one goes to the callback.
        """
        raise NotImplementedError(
            "Week 4 Day 2 Task 3: Running.run - see book/src/week4-02-workloads-and-slos.md#task-3"
        )

    def wait(self, awaited: Suspend[object]) -> None:
        """Start a wait, which ends when somebody resumes it, or the signal tells this task to stop: once.

        The task goes on by `resume`, on its executor. An exception of `start` ends the wait too.
        """
        raise NotImplementedError(
            "Week 4 Day 2 Task 3: Running.wait - see book/src/week4-02-workloads-and-slos.md#task-3"
        )


def sync_await(task: Lazy[T], executor: Here = HERE) -> T:
    """Run a task to its end from code that is no task. Returns its value, or raises its exception.

    A task that is bound runs on its own executor, any other on `executor`: that one is run until the task has ended.

    Raises RuntimeError where the task waits and nobody is left to resume it, and inside a task of the same executor.
    """
    raise NotImplementedError("Week 4 Day 2 Task 3: sync_await - see book/src/week4-02-workloads-and-slos.md#task-3")
