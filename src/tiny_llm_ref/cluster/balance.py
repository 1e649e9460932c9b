"""Which instance a client asks, by what it knows itself: whom it asked last, and who still answers it.

What workers have cached, and what other clients ask of them, is the business of the KV-aware router.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from random import Random
from typing import Protocol


class Balancer(Protocol):
    """Chooses an instance."""

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """One of `ids`, which is not empty and in increasing order. inflight: this client's calls, by instance."""
        ...


class RandomChoice:
    """Any of them, each as likely."""

    def __init__(self, rng: Random):
        self.rng = rng

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """One of `ids`."""
        return self.rng.choice(ids)


class RoundRobin:
    """Each in turn, by their ids: the next one after the last choice, so that joins and leaves upset nothing."""

    def __init__(self) -> None:
        self.last = -1

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """One of `ids`."""
        after = bisect_right(ids, self.last)
        self.last = ids[after] if after < len(ids) else ids[0]
        return self.last


class LeastLoaded:
    """One with the fewest calls in flight; ties by chance, else the first would get all while nothing runs."""

    def __init__(self, rng: Random):
        self.rng = rng

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """One of `ids`."""
        least = min(inflight.get(i, 0) for i in ids)
        return self.rng.choice([i for i in ids if inflight.get(i, 0) == least])


class PowerOfTwo:
    """The less loaded of two that are drawn, of equal ones the first.

    Nearly as even as the least loaded, and it does not herd on stale news.
    """

    def __init__(self, rng: Random):
        self.rng = rng

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """One of `ids`."""
        return min(self.rng.sample(ids, min(2, len(ids))), key=lambda i: inflight.get(i, 0))


class DeviceWeighted:
    """One with the fewest calls for what it can do: inflight / weight. weights: by instance, 1 where none is given."""

    def __init__(self, rng: Random, weights: Mapping[int, float]):
        self.rng, self.weights = rng, weights

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """One of `ids`."""
        loads = [inflight.get(i, 0) / self.weights.get(i, 1.0) for i in ids]
        return self.rng.choice([i for i, load in zip(ids, loads, strict=True) if load == min(loads)])
