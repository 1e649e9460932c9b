# This file is yours to edit. Read book/src/week3-06-overlap.md.
"""Races between streams and the host, found from the log of a device, whatever the timing was.

Each stream and the host has a vector clock: how many accesses of every other one must have happened by now (Lamport,
1978; Mattern, 1989). Two accesses to one buffer, one of them a write, are a race if neither clock knows the other
access. Knows calls; no times, no values.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from .streams import Call


class Hazard(NamedTuple):
    """Two accesses without order. kind: "RAW", "WAR" or "WAW": the `second`, enqueued later, after the `first`."""

    kind: str
    buffer: Hashable
    first: str
    second: str

    def __str__(self) -> str:
        words = {"R": "read", "W": "write"}
        after, before = words[self.kind[0]], words[self.kind[2]]
        return f"{self.buffer!r}: the {after} by {self.second!r} does not wait for the {before} by {self.first!r}"


class Access(NamedTuple):
    """One op's use of a buffer. count: how many accesses `who` had made, this one included."""

    who: str
    count: int
    name: str
    reads: bool
    writes: bool


class HazardDetector:
    """Follows a log. clocks: of each stream and the host. events: the clock that each event's latest record captured.

    accesses: those to each buffer that the host does not know to be done; no other can ever race again.
    """

    def __init__(self) -> None:
        self.clocks: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.events: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.accesses: defaultdict[Hashable, list[Access]] = defaultdict(list)

    def see(self, call: Call) -> list[Hazard]:
        """Take the next call of the log. Returns the hazards between it and earlier ones."""
        raise NotImplementedError("Week 3 Day 6 Task 2: HazardDetector.see - see book/src/week3-06-overlap.md#task-2")

    def access(self, call: Call) -> list[Hazard]:
        """Count an access, and compare it with the earlier ones to its buffers."""
        raise NotImplementedError(
            "Week 3 Day 6 Task 2: HazardDetector.access - see book/src/week3-06-overlap.md#task-2"
        )


def conflicts(old: Access, new: Access) -> list[str]:
    """How two unordered accesses to one buffer disturb each other; two reads do not."""
    raise NotImplementedError("Week 3 Day 6 Task 2: conflicts - see book/src/week3-06-overlap.md#task-2")


def find_hazards(log: Iterable[Call]) -> list[Hazard]:
    """All hazards of a log, in the order of their later access."""
    raise NotImplementedError("Week 3 Day 6 Task 2: find_hazards - see book/src/week3-06-overlap.md#task-2")
