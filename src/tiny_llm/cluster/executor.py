"""Where lazy tasks run: here and now, or in a queue of callbacks that whoever waits for one of them drains."""

from collections import deque
from collections.abc import Callable


class Here:
    """Runs what is scheduled at once, on the stack of who schedules it."""

    def schedule(self, callback: Callable[[], object]) -> None:
        """Run it."""
        callback()

    def run(self, done: Callable[[], bool]) -> None:
        """Nothing was left for later."""


# ANCHOR: queue
class RunQueue(Here):
    """Runs callbacks in the order they came, when somebody calls `run`."""

    def __init__(self) -> None:
        self.queue: deque[Callable[[], object]] = deque()
        self.running = False

    def schedule(self, callback: Callable[[], object]) -> None:
        """Run it after all that came before."""
        self.queue.append(callback)

    def run(self, done: Callable[[], bool]) -> None:
        """Run callbacks until `done()` or none is left.

        Raises RuntimeError where one of them calls this.
        """
        if self.running:
            raise RuntimeError("a task of this queue would wait for itself here: use await")
        self.running = True
        try:
            while self.queue and not done():
                self.queue.popleft()()
        finally:
            self.running = False

    # ANCHOR_END: queue


HERE = Here()
