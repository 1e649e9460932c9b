"""The share of requests that meet both objectives against the rate, 10 to 25 requests per second, on four GPUs. One
prefill and three decode workers fail beyond 10. Four workers that do both stay above the dotted line at 90 % until 20,
three prefill workers and one decode worker, too. Two of each are the only ones still above it at 25.
"""

from functools import cache

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.sweep import measure, points

LOAD = {"requests": 200, "input-mean": 3000.0, "input-cv": 0.5, "output-mean": 150.0, "output-cv": 0.5}
ENGINE = {"model": "qwen3-8b", "machine": "h100", "router": "least-loaded"}
GOALS = {"slo-ttft-ms": 600.0, "slo-tpot-ms": 15.0}
RATES = (10, 15, 20, 25)
POOLS = {"four of both": "workers=4", "1 : 3": "1+3", "2 : 2": "2+2", "3 : 1": "3+1"}


@cache
def shares(name: str) -> list[float]:
    """Of the requests that meet both objectives, at each rate."""
    pools = POOLS[name] if "=" in POOLS[name] else f"prefill-workers+decode-workers={POOLS[name]}"
    found = points(LOAD | ENGINE | GOALS, [f"rate={','.join(map(str, RATES))}", pools], "tiny_llm_ref")
    return [measure(point)["goodput"]["attainment"] for point in found]


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(7.2, 3.3), layout="constrained")
    axes = figure.subplots()
    for name, color, marker in zip(POOLS, theme.series, "osD^", strict=False):
        axes.plot(RATES, shares(name), marker=marker, color=color, label=name)
    axes.axhline(0.9, color=theme.muted, linestyle=":")
    axes.text(17, 0.88, "90 %", color=theme.muted, va="top")
    axes.set(xlabel="requests per second, on four GPUs", ylabel="share that meets both", ylim=(0, 1.05))
    axes.set_xticks(RATES)
    axes.legend(
        fontsize=9, title="prefill : decode workers", title_fontsize=9, loc="center", bbox_to_anchor=(0.52, 0.42)
    )
    return figure
