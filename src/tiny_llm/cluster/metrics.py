# This file is yours to edit. Read book/src/week4-02-workloads-and-slos.md.
"""What a run was worth: latencies, throughput, hit rates and utilisation, each by a definition that is written down.

Tools differ in these definitions, so numbers can only be compared after them. Times are ns inside and seconds in names
that say so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .busy import BusyTime
from .record import Record
from .window import Window

SATURATED = 0.95
"""Above this utilisation means depend on how long one measures, and cannot be compared."""


class Distribution(NamedTuple):
    """How some values are spread. count: how many. Percentiles are interpolated linearly."""

    count: int
    mean: float
    std: float
    p50: float
    p90: float
    p99: float
    most: float


def distribution(values: Iterable[float] | np.ndarray) -> Distribution | None:
    """Of any values; None without one."""
    array = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.float64)
    if not array.size:
        return None
    p50, p90, p99 = np.percentile(array, [50, 90, 99]).tolist()
    return Distribution(array.size, float(array.mean()), float(array.std()), p50, p90, p99, float(array.max()))


class HitRates(NamedTuple):
    """How much of the prompts was in a cache: three numbers, which differ where prompts differ in length.

    block: of all blocks. token: of all tokens. request: mean over requests of the share of its own tokens.
    """

    block: float
    token: float
    request: float


def hit_rates(records: Sequence[Record]) -> HitRates:
    """Of all records, in the three weights; 0 where there is nothing to hit."""
    raise NotImplementedError("Week 4 Day 2 Task 2: hit_rates - see book/src/week4-02-workloads-and-slos.md#task-2")


@dataclass(frozen=True)
class Summary:
    """A run in numbers. Latencies in ns: ttft, tpot and e2e one value per request, itl all gaps between tokens pooled.

    requests_per_second: answers completed in the window; tokens_per_second: tokens that left in it. hits: of the
    requests that count for latency. utilisation: rho of each pool.
    """

    window: Window
    ttft: Distribution | None
    tpot: Distribution | None
    itl: Distribution | None
    e2e: Distribution | None
    requests_per_second: float
    tokens_per_second: float
    hits: HitRates
    utilisation: Mapping[str, float]

    @property
    def saturated(self) -> list[str]:
        """The pools that are too busy for means to be compared."""
        return [name for name, rho in self.utilisation.items() if rho > SATURATED]


def summarise(
    records: Sequence[Record], window: Window, pools: Mapping[str, Sequence[BusyTime]] | None = None
) -> Summary:
    """Latencies of the complete requests that arrived in the window, rates of what left in it.

    A request that ends after the window counts too: else the slow ones would be left out.
    """
    raise NotImplementedError("Week 4 Day 2 Task 2: summarise - see book/src/week4-02-workloads-and-slos.md#task-2")


def mean_in_system(records: Sequence[Record], window: Window) -> float:
    """L: requests in the system on average over the window. Little's law: L is their rate times their mean E2E, where
    all arrive and end in the window; those that cross an edge count with the part inside.
    """
    raise NotImplementedError(
        "Week 4 Day 2 Task 2: mean_in_system - see book/src/week4-02-workloads-and-slos.md#task-2"
    )
