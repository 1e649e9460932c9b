"""A simulated process as asyncio sees it: its tasks, the errors nobody waits for, how it is blocked and how it crashes.

Given code. Its callbacks and its time are those of `VirtualLoop`.
"""

import sys
from asyncio import AbstractEventLoop, Future, Handle, Task, events
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Self, TypeVar

from .kernel import Phase, Simulation
from .waiting import LivelockError, waiting

T = TypeVar("T")
ROUNDS = 100_000
"""Rounds of callbacks in one nanosecond, after which a process is taken to be caught in it."""


class Leave(Exception):
    """Leaves the simulation once the awaited task is done."""


# ANCHOR: process
class Process(AbstractEventLoop):
    """What a `VirtualLoop` has besides its time.

    ready: callbacks that are due, in their order. tasks: those that have not
    ended, the oldest first. free_at: until when code of this process blocks
    it, in ns. crashed: whether it will never run again. awaited: whether
    `run_until_complete` waits for it. processes: all of the simulation.
    """

    def __init__(self, simulation: Simulation, name: str = "main"):
        self.simulation, self.name = simulation, name
        self.ready: deque[Handle] = deque()
        self.tasks: dict[Task[object], None] = {}
        self.processes: list[Self] = [self]
        self.free_at = 0
        self.crashed = self.awaited = False
        # ANCHOR_END: process
        self._problems: list[BaseException] = []
        self._looked = self._rounds = self._names = 0

    def process(self, name: str) -> Self:
        """Another process of the same simulation."""
        other = type(self)(self.simulation, name)
        other.processes = self.processes
        other.processes.append(other)
        return other

    @property
    def now(self) -> int:
        """The time that code of this process sees, in ns."""
        return max(self.simulation.now, self.free_at)

    def block(self, duration: int) -> None:
        """Let the code that runs take `duration` ns, as `time.sleep` would. Nothing else of this process runs then."""
        self.free_at = self.now + duration

    def crash(self) -> None:
        """Never run anything of this process again. Crash its host first, so that nobody hears a farewell.

        Python cannot drop a suspended coroutine without its `finally` blocks: they run here, and can start nothing.
        """
        self.crashed = True
        self.ready.clear()
        if self.awaited:
            self.simulation.at(self.simulation.now, Phase.ADMISSION, self.leave)
        outer = events._get_running_loop()
        events._set_running_loop(self)
        for task in list(self.tasks):
            with suppress(Exception):
                task.get_coro().close()
        events._set_running_loop(outer)

    def leave(self, *_: object) -> None:
        """Leave the simulation's `run`: scheduled, or as what asyncio calls when a task is done."""
        raise Leave

    def waiting(self) -> str:
        """Who waits, and where, in all processes: one line for each task."""
        return waiting(task for process in self.processes if not process.crashed for task in process.tasks)

    # ANCHOR: running
    @contextmanager
    def running(self) -> Iterator[None]:
        """Let asyncio know that this loop runs.

        Raises LivelockError where time has stood still for too many rounds.
        """
        self._rounds = self._rounds + 1 if self._looked == self.now else 0
        self._looked = self.now
        if self._rounds > ROUNDS:
            self._rounds = 0
            what = f"{ROUNDS} rounds of {self.name} while time stood still: something is tried again without a wait"
            raise LivelockError(f"{self.now} ns, {what}:\n{self.waiting()}")
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=self._finalise)
        events._set_running_loop(self)
        try:
            yield
        finally:
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def step(self, handle: Handle) -> None:
        """Run one callback, unless it was cancelled.

        An exception that nobody waits for ends the simulation: it hides none.
        """
        if not handle.cancelled():
            handle._run()
        if self._problems:
            raise self._problems.pop()
            # ANCHOR_END: running

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

    def call_exception_handler(self, context: dict[str, object]) -> None:
        """asyncio tells of an exception that nobody waits for."""
        error = context.get("exception")
        if isinstance(error, BaseException) and not self.crashed:
            self._problems.append(error)

    def get_debug(self) -> bool:
        """asyncio's slow debug mode is off: its checks read a real clock."""
        return False
