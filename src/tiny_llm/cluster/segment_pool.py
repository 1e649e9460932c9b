"""The segments that clients lend to a store, and the space in them.

Knows sizes in bytes; nothing of objects or time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from .segment import Space

SAMPLE = 6
"""Segments that are compared for each object: nearly as even as to look at all."""


class Replica(NamedTuple):
    """A copy of an object: `size` bytes at `offset` of a segment."""

    segment: str
    offset: int
    size: int


@dataclass
class Mounted:
    """A segment that a client lends."""

    client: str
    space: Space


class SegmentPool:
    """Mounted segments by name. rng: draws which of them are compared."""

    def __init__(self, rng: Random):
        self.rng = rng
        self.segments: dict[str, Mounted] = {}

    @property
    def capacity(self) -> int:
        """Bytes of all segments."""
        return sum(each.space.capacity for each in self.segments.values())

    @property
    def free(self) -> int:
        """Bytes that nobody has."""
        return sum(each.space.free for each in self.segments.values())

    def mount(self, name: str, capacity: int, client: str) -> None:
        """A client lends a segment. Raises ValueError for a name that is mounted."""
        if name in self.segments:
            raise ValueError(f"segment {name} is mounted already")
        self.segments[name] = Mounted(client, Space(capacity))

    def unmount(self, name: str) -> None:
        """A segment is gone."""
        del self.segments[name]

    def of(self, client: str) -> list[str]:
        """The segments of a client."""
        return [name for name, each in self.segments.items() if each.client == client]

    def possible(self, size: int, replicas: int) -> bool:
        """Whether the pieces would fit if nothing else was there."""
        return sum(each.space.capacity >= size for each in self.segments.values()) >= replicas

    def allocate(self, size: int, replicas: int, near: str | None) -> tuple[Replica, ...] | None:
        """That many pieces of `size` bytes, in different segments; None, and no piece, where they do not fit.

        The segment `near` is tried first, then those of a sample by their free share, then the others.
        """
        spaces = {name: each.space for name, each in self.segments.items()}
        names = self.rng.sample(list(spaces), len(spaces))
        sample = sorted(names[:SAMPLE], key=lambda name: -spaces[name].free / spaces[name].capacity)
        pieces: list[Replica] = []
        for name in sorted(sample + names[SAMPLE:], key=lambda name: name != near):
            if len(pieces) < replicas and (offset := spaces[name].allocate(size)) is not None:
                pieces.append(Replica(name, offset, size))
        if len(pieces) == replicas:
            return tuple(pieces)
        self.release(pieces)
        return None

    def release(self, replicas: Sequence[Replica]) -> None:
        """Take pieces back."""
        for segment, offset, _ in replicas:
            self.segments[segment].space.release(offset)
