"""Where lazy tasks run: a queue of callbacks, drained by whoever waits for one of them."""

from collections import deque
from collections.abc import Callable
from typing import Protocol


class Executor(Protocol):
    """Where tasks run. `schedule` runs nothing at once; callbacks run in the order they came."""

    def schedule(self, callback: Callable[[], object]) -> None:
        """Run it later."""
        ...

    def run(self, done: Callable[[], bool]) -> None:
        """Run what was scheduled until `done()`, or nothing is left. Raises RuntimeError inside a callback."""
        ...


class RunQueue:
    """An executor that is a queue, drained by whoever calls `run`."""

    def __init__(self) -> None:
        self.queue: deque[Callable[[], object]] = deque()
        self.running = False

    def schedule(self, callback: Callable[[], object]) -> None:
        """Run it after all that came before."""
        self.queue.append(callback)

    def run(self, done: Callable[[], bool]) -> None:
        """Run callbacks until `done()` or none is left. Raises RuntimeError where one of them calls this."""
        if self.running:
            raise RuntimeError("sync_await was called by a task of this executor: it would wait for itself, use await")
        self.running = True
        try:
            while self.queue and not done():
                self.queue.popleft()()
        finally:
            self.running = False
