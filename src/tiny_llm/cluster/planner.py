# This file is yours to edit. Read book/src/week4-07-planner.md.
"""How many workers each pool should have for the traffic of the next interval, by what their engines can do.

Knows a profile and means of intervals; no clock, and not how workers are started.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from .forecast import Holt
from .goodput import Objective
from .observation import Observation, Traffic
from .profile import Profile
from .window import SECOND


def whole(amount: float) -> int:
    """Workers for an amount: rounded up, but 4.0000000001 is 4 with a rounding error. At least 1."""
    return max(1, math.ceil(round(amount, 9)))


def prefill_replicas(
    requests: float, input_length: float, seconds: float, correction: float, rate: float, gpus: int = 1
) -> int:
    """Prefill workers for `requests` prompts of `input_length` tokens in so many seconds.

    correction: observed over profiled TTFT. Above 1 it is queueing, which more workers mend: it is not counted twice.
    rate: prompt tokens per second and GPU. gpus: of a worker.
    """
    raise NotImplementedError("Week 4 Day 7 Task 1: prefill_replicas - see book/src/week4-07-planner.md#task-1")


def decode_replicas(requests: float, output_length: float, seconds: float, rate: float, gpus: int = 1) -> int:
    """Decode workers for `requests` answers of `output_length` tokens in so many seconds. rate: tokens per second and
    GPU. gpus: of a worker."""
    raise NotImplementedError("Week 4 Day 7 Task 1: decode_replicas - see book/src/week4-07-planner.md#task-1")


# ANCHOR: demand
class Demand(NamedTuple):
    """requests: per second. input_length, output_length: mean tokens. hit_rate:
    prompt tokens found in a cache.
    """

    requests: float
    input_length: float
    output_length: float
    hit_rate: float


class DemandForecast:
    """A forecast each for the rate, the lengths and the hit rate."""

    def __init__(self, make: Callable[[], Holt]):
        self.requests, self.input, self.output, self.hits = make(), make(), make(), make()

    def add(self, traffic: Traffic) -> None:
        """An interval. One without requests says nothing about lengths."""
        self.requests.add(traffic.requests * SECOND / traffic.duration)
        means = (self.input, traffic.input_length), (self.output, traffic.output_length), (self.hits, traffic.hit_rate)
        for forecast, value in means:
            if value is not None:
                forecast.add(value)

    def next(self) -> Demand:
        """The next interval."""
        return Demand(self.requests.next(), self.input.next(), self.output.next(), min(1.0, self.hits.next()))
        # ANCHOR_END: demand


# ANCHOR: classic
class ClassicPlanner:
    """Dynamo's first throughput planner: a profile, corrected by what the last
    interval was like.

    objective: its tpot is the target of the ITL. make: a new forecast. Pools
    "prefill" and "decode".
    """

    def __init__(self, profile: Profile, objective: Objective, make: Callable[[], Holt] = Holt):
        if objective.ttft is None or objective.tpot is None:
            raise ValueError("a planner needs targets for the time to first token (ttft) and per output token (tpot)")
        self.profile, self.ttft, self.itl = profile, objective.ttft, objective.tpot
        self.demand = DemandForecast(make)
        self.prefill_correction = self.decode_correction = 1.0
        # ANCHOR_END: classic

    def learn(self, seen: Observation) -> None:
        """Take an interval in: its demand, and observed over profiled TTFT and ITL where both can be had.

        The batch that the profile is asked for is what Little's law says: answers per second, times how long one
        decodes, shared by the decode engines. The context is that of a request in the middle of its answer.
        """
        raise NotImplementedError("Week 4 Day 7 Task 1: ClassicPlanner.learn - see book/src/week4-07-planner.md#task-1")

    def targets(self) -> dict[str, int]:
        """Workers of both pools for the next interval; none before a prompt and an answer were seen."""
        demand = self.demand.next()
        if not demand.input_length or not demand.output_length:
            return {}
        return self.replicas(demand, demand.input_length)

    def replicas(self, demand: Demand, new: float) -> dict[str, int]:
        """Workers of both pools for a demand of which `new` tokens of each prompt have to be computed."""
        raise NotImplementedError(
            "Week 4 Day 7 Task 1: ClassicPlanner.replicas - see book/src/week4-07-planner.md#task-1"
        )


class ThroughputPlanner(ClassicPlanner):
    """Dynamo's later one: cached tokens are not counted, and a target that cannot be met asks for more. It compares
    nothing with the profile, so its corrections stay 1."""

    def learn(self, seen: Observation) -> None:
        """Take an interval in: its demand."""
        self.demand.add(seen.traffic)

    def targets(self) -> dict[str, int]:
        """As above, where of a prompt only what is not cached is computed, at least one token.

        If that takes longer than the TTFT target, alone on an engine, there are at least as many prefill workers as it
        is times the target. (The observed TTFT would not do: in a queue it has no bound, and nor would the workers.)
        """
        raise NotImplementedError(
            "Week 4 Day 7 Task 1: ThroughputPlanner.targets - see book/src/week4-07-planner.md#task-1"
        )
