"""What a lazy task can await besides another one, and what comes of a task: a value or an exception."""

from collections.abc import Callable, Generator
from typing import Generic, NamedTuple, NoReturn, TypeVar

from .executor import Executor
from .signal import Signal

T = TypeVar("T")


class Ok(NamedTuple, Generic[T]):
    """The value of a task that returned."""

    value: T

    def get(self) -> T:
        """The value."""
        return self.value


class Err(NamedTuple):
    """The exception of a task that raised."""

    error: BaseException

    def get(self) -> NoReturn:
        """Raise it."""
        raise self.error


Try = Ok[T] | Err


class Suspend(Generic[T]):
    """Awaiting it stops the task until somebody calls `resume(outcome)`, which `start` is given.

    The first call counts, later ones are ignored. shielded: a signal does not end the wait; the task answers it later.
    """

    def __init__(self, start: Callable[[Callable[["Try[T]"], None]], object], shielded: bool = False):
        self.start, self.shielded = start, shielded

    def __await__(self) -> Generator[object, object, T]:
        return (yield self)


class Context(NamedTuple):
    """What a task inherits from the one that awaits it."""

    executor: Executor | None = None
    signal: Signal | None = None


class _Current:
    """Awaiting it gives the Context of the task, without suspending."""

    def __await__(self) -> Generator[object, object, Context]:
        return (yield self)


CURRENT = _Current()


def reschedule() -> Suspend[None]:
    """Let others of the executor run first (async_simple's Yield). Raises CancelledError in a task told to stop."""
    return Suspend(lambda resume: resume(Ok(None)))
