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
        queues = [engine.queued_tokens / self.context for engine in engines]
        up, down = self.limits.prefill_up, self.limits.prefill_down
        if any(queue >= up for queue in queues):
            return Vote.UP
        low = all(queue < down or queue == 0 for queue in queues)
        return Vote.DOWN if low and all(queue < up for queue in spread(queues)) else Vote.STAY

    def decode(self, engines: tuple[EngineLoad, ...]) -> Vote:
        """By the KV memory, and down with the same care: else 1.02 on one engine is 0.51 on two, and 1.02 on one."""
        uses = [(engine.kv_used + engine.kv_queued) / engine.kv_total for engine in engines]
        up, down = self.limits.decode_up, self.limits.decode_down
        if any(use > up for use in uses):
            return Vote.UP
        low = all(use < down for use in uses)
        return Vote.DOWN if low and all(use <= up for use in spread(uses)) else Vote.STAY


def spread(loads: list[float]) -> list[float]:
    """The loads of N engines with one less, if all take an equal part of its own; infinite for the last one."""
    count = len(loads)
    return [load * count / (count - 1) for load in loads] if count > 1 else [float("inf")]
