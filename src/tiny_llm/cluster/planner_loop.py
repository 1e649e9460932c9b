# This file is yours to edit. Read book/src/week4-07-planner.md.
"""A planner at work: looks at each tick, thinks in intervals, decides when no decision is pending."""

from collections.abc import Mapping

from .actuation import Actuation, Decision
from .observation import Observation, PoolLoad, Traffic, merged
from .planner import ClassicPlanner
from .vote import PoolVoter
from .window import SECOND


# ANCHOR: loop
class PlannerLoop:
    """Both planners, or one of them, and what turns their targets into decisions.

    throughput: asked once in `interval` ns. load: asked at each tick, above what `throughput` says.
    """

    def __init__(
        self,
        actuation: Actuation,
        throughput: ClassicPlanner | None = None,
        load: PoolVoter | None = None,
        interval: int = 180 * SECOND,
    ):
        self.actuation, self.throughput, self.load, self.interval = actuation, throughput, load, interval
        self.bounds: dict[str, int] = {}
        self.parts: list[Traffic] = []
        # ANCHOR_END: loop

    def tick(self, seen: Observation, now: int) -> Decision | None:
        """Look, at `now` ns. Returns what is to be done, if anything: at once, before the next tick."""
        self.actuation.observe(seen.pools, now)
        self.listen(seen)
        if self.actuation.pending is not None:
            return None
        return self.actuation.decide(self.asked(seen.pools), seen.pools, now)

    def listen(self, seen: Observation) -> None:
        """Let the planners learn, also while a decision is pending."""
        if self.load is not None:
            self.load.learn(seen)
        if self.throughput is None:
            return
        self.parts.append(seen.traffic)
        traffic = merged(self.parts)
        if traffic.duration >= self.interval:
            self.throughput.learn(Observation(traffic, seen.pools))
            self.bounds, self.parts = self.throughput.targets(), []

    def asked(self, pools: Mapping[str, PoolLoad]) -> dict[str, int]:
        """What the planners ask for. With both, the throughput planner's are lower bounds of the load planner's.

        A pool of which the load planner says nothing gets its bound.
        """
        raise NotImplementedError("Week 4 Day 7 Task 2: PlannerLoop.asked - see book/src/week4-07-planner.md#task-2")
