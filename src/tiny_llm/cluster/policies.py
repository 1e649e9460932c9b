# This file is yours to edit. Read book/src/week4-04-kv-aware-routing.md.
"""Which worker gets a request.

Knows what a `Query` tells of the workers. Chance comes in when a policy is made, so that a seed repeats every choice.
"""

from random import Random
from typing import Protocol

from .balance import Balancer
from .indexer import Worker
from .query import Query


# ANCHOR: policy
class Policy(Protocol):
    """Chooses a worker."""

    def choose(self, query: Query) -> Worker:
        """One of `query.workers`."""
        ...
        # ANCHOR_END: policy


class Balanced:
    """What a client does without a router, here with all requests that the router knows of: caches do not count."""

    def __init__(self, balancer: Balancer):
        self.balancer = balancer

    def choose(self, query: Query) -> Worker:
        """As the balancer says."""
        return self.balancer.choose(query.workers, query.load.inflight)


class KvAware:
    """The worker that costs least: blocks to compute, those cached left out, and blocks to read in decode.

    temperature: 0 takes the cheapest, ties at random: a fixed order would send all requests that nobody has cached to
    one worker. Above 0 the choice is spread, which helps where several routers decide on stale loads.
    """

    def __init__(self, rng: Random, temperature: float = 0.0):
        self.rng, self.temperature = rng, temperature

    def choose(self, query: Query) -> Worker:
        """One of them, by the probabilities of their costs."""
        raise NotImplementedError(
            "Week 4 Day 4 Task 4: KvAware.choose - see book/src/week4-04-kv-aware-routing.md#task-4"
        )
