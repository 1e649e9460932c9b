"""How many workers each pool should have."""

import math


def prefill_replicas(tokens: float, interval: float, correction: float, tokens_per_s: float) -> int:
    """Prefill workers for the prompt tokens of an interval.

    tokens: expected. interval: seconds. correction: observed over profiled TTFT; above 1 it is queueing, which more
    workers mend, and is not counted twice. tokens_per_s: of one worker.
    """
    return math.ceil(tokens / interval * min(1.0, correction) / tokens_per_s)
