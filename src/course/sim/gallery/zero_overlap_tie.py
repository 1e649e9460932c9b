"""New conversations, cached nowhere, before idle workers: all cost the same, and one of them is first in the list."""

from collections.abc import Mapping
from random import Random

import numpy as np

from course.sim.gallery.runs import BLOCK, SECOND, Cluster, cached_percent, served, ttft_ms
from course.sim.gallery.scenario import Outcome, Scenario

WORKERS, BLOCKS = 4, 512


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """Conversations of some turns, so few at a time that workers are mostly idle."""
    parts, load, policies = cluster("deployment"), cluster("workload"), cluster("policies")
    rng = np.random.default_rng(1)
    talks = cluster("closed_loop").Conversations(
        rng=rng,
        times=load.arrival_times(rng, 0.3, 60),
        turns=load.Lengths(6, 0.3),
        inputs=load.Lengths(1000, 0.5),
        outputs=load.Lengths(10, 0.5),
        think=20.0,
        block_tokens=BLOCK,
    )
    pool = parts.Pool(cluster("cost").Mocker(BLOCKS * BLOCK), WORKERS, kv_blocks=BLOCKS)
    control = parts.Control(telemetry=SECOND)
    simulator = cluster("simulator").Simulator(
        parts.Deployment(pool, routing=parts.Routing("kv-aware"), control=control), talks
    )

    class FirstOfEquals(policies.KvAware):
        """Takes the first of the cheapest, as a loop with `<` does."""

        def choose(self, query: object) -> int:
            values = cluster("routing").costs(query.candidates(), query.request.tokens, query.block_size, query.cost)
            return query.workers[values.index(min(values))]

    if not repaired:
        simulator.front.routers[0].policy = FirstOfEquals(Random(1))
    run = simulator.simulate()
    lines = {name: ([], []) for name in run.workers}
    for sample in run.samples:
        lines[sample.worker][0].append(sample.time / SECOND)
        lines[sample.worker][1].append(sample.cached)
    counts = served(run)
    numbers = {
        "prompt tokens cached, %": cached_percent(run),
        "mean TTFT, ms": ttft_ms(run),
        "requests at the busiest worker, %": 100 * max(counts.values()) / sum(counts.values()),
    }
    return Outcome(numbers, lines)


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """Four caches hold more than one."""
    assert repaired["prompt tokens cached, %"] > broken["prompt tokens cached, %"] + 10
    assert repaired["mean TTFT, ms"] < 0.8 * broken["mean TTFT, ms"]
    assert repaired["requests at the busiest worker, %"] < 0.6 * broken["requests at the busiest worker, %"]


SCENARIO = Scenario(
    title="Equal costs: one worker gets all new chats",
    complaint="Dynamo 3581: where nobody has a prefix cached all workers cost the same, and the tie-break hurts chats",
    broken="the first of equals",
    repaired="one of the equals by chance",
    play=play,
    check=check,
    y="cached KV blocks",
    kind="steps",
)
