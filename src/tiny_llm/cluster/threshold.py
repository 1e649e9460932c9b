# This file is yours to edit. Read book/src/week4-07-planner.md.
"""One worker more or less where a queue or a memory passes a threshold: no profile, no samples, no targets."""

from typing import Literal, NamedTuple

from .observation import EngineLoad
from .vote import PoolVoter, Vote


# ANCHOR: thresholds
class Thresholds(NamedTuple):
    """prefill_*: of queued prompt tokens over a context. decode_*: of KV blocks
    used and waited for over all.

    Up from `prefill_up` on, and above `decode_up`; down below the others. A
    `prefill_down` of 0 asks for empty queues.
    """

    prefill_up: float
    prefill_down: float
    decode_up: float
    decode_down: float


THRESHOLDS = {
    "throughput": Thresholds(1.0, 0.1, 1.0, 0.6),
    "latency": Thresholds(0.1, 0.0, 0.4, 0.1),
}


class ThresholdPlanner(PoolVoter):
    """Dynamo's threshold mode: up if any engine is above, down if all are below.

    context: tokens that the queues are measured by, the longest prompt's.
    """

    def __init__(self, mode: Literal["throughput", "latency"], context: int):
        self.limits, self.context = THRESHOLDS[mode], context
        # ANCHOR_END: thresholds

    def prefill(self, engines: tuple[EngineLoad, ...]) -> Vote:
        """By the queues. Down only if with one engine less none would be long enough to come up again."""
        raise NotImplementedError(
            "Week 4 Day 7 Task 2: ThresholdPlanner.prefill - see book/src/week4-07-planner.md#task-2"
        )

    def decode(self, engines: tuple[EngineLoad, ...]) -> Vote:
        """By the KV memory, and down with the same care: else 1.02 on one engine is 0.51 on two, and 1.02 on one."""
        raise NotImplementedError(
            "Week 4 Day 7 Task 2: ThresholdPlanner.decode - see book/src/week4-07-planner.md#task-2"
        )


def spread(loads: list[float]) -> list[float]:
    """The loads of N engines with one less, if all take an equal part of its own; infinite for the last one."""
    count = len(loads)
    return [load * count / (count - 1) for load in loads] if count > 1 else [float("inf")]
