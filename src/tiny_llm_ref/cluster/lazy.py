"""Lazy coroutines, as async_simple's `Lazy<T>`: creation runs nothing, awaiting transfers control, errors go upwards.

A task is a stack of suspended coroutines that one loop drives, a trampoline: awaiting pushes, returning pops. So the
depth of awaits is bounded by memory, not by Python's stack. Knows no time and no threads; an executor says where a task
goes on, and a signal tells it to stop.
"""

from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Generator
from functools import partial, wraps
from typing import Generic, ParamSpec, TypeVar

from .awaitable import CURRENT, Context, Err, Ok, Suspend, Try
from .executor import Executor

T = TypeVar("T")
P = ParamSpec("P")


class Lazy(Generic[T]):
    """A task that has not begun. It runs once: awaited, started with a callback, or driven by `sync_await`.

    body: a function that makes the coroutine, or a generator that yields what it awaits.
    """

    def __init__(self, body: Callable[[], Coroutine[object, object, T]], executor: Executor | None = None):
        self.body, self.executor = body, executor
        self.begun = False

    def __await__(self) -> Generator[object, object, T]:
        return (yield self)

    def via(self, executor: Executor) -> "Lazy[T]":
        """The same task, bound to an executor. What it awaits inherits that."""
        return Lazy(self.begin, executor)

    def attempt(self) -> "Lazy[Try[T]]":
        """Its outcome, as a value or an exception: awaiting this does not raise (coAwaitTry)."""

        async def body() -> Try[T]:
            try:
                return Ok(await self)
            except Exception as error:
                return Err(error)

        return Lazy(body)

    def begin(self) -> Coroutine[object, object, T]:
        """Its coroutine. Raises RuntimeError the second time."""
        if self.begun:
            raise RuntimeError("this lazy task has begun: a task runs once, make another one")
        self.begun = True
        return self.body()

    def start(self, callback: Callable[[Try[T]], object], context: Context | None = None) -> None:
        """Run it, and call `callback` with its outcome. With an executor it begins there, else here and now."""
        executor, signal = context or Context()
        task = _Task(callback, Context(self.executor or executor, signal))
        task.post(partial(task.enter, self))


def lazy(function: Callable[P, Coroutine[object, object, T]]) -> Callable[P, Lazy[T]]:
    """Let calls of an `async def` make a Lazy."""

    @wraps(function)
    def create(*args: P.args, **kwargs: P.kwargs) -> Lazy[T]:
        return Lazy(partial(function, *args, **kwargs))

    return create


class _Task:
    """A running task: the stack of its coroutines, the innermost last."""

    def __init__(self, callback: Callable[[Try[object]], object], context: Context):
        self.callback, self.context = callback, context
        self.stack: list[Coroutine[object, object, object]] = []
        self.wait: object | None = None

    def post(self, callback: Callable[[], object]) -> None:
        """Go on where the task belongs."""
        if self.context.executor is None:
            callback()
        else:
            self.context.executor.schedule(callback)

    def enter(self, first: Lazy[object]) -> None:
        """Begin."""
        self.run(self.push(first))

    def push(self, child: Lazy[object]) -> Try[object]:
        """Transfer control to what is awaited. Returns what to send it."""
        try:
            self.stack.append(child.begin())
        except Exception as error:
            return Err(error)
        return Ok(None)

    def run(self, outcome: Try[object] | None) -> None:
        """The trampoline: hand the outcome to the innermost coroutine, until one waits or none is left."""
        while outcome is not None and self.stack:
            inner = self.stack[-1]
            try:
                awaited = inner.throw(outcome.error) if isinstance(outcome, Err) else inner.send(outcome.value)
            except StopIteration as stop:
                self.stack.pop()
                outcome = Ok(stop.value)
            except (Exception, CancelledError) as error:
                self.stack.pop()
                outcome = Err(error)
            else:
                outcome = self.meet(awaited)
        if outcome is not None:
            self.callback(outcome)

    def meet(self, awaited: object) -> Try[object] | None:
        """What the awaited gives at once, None where the task now waits."""
        if awaited is CURRENT:
            return Ok(self.context)
        if isinstance(awaited, Suspend):
            return self.suspend(awaited)
        if not isinstance(awaited, Lazy):
            return Err(TypeError(f"a lazy task can await Lazy and Suspend, not {type(awaited).__name__}"))
        if awaited.executor in (None, self.context.executor):
            return self.push(awaited)
        return self.suspend(Suspend(lambda resume: awaited.start(resume, self.context), shielded=True))

    def suspend(self, awaited: Suspend[object]) -> Try[object] | None:
        """Wait. An outcome that comes before `start` returns is taken here, so that no stack grows."""
        signal = None if awaited.shielded else self.context.signal
        if signal is not None and signal.cancelled:
            return Err(CancelledError())
        wait = self.wait = object()
        starting, early, key = True, None, None

        def resume(outcome: Try[object]) -> None:
            nonlocal early
            if self.wait is not wait:
                return
            self.wait = None
            if signal is not None:
                signal.disconnect(key)
            if starting and self.context.executor is None:
                early = outcome
            else:
                self.post(partial(self.run, outcome))

        if signal is not None:
            key = signal.connect(lambda: resume(Err(CancelledError())))
        try:
            awaited.start(resume)
        except Exception as error:
            resume(Err(error))
        starting = False
        return early


def sync_await(task: Lazy[T], executor: Executor | None = None) -> T:
    """Run a task to its end from code that is no task. Returns its value, or raises its exception.

    Raises RuntimeError where the task waits and nobody is left to resume it, and inside a task of the same executor.
    """
    outcomes: list[Try[T]] = []
    task.start(outcomes.append, Context(executor))
    driver = task.executor or executor
    if driver is not None and not outcomes:
        driver.run(lambda: bool(outcomes))
    if not outcomes:
        raise RuntimeError("the task waits, and nothing is left that could resume it: this would never end")
    return outcomes[0].get()
