"""An asyncio event loop whose time is a simulation's: async code runs unchanged and without waiting.

Each simulated process has a loop of its own on the one simulation. So one process can be blocked by its own code, or
crash, while the others go on; and they can only talk by messages. Knows no transport.
"""

from asyncio import Future, Handle, TimerHandle, ensure_future, events
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import TypeVar

from .kernel import Phase, Simulation
from .process import Leave, Process
from .waiting import DeadlockError

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
        timer = Timer(when, callback, args, self, context)
        time = max(round(when * SECOND), self.simulation.now)
        timer.event = self.simulation.at(time, Phase.ADMISSION, self.due, timer)
        return timer

    def _timer_handle_cancelled(self, timer: Timer) -> None:
        """asyncio says that a timer was cancelled: time need not go there for it."""
        self.simulation.cancel(timer.event)

    def due(self, handle: Handle) -> None:
        """Put a callback among those that are ready, unless it was cancelled, or this process has crashed."""
        if not self.crashed and not handle.cancelled():
            self.ready.append(handle)
            self.wake()

    def wake(self) -> None:
        """Where callbacks are ready, schedule a pump for when this process is free: one, in Phase.ADMISSION."""
        if self.ready and not self.pumping:
            self.pumping = True
            self.simulation.at(self.now, Phase.ADMISSION, self.pump)

    def pump(self) -> None:
        """Run those that are ready now, in their order. What they make due runs in another pump, as in asyncio.

        Where this process is blocked, also by one of them, the others wait until it is free.
        """
        self.pumping = False
        try:
            with self.running():
                for _ in range(len(self.ready)):
                    if self.ready and self.now == self.simulation.now:
                        self.step(self.ready.popleft())
        finally:
            self.wake()

    def run_until_complete(self, future: Coroutine[object, object, T] | Future[T]) -> T:
        """Run the simulation until a task is done. Returns its result, or raises its exception.

        Raises DeadlockError, which names who waits for what in all processes, where nothing is left to happen before.
        Raises RuntimeError where this process crashed meanwhile, and in code of a loop.
        """
        if events._get_running_loop() is not None:
            raise RuntimeError("run_until_complete was called by code of a loop: it would wait for itself, use await")
        task = ensure_future(future, loop=self)
        task.add_done_callback(self.leave)
        self.awaited = True
        try:
            with suppress(Leave):
                self.simulation.run()
        finally:
            self.awaited = False
            task.remove_done_callback(self.leave)
        if self.crashed:
            raise RuntimeError(f"{self.now} ns: {self.name} crashed while its result was awaited")
        if not task.done():
            raise DeadlockError(f"{self.now} ns, nothing is left to happen, and these wait:\n{self.waiting()}")
        return task.result()
