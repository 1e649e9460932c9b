# This file is yours to edit. Read book/src/week4-06-moving-kv.md.
"""Memory that transfers may touch: buffers, the segment of a process, and who has which part of it.

Knows addresses and lengths in bytes; nothing of what stands there.
"""

from collections.abc import Sequence
from typing import NamedTuple


# ANCHOR: segment
class Buffer(NamedTuple):
    """Registered memory: `length` bytes from `start` on. location: what its NICs are chosen by."""

    start: int
    length: int
    location: str = "cpu:0"

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.start + self.length


class Segment(NamedTuple):
    """What others know of a process's memory."""

    name: str
    buffers: tuple[Buffer, ...]
    # ANCHOR_END: segment


def covering(buffers: Sequence[Buffer], start: int, length: int) -> Buffer | None:
    """The buffer that holds all of these bytes, None where there is none."""
    return next((each for each in buffers if each.start <= start and start + length <= each.end), None)


def runs(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Merge (source, target) block numbers where both go up by one. Returns (source, target, blocks) for each run."""
    raise NotImplementedError("Week 4 Day 6 Task 3: runs - see book/src/week4-06-moving-kv.md#task-3")


class Space:
    """`capacity` bytes, given away in pieces: the first hole that is large enough.

    free: bytes that nobody has.
    """

    def __init__(self, capacity: int):
        self.capacity = self.free = capacity
        self.taken: dict[int, int] = {}
        self._holes = [(0, capacity)]

    def allocate(self, size: int) -> int | None:
        """A piece of `size` bytes, at least one. Returns its offset, None where no hole is large enough."""
        for i, (start, length) in enumerate(self._holes):
            if length >= size > 0:
                self._holes[i : i + 1] = [(start + size, length - size)] if length > size else []
                self.taken[start] = size
                self.free -= size
                return start
        return None

    def release(self, offset: int) -> None:
        """Take a piece back, and join the holes around it. Raises KeyError where there is none."""
        size = self.taken.pop(offset)
        self.free += size
        holes = sorted([*self._holes, (offset, size)])
        self._holes = []
        for start, length in holes:
            if self._holes and sum(self._holes[-1]) == start:
                start, length = self._holes[-1][0], self._holes[-1][1] + length
                self._holes.pop()
            self._holes.append((start, length))
