"""In which segments an object goes.

Knows free space and names; it changes nothing.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Protocol

from .segment import Space


class Placement(Protocol):
    """Names the segments to try."""

    def order(self, spaces: Mapping[str, Space], size: int, near: str | None, rng: Random) -> Sequence[str]:
        """All segments, the best for `size` bytes first. near: the segment of who writes, None where it has none."""
        ...


class AnySegment:
    """In any order."""

    def order(self, spaces: Mapping[str, Space], size: int, near: str | None, rng: Random) -> Sequence[str]:
        """A shuffle of them."""
        return rng.sample(list(spaces), len(spaces))


class BestFree:
    """The largest free share among a sample of a few: nearly as even as to look at all. The others follow."""

    def __init__(self, sample: int = 6):
        self.sample = sample

    def order(self, spaces: Mapping[str, Space], size: int, near: str | None, rng: Random) -> Sequence[str]:
        """A shuffle whose first few are sorted by their free share."""
        names = rng.sample(list(spaces), len(spaces))
        best = sorted(names[: self.sample], key=lambda name: -spaces[name].free / spaces[name].capacity)
        return best + names[self.sample :]


class Near:
    """The segment of who writes first: no network between. Then as another placement says."""

    def __init__(self, rest: Placement):
        self.rest = rest

    def order(self, spaces: Mapping[str, Space], size: int, near: str | None, rng: Random) -> Sequence[str]:
        """`near`, then the others."""
        others = self.rest.order(spaces, size, near, rng)
        return [name for name in others if name == near] + [name for name in others if name != near]
