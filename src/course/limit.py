"""A time limit inside one process, by an alarm: it stops Python code, also endless loops that swallow exceptions.

Code that never returns from a C function cannot be stopped so; after a grace period such a process is ended, with
the stack written to `last_words`, a copy of standard error from before anything captures it."""

import contextlib
import faulthandler
import os
import signal
import threading
import time
from types import FrameType, TracebackType

from course import guard
from course.failure import TimedOut

_AGAIN = 1e-4
# A loop that catches everything is outside its `try` for a moment only, some microseconds after it was interrupted. So
# once alarms have been swallowed, the next one rings 1, 2, 3, ... microseconds later, to meet that moment.
_PATIENCE = 20
_SWEEP = 60
_GRACE = 10.0
last_words = os.dup(2)


class TimeLimit:
    """`with TimeLimit(5.0): ...` raises `TimedOut` in the body; alarms and handlers set before are put back after."""

    # Here something is put back or taken note of, so these files are never interrupted: the alarm rings again.
    _UNTOUCHED = (__file__, guard.__file__, contextlib.__file__)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        self.possible = threading.current_thread() is threading.main_thread()
        if not self.possible:
            return
        self.started, self.rung = time.monotonic(), 0
        self.handler = signal.signal(signal.SIGALRM, self._stop)
        self.timer = signal.setitimer(signal.ITIMER_REAL, self.seconds, _AGAIN)
        faulthandler.dump_traceback_later(self.seconds + _GRACE, exit=True, file=last_words)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.possible:
            return
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.handler)
        remaining, interval = self.timer
        if remaining:
            left = remaining - (time.monotonic() - self.started)
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), interval)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if frame is None or frame.f_code.co_filename not in self._UNTOUCHED:
            self.rung += 1
            if self.rung > _PATIENCE:
                signal.setitimer(signal.ITIMER_REAL, (1 + self.rung % _SWEEP) * 1e-6, _AGAIN)
            raise TimedOut(f"no result within {self.seconds:g} s: is there an endless loop, or is the machine busy?")
