# This file is yours to edit. Read book/src/week4-07-planner.md.
"""One more worker, one less, or neither: what a pool's load asks for, put together."""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from .observation import EngineLoad, Observation, PoolLoad


class Vote(IntEnum):
    """What to add to the number of workers."""

    DOWN = -1
    STAY = 0
    UP = 1


def combined(votes: Iterable[Vote]) -> Vote:
    """Of a pool that prefills and decodes: up if one of them asks for it, down if both do."""
    raise NotImplementedError("Week 4 Day 7 Task 2: combined - see book/src/week4-07-planner.md#task-2")


ROLES = {"prefill": ("prefill",), "decode": ("decode",), "worker": ("prefill", "decode")}
"""What the workers of a pool do, by its name."""


class PoolVoter:
    """Votes on pools by what their workers do: subclasses write the two votes."""

    def learn(self, seen: Observation) -> None:
        """Take a tick in; nothing, for one without memory."""

    def prefill(self, engines: tuple[EngineLoad, ...]) -> Vote:
        """Of what prompts wait. engines: one or more, that serve."""
        raise NotImplementedError

    def decode(self, engines: tuple[EngineLoad, ...]) -> Vote:
        """Of what answers hold. engines: one or more, that serve."""
        raise NotImplementedError

    def targets(self, pools: Mapping[str, PoolLoad]) -> dict[str, int]:
        """Workers of each pool: what was wanted, and the vote. A pool without an engine that serves is left alone."""
        return {
            name: pool.wanted + combined(getattr(self, role)(pool.engines) for role in ROLES[name])
            for name, pool in pools.items()
            if pool.engines
        }
