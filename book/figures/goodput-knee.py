"""Two panels over the rate of arrivals, one to nine per second, for one simulated engine. Left: requests served per
second follow the rate up to about five and flatten at six; those that met their objectives follow too, peak at four
and a half, and fall to nearly nothing at nine. Right: the share that met them, near one up to five, then a cliff. A
line at 90 per cent; the points that bisection tried crowd where the curve crosses it, at 5.38 per second.
"""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme
from course.drills.one_replica import OneReplica
from tiny_llm_ref.cluster.goodput import Objective, attainment, goodput, highest_rate
from tiny_llm_ref.cluster.metrics import summarise
from tiny_llm_ref.cluster.window import steady_state
from tiny_llm_ref.cluster.workload import SECOND, Lengths, OpenLoop, arrival_times, generate

GOAL = Objective(ttft=400_000_000, tpot=80_000_000)
RATES = (1.0, 2.0, 3.0, 4.0, 5.0, 5.5, 6.0, 7.0, 9.0)


@cache
def measure(rate: float) -> tuple[float, float, float]:
    """Requests per second, good ones per second, and attainment of a run."""
    rng = np.random.default_rng(0)
    times = arrival_times(rng, rate, 700)
    arrivals = generate(rng, times, Lengths(500, 0.8, most=2000), Lengths(150, 0.8, most=600))
    records = OneReplica("tiny_llm_ref", pages=4096).serve(OpenLoop(arrivals))
    window = steady_state(records, 15 * SECOND)
    served = summarise(records, window).requests_per_second
    return served, goodput(records, GOAL, window), attainment(records, GOAL, window)


def draw(theme: Theme) -> Figure:
    """The figure."""
    known = {rate: measure(rate) for rate in RATES}
    tried: dict[float, float] = {}

    def attained(rate: float) -> float:
        tried[rate] = measure(rate)[2]
        return tried[rate]

    found = highest_rate(attained, 1.0, 9.0, tolerance=0.02)
    figure = Figure(figsize=(7.2, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(RATES, [known[rate][0] for rate in RATES], color=theme.series[0], marker="o", label="served")
    left.plot(RATES, [known[rate][1] for rate in RATES], color=theme.series[1], marker="s", label="goodput")
    left.set(xlabel="arrivals per second", ylabel="requests per second", ylim=(0, 7))
    left.legend(fontsize=9, loc="upper left")
    curve = sorted((known_rate, known[known_rate][2]) for known_rate in RATES)
    right.plot(*zip(*curve, strict=True), color=theme.series[0], marker="o")
    right.plot(list(tried), list(tried.values()), color=theme.series[1], marker="x", linestyle="none")
    right.axhline(0.9, color=theme.muted, linestyle=":", linewidth=1.2)
    right.annotate(f"{found:.2f}/s", (found, 0.9), (6.2, 0.78), fontsize=9, arrowprops={"arrowstyle": "-", "lw": 0.8})
    right.set(xlabel="arrivals per second", ylabel="attainment", ylim=(-0.03, 1.05))
    return figure
