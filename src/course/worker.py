"""One background thread that does all the computing, so that the main thread can answer Ctrl-C at any moment.

MLX arrays belong to the thread that made them: whatever touches MLX, imports included, must run in the same worker.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import NoReturn, TypeVar

T = TypeVar("T")
Message = tuple[str, object]  # ("item", value), ("error", exception) or ("end", None)


class Worker:
    """Runs jobs one after another. The caller waits, but a KeyboardInterrupt gets it out of the wait at once."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Iterable[object]], SimpleQueue[Message]]] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="worker").start()

    def call(self, job: Callable[[], T]) -> T:
        """The result of `job()`, or the exception it raised."""
        (result,) = self.stream(lambda: iter([job()]))
        return result

    def stream(self, job: Callable[[], Iterable[T]]) -> Iterator[T]:
        """The items of `job()` as they come. A caller that stops listening must tell the job by other means."""
        results: SimpleQueue[Message] = SimpleQueue()
        self._jobs.put((job, results))
        while True:
            kind, value = results.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value

    def _work(self) -> None:
        while True:
            job, results = self._jobs.get()
            try:
                for item in job():
                    results.put(("item", item))
                results.put(("end", None))
            except BaseException as error:  # whatever it is, it belongs to the caller
                results.put(("error", error))


def leave(status: int) -> NoReturn:
    """End the program now: an ordinary exit would wait for, or crash, a worker in the middle of a computation."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)
