"""How busy servers are."""

from collections.abc import Sequence

import numpy as np

from .record import InvariantError
from .window import Window


class BusyTime:
    """When one server was busy: intervals in order, those that touch joined, so that a busy run takes little space."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        """It worked from `start` to `end`. Raises InvariantError for work that begins before the last ended."""
        if end < start or (self.ends and start < self.ends[-1]):
            raise InvariantError(f"a server worked from {start} to {end} ns, after working until {self.ends[-1:]}")
        if self.ends and start == self.ends[-1]:
            self.ends[-1] = end
        else:
            self.starts.append(start)
            self.ends.append(end)

    def within(self, window: Window) -> int:
        """ns of the window that it was busy."""
        starts = np.clip(np.asarray(self.starts, np.int64), *window)
        ends = np.clip(np.asarray(self.ends, np.int64), *window)
        return int(np.sum(ends - starts))


def utilisation(pool: Sequence[BusyTime], window: Window) -> float:
    """rho of a pool: busy time over the time that its servers had. Compare it with SATURATED."""
    return sum(server.within(window) for server in pool) / ((window.end - window.start) * max(len(pool), 1))
