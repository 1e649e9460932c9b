"""What a lazy task can await besides another one, what it inherits, and what comes of it: a value or an exception."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, NoReturn, TypeVar

from .executor import HERE, Here
from .signal import Signal

T = TypeVar("T")


# ANCHOR: outcome
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


@dataclass(frozen=True)
class Context:
    """What a task inherits from the one that awaits it.

    executor: where it runs. signal: what tells it to stop.
    """

    executor: Here = HERE
    signal: Signal = field(default_factory=Signal)


class Suspend(Generic[T]):
    """Awaiting it stops the task until somebody calls `resume(outcome)`.

    start(resume, context): begins what the task waits for. The first call of
    `resume` counts, later ones are ignored. shielded: a signal does not end
    the wait; the task answers it at its next one.
    """

    def __init__(self, start: Callable[[Callable[["Try[T]"], None], Context], object], shielded: bool = False):
        self.start, self.shielded = start, shielded

    def __await__(self) -> Generator[object, object, T]:
        return (yield self)

    # ANCHOR_END: outcome


def reschedule() -> Suspend[None]:
    """Let others of the executor run first (async_simple's Yield). Raises CancelledError in a task told to stop."""
    return Suspend(lambda resume, _: resume(Ok(None)))
