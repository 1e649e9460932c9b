"""Bars: how long calls wait at sixteen workers that are busy for 85 % of the time, with four ways to choose a worker,
by one client and by eight clients that each know only their own calls. Random choice waits longest, 5.4 calls. One
client waits 2.4 calls with round robin, 1.3 with two choices and 0.3 with the least loaded; eight clients wait 3.0, 2.3
and 1.9, because what a client has in flight says little about what a worker has to do.
"""

import heapq
from random import Random

from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.cluster.balance import Balancer, LeastLoaded, PowerOfTwo, RandomChoice, RoundRobin

WORKERS, LOAD, CALLS = 16, 0.85, 40_000
NAMES = ("random", "round robin", "two choices", "least loaded")


def balancers(rng: Random) -> list[Balancer]:
    """One of each kind."""
    return [RandomChoice(rng), RoundRobin(), PowerOfTwo(rng), LeastLoaded(rng)]


def waits(kind: int, clients: int) -> float:
    """The mean wait, in mean times of a call, where each worker answers one call after the other."""
    rng = Random(5)
    balance = [balancers(Random(i))[kind] for i in range(clients)]
    inflight: list[dict[int, int]] = [{} for _ in range(clients)]
    free, ends, now, waited = [0.0] * WORKERS, [], 0.0, 0.0
    for _ in range(CALLS):
        now += rng.expovariate(WORKERS * LOAD)
        while ends and ends[0][0] <= now:
            _, client, worker = heapq.heappop(ends)
            inflight[client][worker] -= 1
        client = rng.randrange(clients)
        worker = balance[client].choose(range(WORKERS), inflight[client])
        inflight[client][worker] = inflight[client].get(worker, 0) + 1
        begin = max(now, free[worker])
        waited += begin - now
        free[worker] = begin + rng.expovariate(1)
        heapq.heappush(ends, (free[worker], client, worker))
    return waited / CALLS


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes = figure.add_subplot()
    for row, (clients, text) in enumerate(((1, "one client"), (8, "eight clients"))):
        values = [waits(kind, clients) for kind in range(len(NAMES))]
        places = [i + (row - 0.5) * 0.38 for i in range(len(NAMES))]
        axes.bar(places, values, 0.34, color=theme.series[row], label=text)
        for x, value in zip(places, values, strict=True):
            axes.text(x, value + 0.08, f"{value:.1f}", ha="center", fontsize=9)
    axes.set_xticks(range(len(NAMES)), NAMES)
    axes.set_ylabel("mean wait, in calls")
    axes.legend()
    return figure
