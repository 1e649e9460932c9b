# This file is yours to edit. Read book/src/week4-06-moving-kv.md.
"""A network link that all its flows share in equal parts, with exact finish times.

Knows sizes in bytes and times in ns; not what is sent, nor who. The caller brings the time with each call, and comes
back at `next_time`. What it tells is whole ns, rounded up. Inside, bytes and ns are integers in parts of 1 / FINE:
floats would not be exact, and fractions grow with each change of shares, until a busy link takes ms for each flow.
"""

import heapq
from collections.abc import Hashable, Sequence
from itertools import takewhile

SECOND = 10**9
FINE = 1 << 80
SLACK = 1 << 40
"""More than all roundings together, and far less than a ns: an end this close above a whole ns is at that ns."""

Flow = Hashable


def transfer_ns(size: int, latency: int, bytes_per_s: int) -> int:
    """alpha + n / beta: how long `size` bytes take alone, in ns, rounded up. latency: ns."""
    raise NotImplementedError("Week 4 Day 6 Task 1: transfer_ns - see book/src/week4-06-moving-kv.md#task-1")


def ring_all_reduce_ns(size: int, ranks: int, latency: int, bytes_per_s: int) -> int:
    """How long a sum of `size` bytes over `ranks` takes on a ring, in ns, rounded up. latency: of one step, in ns.

    2 (p - 1) alpha + 2 (p - 1) / p * n / beta: each of p ranks sends 1 / p of the bytes 2 (p - 1) times.
    """
    raise NotImplementedError("Week 4 Day 6 Task 1: ring_all_reduce_ns - see book/src/week4-06-moving-kv.md#task-1")


def fit_link(samples: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """(latency in ns, bytes_per_s), rounded, of the line through (size in bytes, time in ns) that is nearest to them.

    Nearest: the sum of squared errors, each as a share of its time, is least. So short transfers count like long ones.
    Raises ValueError where all sizes are equal: nothing tells latency from rate then.
    """
    raise NotImplementedError("Week 4 Day 6 Task 1: fit_link - see book/src/week4-06-moving-kv.md#task-1")


# ANCHOR: link
class Link:
    """`bytes_per_s` for all flows together, in equal parts; each byte arrives `latency` ns after it left.

    served: FINE times the bytes that a flow got that is there since the link was last idle. All flows get the same: so
    a flow ends when `served` is its size above what it was at its start, and only the next end is ever looked at. At
    rate 0 the link is cut: flows wait.
    """

    def __init__(self, bytes_per_s: int, latency: int = 0):
        self.bytes_per_s = bytes_per_s
        self.latency = latency
        self.served = 0
        self._time = 0  # FINE times the ns up to which all flows have been served
        self._starts = 0  # flows so far: two that end together leave in the order of their starts
        self._ends: dict[Flow, tuple[int, int]] = {}  # what `served` is when a flow ends, and the number of its start
        self._heap: list[tuple[int, int, Flow]] = []  # the same, the next end on top; also flows that are no more
        self._arrivals: dict[Flow, int] = {}  # flows that have left, and at what ns each arrives
        # ANCHOR_END: link

    @property
    def flows(self) -> int:
        """Flows that have not left completely."""
        return len(self._ends)

    def start(self, flow: Flow, size: int, now: int) -> None:
        """Send `size` bytes from `now` on. Raises ValueError for a flow that is on its way, or a time that is past."""
        raise NotImplementedError("Week 4 Day 6 Task 1: Link.start - see book/src/week4-06-moving-kv.md#task-1")

    def cancel(self, flow: Flow, now: int) -> bool:
        """Drop a flow, what has left included. Returns False where it is not on its way."""
        self.serve(now)
        if self._ends.pop(flow, None) is not None:
            self._forget()
            return True
        return self._arrivals.pop(flow, None) is not None

    def set_rate(self, bytes_per_s: int, now: int) -> None:
        """Go on at another rate. `next_time` changes."""
        self.serve(now)
        self.bytes_per_s = bytes_per_s

    def next_time(self) -> int | None:
        """When the next flow arrives, in ns; None where none will."""
        for time in self._arrivals.values():
            return time
        end = self.next_end()
        return None if end is None else whole(end) + self.latency

    def collect(self, now: int) -> list[Flow]:
        """The flows that arrived up to `now`, in the order of their arrival; each is told once."""
        if now * FINE > self._time:
            self.serve(now)
        arrived = list(takewhile(lambda flow: self._arrivals[flow] <= now, self._arrivals))
        for flow in arrived:
            del self._arrivals[flow]
        return arrived

    def next_end(self) -> int | None:
        """FINE times the ns at which the next flow will have left, if no other comes."""
        raise NotImplementedError("Week 4 Day 6 Task 1: Link.next_end - see book/src/week4-06-moving-kv.md#task-1")

    def serve(self, now: int) -> None:
        """Serve all flows up to `now`; those that end on the way leave the others more."""
        raise NotImplementedError("Week 4 Day 6 Task 1: Link.serve - see book/src/week4-06-moving-kv.md#task-1")

    def _forget(self) -> None:
        """Drop flows from the top of the heap that have left or were cancelled. An idle link counts from 0 again."""
        while self._heap and self._ends.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        if not self._ends:
            self.served = 0


def whole(fine: int) -> int:
    """Whole ns, rounded up."""
    return -((SLACK - fine) // FINE)
