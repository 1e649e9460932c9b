# This file is yours to edit. Read book/src/week4-07-planner.md.
"""The cheapest deployment that is good enough, with few predictions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


# ANCHOR: choose
class Sizes(NamedTuple):
    """Workers of a deployment. prefill: 0 where each worker does both."""

    prefill: int
    decode: int


@dataclass(frozen=True)
class Space:
    """What may be deployed: numbers of prefill and of decode workers, rising; GPUs
    of one of each.
    """

    prefill: tuple[int, ...]
    decode: tuple[int, ...]
    prefill_gpus: int = 1
    decode_gpus: int = 1

    def gpus(self, sizes: Sizes) -> int:
        """What it costs."""
        return sizes.prefill * self.prefill_gpus + sizes.decode * self.decode_gpus


@dataclass(frozen=True)
class Chosen:
    """sizes: of the deployment, which takes so many gpus. attained: the share of
    requests predicted to meet all objectives. predictions: all that were made,
    in order. monotone: whether none of them contradicts another.
    """

    sizes: Sizes
    gpus: int
    attained: float
    predictions: dict[Sizes, float] = field(default_factory=dict)
    monotone: bool = True

    def __str__(self) -> str:
        prefill, decode = self.sizes
        pools = f"{prefill} prefill + {decode} decode" if prefill else f"{decode} aggregated"
        return f"{pools} workers on {self.gpus} GPUs: {self.attained:.1%} of requests will meet the objectives"
        # ANCHOR_END: choose


def choose(space: Space, attained: Callable[[Sizes], float], target: float = 0.9) -> Chosen | None:
    """The cheapest deployment whose attainment is at least `target`; of equal ones, the one with least prefill workers.

    attained(sizes) predicts the share of requests that meet all objectives. That is a whole run: no sizes twice.
    If more workers never make it worse, `walk` finds the answer. As a check, the next larger sizes of the answer in
    either pool are predicted too. Where a prediction contradicts another, more workers do make it worse: then all sizes
    are gone through by their cost. None where nothing is good enough.
    """
    raise NotImplementedError("Week 4 Day 7 Task 4: choose - see book/src/week4-07-planner.md#task-4")


def walk(space: Space, met: Callable[[Sizes], bool]) -> Sizes | None:
    """Along the border of what is good enough: from the fewest prefill and the most decode workers, one decode worker
    less while it is met, else one more prefill worker. Sizes that cost no less than the best so far are not predicted.

    So there are fewer predictions than numbers in both lists. None where nothing is met.
    """
    raise NotImplementedError("Week 4 Day 7 Task 4: walk - see book/src/week4-07-planner.md#task-4")


def larger(space: Space, sizes: Sizes) -> list[Sizes]:
    """One step larger, in each pool where there is one."""
    prefill = [sizes._replace(prefill=count) for count in space.prefill if count > sizes.prefill]
    decode = [sizes._replace(decode=count) for count in space.decode if count > sizes.decode]
    return prefill[:1] + decode[:1]
