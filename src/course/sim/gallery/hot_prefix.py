"""One system prompt before all requests: who has it cached gets everything, and the others idle."""

from collections.abc import Mapping

from course.sim.gallery.runs import BLOCK, Cluster, requests, served, tpot_ms, ttft_ms
from course.sim.gallery.scenario import Outcome, Scenario

WORKERS, BLOCKS = 8, 2048
SYSTEM_PROMPT = (1, 2048, 1.0)


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """Short questions behind a long system prompt."""
    parts = cluster("deployment")
    cost = cluster("routing").CostConfig(active=8.0) if repaired else cluster("routing").CostConfig()
    pool = parts.Pool(cluster("cost").Mocker(BLOCKS * BLOCK), WORKERS, kv_blocks=BLOCKS)
    load = requests(cluster, 30, 400, (100, 1.0), (100, 0.5), prefixes=SYSTEM_PROMPT)
    run = cluster("simulator").simulate(parts.Deployment(pool, routing=parts.Routing("kv-aware", cost=cost)), load)
    counts = sorted(served(run).values(), reverse=True)
    numbers = {
        "requests at the busiest worker": counts[0],
        "workers without a request": counts.count(0),
        "mean TPOT, ms": tpot_ms(run),
        "mean TTFT, ms": ttft_ms(run),
    }
    return Outcome(numbers, {"requests": (range(1, WORKERS + 1), counts)})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """With a price for each active request the cache does not outweigh the work."""
    assert repaired["workers without a request"] == 0 < broken["workers without a request"]
    assert repaired["requests at the busiest worker"] < 0.7 * broken["requests at the busiest worker"]
    assert repaired["mean TPOT, ms"] < 0.7 * broken["mean TPOT, ms"]


SCENARIO = Scenario(
    title="A shared system prompt sends all to few workers",
    complaint="Dynamo 737: with one system prompt, a few workers get all requests and the others none",
    broken="a cached block is worth as much as one to read in each decode step",
    repaired="each active request costs a worker 8 blocks more",
    play=play,
    check=check,
    x="workers, the busiest first",
    y="requests",
    kind="bars",
)
