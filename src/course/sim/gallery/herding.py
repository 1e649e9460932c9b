"""Several routers in front of the same workers: all see the same idle worker, and all send their requests there."""

from collections.abc import Mapping
from itertools import groupby

from course.sim.gallery.runs import BLOCK, MS, SECOND, Cluster, requests, ttft_ms
from course.sim.gallery.scenario import Outcome, Scenario

WORKERS, ROUTERS, BLOCKS = 4, 8, 2048
RATE = 30
LOOK = 100 * MS
WINDOW = (2 * SECOND, 8 * SECOND)
"""What the plot shows."""


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """Bursts of requests. The routers hear of each other a second late."""
    parts, load = cluster("deployment"), requests(cluster, RATE, 500, (1500, 1.0), (40, 0.5), burstiness=0.25)
    routing = parts.Routing("kv-aware", temperature=1.0 if repaired else 0.0, routers=ROUTERS, sync=SECOND)
    pool = parts.Pool(cluster("cost").Mocker(BLOCKS * BLOCK), WORKERS, kv_blocks=BLOCKS)
    control = parts.Control(telemetry=LOOK)
    run = cluster("simulator").simulate(parts.Deployment(pool, routing=routing, control=control), load)
    lines = {name: ([], []) for name in run.workers}
    spread = []
    for time, samples in groupby(run.samples, key=lambda sample: sample.time):
        counts = {sample.worker: sample.running + sample.waiting for sample in samples}
        spread.append(max(counts.values()) - min(counts.values()))
        for name, count in counts.items() if WINDOW[0] <= time < WINDOW[1] else ():
            lines[name][0].append(time / SECOND)
            lines[name][1].append(count)
    numbers = {"mean TTFT, ms": ttft_ms(run), "busiest less idlest, requests": sum(spread) / len(spread)}
    return Outcome(numbers, lines)


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """Chance spreads what stale knowledge would send to one worker."""
    assert repaired["mean TTFT, ms"] < 0.7 * broken["mean TTFT, ms"]
    assert repaired["busiest less idlest, requests"] < 0.8 * broken["busiest less idlest, requests"]


SCENARIO = Scenario(
    title="Several routers choose the same worker",
    complaint="Dynamo 589: with several front ends, requests pile up on one worker while others idle",
    broken="each router takes the cheapest worker that it knows of",
    repaired="temperature 1: cheap workers are likely, not certain",
    play=play,
    check=check,
    y="requests at a worker",
    kind="steps",
)
