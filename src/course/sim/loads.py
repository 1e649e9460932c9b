"""The loads that an engine is calibrated with, and those that it is predicted on: never the same."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from course.sim.package import Package
from course.sim.real_engine import Settings

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.cost import StepCost
    from tiny_llm_ref.cluster.workload import Arrival

PROMPT, ANSWER = 160, 40
"""Mean tokens."""
LONGEST = (640, 160)


def load(package: Package, rate: float, requests: int, seed: int) -> list["Arrival"]:
    """Requests at `rate` per second, with lengths of all sizes."""
    workload, rng = package.module("workload"), np.random.default_rng(seed)
    times = workload.arrival_times(rng, rate, requests)
    lengths = [workload.Lengths(mean, 0.8, most) for mean, most in zip((PROMPT, ANSWER), LONGEST, strict=True)]
    return workload.generate(rng, times, *lengths, block_tokens=Settings().page_size)


def simulated(package: Package, arrivals: Sequence["Arrival"], cost: "StepCost", settings: Settings) -> np.ndarray:
    """(requests, 3): TTFT, TPOT, E2E in ms as the simulator has them for the same engine."""
    deployment = package.module("deployment")
    pool = deployment.Pool(
        cost,
        max_num_seqs=settings.rows,
        max_num_batched_tokens=settings.token_budget,
        block_size=settings.page_size,
        kv_blocks=settings.pages,
        max_len=settings.max_len,
    )
    open_loop = package.module("workload").OpenLoop(arrivals, settings.page_size)
    ran = package.module("simulator").simulate(deployment.Deployment(pool), open_loop)
    times = [(each.ttft, np.nan if each.tpot is None else each.tpot, each.e2e) for each in ran.records.values()]
    return np.array(times) / 1e6


def capacity(package: Package, cost: "StepCost", settings: Settings) -> float:
    """Requests per second that the model says the engine can serve: so many that all rows are always in use."""
    arrivals = [each._replace(time_ns=0) for each in load(package, 1.0, 20 * settings.rows, seed=0)]
    times = simulated(package, arrivals, cost, settings)
    return len(arrivals) / (float(times[:, 2].max()) / 1e3)
