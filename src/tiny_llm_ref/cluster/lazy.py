"""Lazy coroutines, as async_simple's `Lazy<T>`: creation runs nothing, awaiting transfers control, errors go upwards.

A task is a stack of suspended coroutines that one loop drives, a trampoline: awaiting pushes, returning pops. So the
depth of awaits is bounded by memory, not by Python's stack. Knows no time and no threads.
"""

from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Generator
from functools import partial, wraps
from typing import Generic, ParamSpec, TypeVar

from .awaitable import Context, Err, Ok, Suspend, Try
from .executor import HERE, Here

T = TypeVar("T")
P = ParamSpec("P")


class Lazy(Generic[T]):
    """A task that has not begun. It runs once: awaited, started with a callback, or driven by `sync_await`.

    body: a function that makes the coroutine, or a generator that yields what it awaits.
    """

    def __init__(self, body: Callable[[], Coroutine[object, object, T]], executor: Here | None = None):
        self.body, self.executor = body, executor
        self.begun = False

    def __await__(self) -> Generator[object, object, T]:
        return (yield self)

    def via(self, executor: Here) -> "Lazy[T]":
        """The same task, bound to an executor. What it awaits inherits that."""
        return Lazy(self.begin, executor)

    async def _attempt(self) -> Try[T]:
        try:
            return Ok(await self)
        except Exception as error:
            return Err(error)

    def attempt(self) -> "Lazy[Try[T]]":
        """Its outcome, as a value or an exception: awaiting this does not raise (coAwaitTry)."""
        return Lazy(self._attempt)

    def begin(self) -> Coroutine[object, object, T]:
        """Its coroutine. Raises RuntimeError the second time."""
        if self.begun:
            raise RuntimeError("this lazy task has begun: a task runs once, make another one")
        self.begun = True
        return self.body()

    def start(self, callback: Callable[[Try[T]], object], context: Context | None = None) -> None:
        """Run it, and call `callback` with its outcome. It begins on its own executor, else on the context's."""
        context = context or Context()
        task = Running(callback, Context(self.executor or context.executor, context.signal))
        task.context.executor.schedule(partial(task.enter, self))


def lazy(function: Callable[P, Coroutine[object, object, T]]) -> Callable[P, Lazy[T]]:
    """Let calls of an `async def` make a Lazy."""

    @wraps(function)
    def create(*args: P.args, **kwargs: P.kwargs) -> Lazy[T]:
        return Lazy(partial(function, *args, **kwargs))

    return create


class Running:
    """A task that has begun.

    stack: its coroutines, the innermost last. outcome: what the innermost is to be sent, None while it waits.
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
        """Put the coroutine of a task on the stack, to be sent None; or note the exception that this raises."""
        try:
            self.stack.append(task.begin())
            self.outcome = Ok(None)
        except Exception as error:
            self.outcome = Err(error)

    def run(self) -> None:
        """The trampoline: send outcomes to the innermost coroutine until it waits, or none is left."""
        self.running = True
        while self.stack and (outcome := self.outcome) is not None:
            self.outcome = None
            inner = self.stack[-1]
            try:
                awaited = inner.throw(outcome.error) if isinstance(outcome, Err) else inner.send(outcome.value)
            except StopIteration as stop:
                self.stack.pop()
                self.outcome = Ok(stop.value)
            except (Exception, CancelledError) as error:
                self.stack.pop()
                self.outcome = Err(error)
            else:
                self.meet(awaited)
        self.running = False
        if self.outcome is not None:
            self.callback(self.outcome)

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

    def wait(self, awaited: Suspend[object]) -> None:
        """Wait until somebody resumes this task, or its signal ends the wait."""
        signal = self.context.signal
        if signal.cancelled and not awaited.shielded:
            self.outcome = Err(CancelledError())
            return
        ticket = self.waiting = object()

        def resume(outcome: Try[object]) -> None:
            if self.waiting is ticket:
                self.waiting = None
                signal.disconnect(cancel)
                self.context.executor.schedule(partial(self.resume, outcome))

        def cancel() -> None:
            resume(Err(CancelledError()))

        if not awaited.shielded:
            signal.connect(cancel)
        try:
            awaited.start(resume, self.context)
        except Exception as error:
            resume(Err(error))

    def resume(self, outcome: Try[object]) -> None:
        """Go on. Where `run` is still on the stack it does that: a wait that ends at once must not nest."""
        self.outcome = outcome
        if not self.running:
            self.run()


def sync_await(task: Lazy[T], executor: Here = HERE) -> T:
    """Run a task to its end from code that is no task. Returns its value, or raises its exception.

    Raises RuntimeError where the task waits and nobody is left to resume it, and inside a task of the same executor.
    """
    outcomes: list[Try[T]] = []
    task.start(outcomes.append, Context(executor))
    (task.executor or executor).run(lambda: bool(outcomes))
    if not outcomes:
        raise RuntimeError("the task waits, and nothing is left that could resume it: this would never end")
    return outcomes[0].get()
