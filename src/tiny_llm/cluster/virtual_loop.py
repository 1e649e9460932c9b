# This file is yours to edit. Read book/src/week4-02-workloads-and-slos.md.
"""An asyncio event loop whose time is a simulation's: async code runs unchanged and without waiting.

Each simulated process has a loop of its own on the one simulation. So one process can be blocked by its own code, or
crash, while the others go on; and they can only talk by messages. Knows no transport.
"""

from asyncio import Future, Handle, TimerHandle
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import TypeVar

from .kernel import Simulation
from .process import Process

T = TypeVar("T")
Callback = Callable[..., object]
SECOND = 1_000_000_000


class Timer(TimerHandle):
    """A timer that knows its event."""

    __slots__ = ("event",)


# ANCHOR: loop
class VirtualLoop(Process):
    """The event loop of one simulated process.

    pumping: whether a `pump` is scheduled.
    """

    def __init__(self, simulation: Simulation, name: str = "main"):
        super().__init__(simulation, name)
        self.pumping = False

    def time(self) -> float:
        """The time that code of this process sees, in seconds."""
        return self.now / SECOND

    def call_soon(self, callback: Callback, *args: object, context: Context | None = None) -> Handle:
        """Run a callback at the present time, after those that are due already."""
        handle = Handle(callback, args, self, context)
        self.due(handle)
        return handle

    def call_later(self, delay: float, callback: Callback, *args: object, context: Context | None = None) -> Timer:
        """Run a callback in `delay` seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    # ANCHOR_END: loop

    def call_at(self, when: float, callback: Callback, *args: object, context: Context | None = None) -> Timer:
        """Let a callback become due at `when` seconds, to the nearest ns, in Phase.ADMISSION; now if that is past."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 4: VirtualLoop.call_at - see book/src/week4-02-workloads-and-slos.md#task-4"
        )

    def _timer_handle_cancelled(self, timer: Timer) -> None:
        """asyncio says that a timer was cancelled: time need not go there for it."""
        self.simulation.cancel(timer.event)

    def due(self, handle: Handle) -> None:
        """Put a callback among those that are ready, unless it was cancelled, or this process has crashed."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 4: VirtualLoop.due - see book/src/week4-02-workloads-and-slos.md#task-4"
        )

    def wake(self) -> None:
        """Where callbacks are ready, schedule a pump for when this process is free: one, in Phase.ADMISSION."""
        raise NotImplementedError(
            "Week 4 Day 2 Task 4: VirtualLoop.wake - see book/src/week4-02-workloads-and-slos.md#task-4"
        )

    def pump(self) -> None:
        """Run those that are ready now, in their order. What they make due runs in another pump, as in asyncio.

        Where this process is blocked, also by one of them, the others wait until it is free.
        """
        raise NotImplementedError(
            "Week 4 Day 2 Task 4: VirtualLoop.pump - see book/src/week4-02-workloads-and-slos.md#task-4"
        )

    def run_until_complete(self, future: Coroutine[object, object, T] | Future[T]) -> T:
        """Run the simulation until a task is done. Returns its result, or raises its exception.

        Raises DeadlockError, which names who waits for what in all processes, where nothing is left to happen before.
        Raises RuntimeError where this process crashed meanwhile, and in code of a loop.
        """
        raise NotImplementedError(
            "Week 4 Day 2 Task 4: VirtualLoop.run_until_complete - see book/src/week4-02-workloads-and-slos.md#task-4"
        )
