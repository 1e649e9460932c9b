"""Things to do at given times, in the order of their times: what a world of random schedules runs on."""

import heapq
from collections.abc import Callable
from itertools import count


class Agenda:
    """now: ns. Things of the same time are done in the order in which they were noted down."""

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[tuple[int, int, Callable[..., object], tuple[object, ...]]] = []
        self._numbers = count()

    def after(self, ns: int, do: Callable[..., object], *args: object) -> None:
        """Note down something to do `ns` from now."""
        heapq.heappush(self._heap, (self.now + ns, next(self._numbers), do, args))

    def run(self, most: int) -> None:
        """Do everything. Raises AssertionError where that takes more than `most` steps: somebody goes round in circles.

        The clock goes from one thing to the next, however far that is.
        """
        for _ in range(most):
            if not self._heap:
                return
            self.now, _, do, args = heapq.heappop(self._heap)
            do(*args)
        raise AssertionError(f"{most} events, and no end: at {self.now / 1e9:.1f} s still {len(self._heap)} to come")
