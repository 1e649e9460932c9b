"""An asyncio event loop whose time is a simulation's: async code runs unchanged and without waiting.

Each simulated process has a loop of its own on the one simulation. So one process can be blocked by its own code, or
crash, while the others go on; and they can only talk by messages. Knows no transport.
"""

import asyncio
import sys
from asyncio import AbstractEventLoop, Future, Handle, Task, TimerHandle, events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import TypeVar

from .kernel import Phase, Simulation
from .waiting import DeadlockError, Watchdog, waiting

T = TypeVar("T")
Callback = Callable[..., object]
SECOND = 1_000_000_000


class _Stop(Exception):
    """Leaves the simulation once the awaited task is done."""


class _Timer(TimerHandle):
    """A timer that knows its event."""

    __slots__ = ("event",)


class VirtualLoop(AbstractEventLoop):
    """A loop of one simulated process, `name`.

    Callbacks that are due at the same time run in the order in which they became due. tasks: those that have not ended,
    the oldest first. free_at: until when code of this process blocks it, in ns. crashed: whether it will never run
    again. processes: all loops of the simulation, this one too. Nothing wakes it from another thread.
    """

    def __init__(self, simulation: Simulation, name: str = "main"):
        self.simulation, self.name = simulation, name
        self.tasks: dict[Task[object], None] = {}
        self.processes: list[VirtualLoop] = [self]
        self.free_at, self.crashed = 0, False
        self._ready: deque[Handle] = deque()
        self._problems: list[BaseException] = []
        self._pumping = self._stopping = self._awaited = False
        self._watchdog, self._names = Watchdog(), 0

    def process(self, name: str) -> "VirtualLoop":
        """Another loop on the same simulation."""
        other = VirtualLoop(self.simulation, name)
        other.processes = self.processes
        other.processes.append(other)
        return other

    @property
    def now(self) -> int:
        """The time that code of this process sees, in ns."""
        return max(self.simulation.now, self.free_at)

    def time(self) -> float:
        """The same in seconds."""
        return self.now / SECOND

    def block(self, duration: int) -> None:
        """Let the code that runs take `duration` ns, as `time.sleep` would. Nothing else of this process runs then."""
        self.free_at = self.now + duration

    def crash(self) -> None:
        """Never run anything of this process again. Crash its host first, so that nobody hears a farewell.

        Python cannot drop a suspended coroutine without its `finally` blocks: they run here, and can start nothing.
        """
        self.crashed = True
        self._ready.clear()
        if self._awaited:
            self.simulation.at(self.simulation.now, Phase.ADMISSION, self._leave)
        outer = events._get_running_loop()
        events._set_running_loop(self)
        for task in list(self.tasks):
            with suppress(Exception):
                task.get_coro().close()
        events._set_running_loop(outer)

    def call_soon(self, callback: Callback, *args: object, context: Context | None = None) -> Handle:
        """Run a callback at the present time, after those that are due already."""
        handle = Handle(callback, args, self, context)
        self._due(handle)
        return handle

    def call_later(self, delay: float, callback: Callback, *args: object, context: Context | None = None) -> _Timer:
        """Run a callback in `delay` seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callback, *args: object, context: Context | None = None) -> _Timer:
        """Run a callback at `when` seconds, to the next whole ns; now if that is past."""
        timer = _Timer(when, callback, args, self, context)
        time = max(round(when * SECOND), self.simulation.now)
        timer.event = self.simulation.at(time, Phase.ADMISSION, self._due, timer)
        return timer

    def _timer_handle_cancelled(self, timer: _Timer) -> None:
        """asyncio says that a timer was cancelled: time need not go there for it."""
        self.simulation.cancel(timer.event)

    def _due(self, handle: Handle) -> None:
        """Queue a callback."""
        if not self.crashed and not handle.cancelled():
            self._ready.append(handle)
            self._wake()

    def _wake(self) -> None:
        """Run what is due as soon as this process is free."""
        if not self._pumping and self._ready:
            self._pumping = True
            self.simulation.at(self.now, Phase.ADMISSION, self._pump)

    def _pump(self) -> None:
        """Run what is due now; what that makes due runs in a next round, as in asyncio."""
        self._pumping = False
        if self.now > self.simulation.now:
            return self._wake()
        self._watchdog.look(self)
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=self._finalise)
        events._set_running_loop(self)
        try:
            for _ in range(len(self._ready)):
                if self._ready and not (handle := self._ready.popleft()).cancelled():
                    handle._run()
                if self._problems:
                    raise self._problems.pop()
                if self._stopping:
                    self._leave()
                if self.now > self.simulation.now:
                    break
        finally:
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)
            self._wake()

    def _finalise(self, generator: AsyncGenerator[object, None]) -> None:
        """Close an async generator that nobody refers to any more."""
        if not self.crashed:
            self.create_task(generator.aclose())

    def create_future(self) -> Future[object]:
        """A future of this loop."""
        return Future(loop=self)

    def create_task(
        self, coro: Coroutine[object, object, T], *, name: str | None = None, context: Context | None = None
    ) -> Task[T]:
        """A task, named by its number in this process unless it is given a name."""
        self._names += 1
        task = Task(coro, loop=self, name=name or f"{self.name}-{self._names}", context=context)
        self.tasks[task] = None
        task.add_done_callback(self.tasks.pop)
        return task

    def run_until_complete(self, future: Coroutine[object, object, T] | Future[T]) -> T:
        """Run the simulation until a task is done. Returns its result, or raises its exception.

        Raises DeadlockError, which names who waits for what, where nothing is left to happen before.
        """
        if events._get_running_loop() is not None:
            raise RuntimeError("run_until_complete was called by code of a loop: it would wait for itself, use await")
        task = asyncio.ensure_future(future, loop=self)
        task.add_done_callback(self._done)
        self._awaited = True
        try:
            with suppress(_Stop):
                self.simulation.run()
        finally:
            task.remove_done_callback(self._done)
            self._awaited = self._stopping = False
        if self.crashed:
            raise RuntimeError(f"{self.now} ns: {self.name} crashed while its result was awaited")
        if not task.done():
            raise DeadlockError(f"{self.now} ns, nothing is left to happen, and these wait:\n{waiting(self.processes)}")
        return task.result()

    def _done(self, _: Future[object]) -> None:
        self._stopping = True

    def _leave(self) -> None:
        raise _Stop

    def call_exception_handler(self, context: dict[str, object]) -> None:
        """An exception that nobody waits for ends the run: a simulation hides no error."""
        error = context.get("exception")
        if isinstance(error, BaseException) and not self.crashed:
            self._problems.append(error)

    def get_debug(self) -> bool:
        """asyncio's slow debug mode is off: its checks read a real clock."""
        return False
