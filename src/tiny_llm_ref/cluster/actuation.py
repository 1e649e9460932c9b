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
        wanted = {name: pools[name].wanted for name in self.limits}
        outcome = None
        if wanted != self.known:
            outcome = "superseded"
        elif self.pending is not None and all(pools[name].settled for name in self.limits):
            outcome = "done"
        elif self.pending is not None and now - self.since >= self.time_out:
            outcome = "timed out"
        if outcome is None:
            return
        if self.pending is not None:
            self.outcomes[self.pending.number] = outcome
        self.pending, self.known = None, wanted
        self.asked = {name: [(now, count)] for name, count in wanted.items()}

    def steady(self, name: str, target: int, current: int, now: int) -> int:
        """A target that shrinks a pool only to the most that was asked for in the last `patience` ns, now included.

        Notes the target. What was asked for exactly `patience` ns ago does not count any more.
        """
        asked = [(time, count) for time, count in self.asked[name] if now - time < self.patience]
        self.asked[name] = [*asked, (now, target)]
        return max(target, min(current, max(count for _, count in self.asked[name])))

    def share(self, targets: Mapping[str, int]) -> dict[str, int]:
        """The targets, or what the budget allows of them: each pool has its least, then in turns one more, in the order
        of `limits`, while it wants one and the budget has its GPUs."""
        counts = {name: limit.least for name, limit in self.limits.items()}
        left = self.budget - sum(limit.gpus * limit.least for limit in self.limits.values())
        grows = True
        while grows:
            grows = False
            for name, limit in self.limits.items():
                if counts[name] < targets[name] and limit.gpus <= left:
                    counts[name] += 1
                    left -= limit.gpus
                    grows = True
        return counts

    def decide(self, targets: Mapping[str, int], pools: Mapping[str, PoolLoad], now: int) -> Decision | None:
        """The next decision; None while one is pending, or where nothing would change. `observe` was called before.

        A pool without a target keeps what is wanted. Each target is steadied, then at most `step` away from what is
        wanted, then between least and most; then the budget is shared. Where growth does not fit beside the GPUs that
        are still held, what shrinks goes first, and nothing grows yet, but to its least.
        """
        if self.pending is not None:
            return None
        aims = {}
        for name, limit in self.limits.items():
            current = pools[name].wanted
            aim = self.steady(name, targets.get(name, current), current, now)
            aim = min(max(aim, current - self.step), current + self.step)
            aims[name] = min(max(aim, limit.least), limit.most)
        aims = self.share(aims)
        if sum(limit.gpus * max(pools[name].held, aims[name]) for name, limit in self.limits.items()) > self.budget:
            aims = {name: max(self.limits[name].least, min(aim, pools[name].wanted)) for name, aim in aims.items()}
        if all(aims[name] == pools[name].wanted for name in aims):
            return None
        self.count += 1
        self.pending, self.since, self.known = Decision(self.count, aims), now, aims
        return self.pending
