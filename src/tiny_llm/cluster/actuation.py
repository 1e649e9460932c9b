# This file is yours to edit. Read book/src/week4-07-planner.md.
"""From what a planner asks for to what is done: one numbered decision at a time, inside limits, and without flapping.

Knows counts of workers and times; starts and stops nobody.
"""

from collections.abc import Mapping
from typing import NamedTuple

from .observation import PoolLoad
from .window import SECOND


# ANCHOR: actuation
class Limit(NamedTuple):
    """Of a pool. gpus: of one worker. least, most: workers."""

    gpus: int = 1
    least: int = 1
    most: int = 64


class Decision(NamedTuple):
    """Workers that each pool shall have. number: 1 for the first, each larger by one."""

    number: int
    targets: dict[str, int]


class Actuation:
    """Turns targets into decisions.

    limits: by pool; other pools are left alone. budget: GPUs of all pools together.
    step: workers by which a pool may change in a decision. patience: ns in which
    nobody may have asked for more before a pool shrinks. time_out: ns that a
    decision is waited for. outcomes: of decisions, by number: "done", "timed out"
    or "superseded".
    """

    def __init__(
        self,
        limits: Mapping[str, Limit],
        budget: int,
        step: int = 2,
        patience: int = 300 * SECOND,
        time_out: int = 1800 * SECOND,
    ):
        least = sum(limit.gpus * limit.least for limit in limits.values())
        if least > budget:
            raise ValueError(f"the least workers of all pools take {least} GPUs, the budget is {budget}: raise it")
        self.limits, self.budget, self.step, self.patience, self.time_out = limits, budget, step, patience, time_out
        self.pending: Decision | None = None
        self.outcomes: dict[int, str] = {}
        self.since = 0
        self.count = 0
        self.known: dict[str, int] | None = None
        self.asked: dict[str, list[tuple[int, int]]] = {}
        # ANCHOR_END: actuation

    def observe(self, pools: Mapping[str, PoolLoad], now: int) -> None:
        """See what became of the pending decision, and whether somebody changed the workers by hand.

        A decision is superseded when a pool is wanted to have another number than its target, done when each pool is
        settled, and timed out `time_out` ns after it was made. It is not pending any more then. What is wanted now is
        where the next decision begins, whoever wants it. With an end of a decision, or a change by hand, all patience
        begins anew.
        """
        raise NotImplementedError("Week 4 Day 7 Task 3: Actuation.observe - see book/src/week4-07-planner.md#task-3")

    def steady(self, name: str, target: int, current: int, now: int) -> int:
        """A target that shrinks a pool only to the most that was asked for in the last `patience` ns, now included.

        Notes the target. What was asked for exactly `patience` ns ago does not count any more.
        """
        raise NotImplementedError("Week 4 Day 7 Task 3: Actuation.steady - see book/src/week4-07-planner.md#task-3")

    def share(self, targets: Mapping[str, int]) -> dict[str, int]:
        """The targets, or what the budget allows of them: each pool has its least, then in turns one more, in the order
        of `limits`, while it wants one and the budget has its GPUs."""
        raise NotImplementedError("Week 4 Day 7 Task 3: Actuation.share - see book/src/week4-07-planner.md#task-3")

    def decide(self, targets: Mapping[str, int], pools: Mapping[str, PoolLoad], now: int) -> Decision | None:
        """The next decision; None while one is pending, or where nothing would change. `observe` was called before.

        A pool without a target keeps what is wanted. Each target is steadied, then at most `step` away from what is
        wanted, then between least and most; then the budget is shared. Where growth does not fit beside the GPUs that
        are still held, what shrinks goes first, and nothing grows yet, but to its least.
        """
        raise NotImplementedError("Week 4 Day 7 Task 3: Actuation.decide - see book/src/week4-07-planner.md#task-3")
