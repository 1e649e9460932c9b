"""A network link that all its flows share in equal parts, with exact finish times.

Knows sizes in bytes and times in ns; not what is sent, nor who. The caller brings the time with each call, and comes
back at `next_time`. What it tells is whole ns, rounded up. Inside, bytes and ns are integers in parts of 1 / FINE:
floats would not be exact, and fractions grow with each change of shares, until a busy link takes ms for each flow.
"""

import heapq
from collections.abc import Hashable, Sequence
from itertools import takewhile

import numpy as np

SECOND = 10**9
FINE = 1 << 80
SLACK = 1 << 40
"""More than all roundings together, and far less than a ns: an end this close above a whole ns is at that ns."""

Flow = Hashable


def transfer_ns(size: int, latency: int, bytes_per_s: int) -> int:
    """alpha + n / beta: how long `size` bytes take alone, in ns, rounded up. latency: ns."""
    return latency + -(-size * SECOND // bytes_per_s)


def ring_all_reduce_ns(size: int, ranks: int, latency: int, bytes_per_s: int) -> int:
    """How long a sum of `size` bytes over `ranks` takes on a ring, in ns, rounded up. latency: of one step, in ns.

    2 (p - 1) alpha + 2 (p - 1) / p * n / beta: each of p ranks sends 1 / p of the bytes 2 (p - 1) times.
    """
    steps = 2 * (ranks - 1)
    return steps * latency + -(-steps * size * SECOND // (ranks * bytes_per_s))


def fit_link(samples: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """(latency in ns, bytes_per_s), rounded, of the line through (size in bytes, time in ns) that is nearest to them.

    Nearest: the sum of squared errors, each as a share of its time, is least. So short transfers count like long ones.
    Raises ValueError where all sizes are equal: nothing tells latency from rate then.
    """
    if len({size for size, _ in samples}) < 2:
        raise ValueError(f"{len(samples)} samples have one size: a line needs two")
    sizes, times = np.array(samples, dtype=np.float64).T
    rows = np.stack([1 / times, sizes / times], axis=1)
    latency, per_byte = np.linalg.lstsq(rows, np.ones(len(samples)), rcond=None)[0]
    return round(latency), round(SECOND / per_byte)


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
        self.serve(now)
        if flow in self._ends or flow in self._arrivals:
            raise ValueError(f"flow {flow} is on its way already")
        self._starts += 1
        end = self._ends[flow] = self.served + size * FINE, self._starts
        heapq.heappush(self._heap, (*end, flow))

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
        if not self._heap or not self.bytes_per_s:
            return None
        return self._time + -(-(self._heap[0][0] - self.served) * len(self._ends) * SECOND // self.bytes_per_s)

    def serve(self, now: int) -> None:
        """Serve all flows up to `now`; those that end on the way leave the others more."""
        until = now * FINE
        if until < self._time:
            raise ValueError(f"time {now} ns is past: the link is at {self._time // FINE} ns")
        while (end := self.next_end()) is not None and end <= until + SLACK:
            self.served, _, flow = self._heap[0]
            self._time = min(end, until)
            del self._ends[flow]
            self._forget()
            self._arrivals[flow] = whole(end) + self.latency
        if self._ends:
            self.served += (until - self._time) * self.bytes_per_s // (len(self._ends) * SECOND)
        self._time = until

    def _forget(self) -> None:
        """Drop flows from the top of the heap that have left or were cancelled. An idle link counts from 0 again."""
        while self._heap and self._ends.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        if not self._ends:
            self.served = 0


def whole(fine: int) -> int:
    """Whole ns, rounded up."""
    return -((SLACK - fine) // FINE)
