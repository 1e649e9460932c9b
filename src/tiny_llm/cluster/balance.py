# This file is yours to edit. Read book/src/week4-03-distributed-runtime.md.
"""Which instance a client asks, by what it knows itself: whom it asked last, and who still answers it.

What workers have cached, and what other clients ask of them, is the business of the KV-aware router.
"""

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
        raise NotImplementedError(
            "Week 4 Day 3 Task 3: RoundRobin.choose - see book/src/week4-03-distributed-runtime.md#task-3"
        )


class LeastLoaded:
    """One with the fewest calls in flight; ties by chance, else the first would get all while nothing runs."""

    def __init__(self, rng: Random):
        self.rng = rng

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """One of `ids`."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 3: LeastLoaded.choose - see book/src/week4-03-distributed-runtime.md#task-3"
        )


class PowerOfTwo:
    """The less loaded of two that are drawn, of equal ones the first.

    Nearly as even as the least loaded, and it does not herd on stale news.
    """

    def __init__(self, rng: Random):
        self.rng = rng

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """One of `ids`."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 3: PowerOfTwo.choose - see book/src/week4-03-distributed-runtime.md#task-3"
        )


class DeviceWeighted:
    """One with the fewest calls for what it can do: inflight / weight. weights: by instance, 1 where none is given."""

    def __init__(self, rng: Random, weights: Mapping[int, float]):
        self.rng, self.weights = rng, weights

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """One of `ids`."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 3: DeviceWeighted.choose - see book/src/week4-03-distributed-runtime.md#task-3"
        )
