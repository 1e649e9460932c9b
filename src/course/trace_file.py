"""A file of Chrome trace events, which ui.perfetto.dev and chrome://tracing draw. Knows the format, nothing of engines.

Processes and threads are the tracks of the picture. Times are in microseconds since the start.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

Args = Mapping[str, object] | None
_FLUSH_SECONDS = 0.5


class TraceFile:
    """A file of trace events, each written as it comes. Without its end, after a crash, viewers still read it.

    A disk that fills up ends the recording, not the engine. Raises OSError where the file cannot be opened.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.perf_counter):
        self.file = path.open("w", encoding="utf-8")
        self.clock = clock
        self.begin = self.flushed = clock()
        self._separator = "[\n"

    def now(self) -> float:
        """Microseconds since the start."""
        return (self.clock() - self.begin) * 1e6

    def name(self, process: int, name: str, thread: int | None = None) -> None:
        """Call a process, or a thread of it, by this name."""
        kind = "process_name" if thread is None else "thread_name"
        self.write(name=kind, ph="M", pid=process, tid=thread or 0, args={"name": name})

    def slice(self, name: str, process: int, thread: int, begin: float, end: float, args: Args = None) -> None:
        """Something that took from `begin` to `end`."""
        self.write(name=name, ph="X", pid=process, tid=thread, ts=begin, dur=max(end - begin, 0.0), args=args or {})

    def instant(self, name: str, process: int, thread: int, args: Args = None) -> None:
        """Something that happened now."""
        self.write(name=name, ph="i", s="t", pid=process, tid=thread, ts=self.now(), args=args or {})

    def counter(self, name: str, process: int, **values: float) -> None:
        """The present values of a counter."""
        self.write(name=name, ph="C", pid=process, ts=self.now(), args=values)

    def write(self, **event: object) -> None:
        """One event in the fields of the format."""
        if self.file.closed:
            return
        try:
            self.file.write(self._separator + json.dumps(event))
            if self.clock() - self.flushed > _FLUSH_SECONDS:
                self.file.flush()
                self.flushed = self.clock()
        except OSError as error:
            logger.warning("the trace ends here: %s: %s", self.file.name, error.strerror)
            self._give_up()
        self._separator = ",\n"

    def close(self) -> None:
        """Write what is left, and the end."""
        if self.file.closed:
            return
        try:
            self.file.write("\n]\n")
            self.file.close()
        except OSError as error:
            logger.warning("the trace has no end: %s: %s", self.file.name, error.strerror)
            self._give_up()

    def _give_up(self) -> None:
        with suppress(OSError):  # what is buffered has no place to go; the file object is closed all the same
            self.file.close()
