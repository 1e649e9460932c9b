"""A steady load that is too much for one worker and little for two: up, down, up, down."""

from collections.abc import Mapping

import numpy as np

from course.sim.gallery.runs import BLOCK, SECOND, Cluster, tpot_ms, ttft_ms, worker_minutes, workers_over_time
from course.sim.gallery.scenario import Outcome, Scenario

USERS, REQUESTS, BLOCKS = 32, 1200, 560


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """A steady load on one worker, whose memory it fills."""
    parts, threshold, vote = cluster("deployment"), cluster("threshold"), cluster("vote").Vote

    class WithoutCare(threshold.ThresholdPlanner):
        """Takes a worker away whenever the others are little used, whatever they would be then."""

        def decode(self, engines: tuple) -> int:
            """By the KV memory."""
            uses = [(engine.kv_used + engine.kv_queued) / engine.kv_total for engine in engines]
            if any(use > self.limits.decode_up for use in uses):
                return vote.UP
            return vote.DOWN if all(use < self.limits.decode_down for use in uses) else vote.STAY

    planner = (threshold.ThresholdPlanner if repaired else WithoutCare)("throughput", context=32_000)
    limit = cluster("actuation").Limit(most=4)
    actuation = cluster("actuation").Actuation({"worker": limit}, budget=4, patience=30 * SECOND)
    loop = cluster("planner_loop").PlannerLoop(actuation, load=planner)
    pool = parts.Pool(cluster("cost").Mocker(BLOCKS * BLOCK), workers=1, kv_blocks=BLOCKS)
    lengths = cluster("workload").Lengths
    users = cluster("closed_loop").ClosedLoop(
        rng=np.random.default_rng(1),
        users=USERS,
        requests=REQUESTS,
        inputs=lengths(1000, 0.2),
        outputs=lengths(300, 0.2),
        block_tokens=BLOCK,
    )
    deployment = parts.Deployment(pool, routing=parts.Routing("least-loaded"))
    run = cluster("simulator").simulate(deployment, users, planner=loop)
    times, counts = workers_over_time(run)
    numbers = {
        "decisions to scale": sum(note.kind == "scale" for note in run.notes),
        "worker minutes": worker_minutes(run),
        "mean TTFT, ms": ttft_ms(run),
        "mean TPOT, ms": tpot_ms(run),
    }
    return Outcome(numbers, {"workers": (times, counts)})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """The number settles, and takes no more workers."""
    assert repaired["decisions to scale"] <= 3 < 8 <= broken["decisions to scale"]
    assert repaired["worker minutes"] < 1.1 * broken["worker minutes"]
    assert repaired["mean TTFT, ms"] < 0.6 * broken["mean TTFT, ms"]


SCENARIO = Scenario(
    title="Workers come and go under a steady load",
    complaint="Dynamo's planner, thresholds: one worker is too few, so with two each looks idle, so there is one again",
    broken="one worker less whenever all are below 60 %",
    repaired="only if those that stay could take its load",
    play=play,
    check=check,
    y="workers that serve",
    kind="steps",
)
