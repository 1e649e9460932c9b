"""A grid of deployments, prefill workers across and decode workers up, 1 to 6 each. Some cells hold a number, the share
of requests that meet the objectives, in the order in which they were predicted: the walk steps to the right along the
top while too few are met, then down the third column until two decode workers are too few. The answer above that cell,
three and three, has a frame, and the next larger cells beside it are good enough too. The others were never run.
"""

from functools import cache

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme
from course.sim.config import Config
from course.sim.execute import execute
from course.sim.package import Package
from course.sim.report import report
from tiny_llm_ref.cluster.choose import Chosen, Sizes, Space, choose

SIZES = tuple(range(1, 7))
LOAD = {"rate": 40.0, "requests": 800, "input-mean": 512.0, "input-cv": 0.5, "output-mean": 64.0, "output-cv": 0.5}
ENGINE = {"step-time": "opt-13b-a100", "kv-bytes": 819_200, "block-size": 16, "kv-blocks": 3500, "link-gbps": 300.0}
GOALS = {"slo-ttft-ms": 400.0, "slo-tpot-ms": 40.0}


def attained(sizes: Sizes) -> float:
    """The share of requests that meet both objectives, by a run."""
    package = Package("tiny_llm_ref")
    workers = {"prefill-workers": sizes.prefill, "decode-workers": sizes.decode}
    config = Config.of(ENGINE | LOAD | GOALS | workers)
    return report(config, package, execute(config, package))["goodput"]["attainment"]


@cache
def chosen() -> Chosen | None:
    """The answer, with all that was predicted on the way."""
    return choose(Space(SIZES, SIZES), attained)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(5.4, 4.0), layout="constrained")
    axes, best = figure.add_subplot(), chosen()
    for p in SIZES:
        for d in SIZES:
            axes.add_patch(Rectangle((p - 0.5, d - 0.5), 1, 1, facecolor=theme.soft, edgecolor=theme.paper))
    for number, (sizes, share) in enumerate(best.predictions.items(), 1):
        place = (sizes.prefill - 0.5, sizes.decode - 0.5)
        color = theme.series[2] if share >= 0.9 else theme.series[1]
        axes.add_patch(Rectangle(place, 1, 1, facecolor=color, edgecolor=theme.paper, alpha=0.35))
        axes.text(sizes.prefill, sizes.decode, f"{share:.0%}", ha="center", va="center", fontsize=10)
        axes.text(place[0] + 0.07, place[1] + 0.93, str(number), va="top", fontsize=7.5, color=theme.muted)
    corner = (best.sizes.prefill - 0.5, best.sizes.decode - 0.5)
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=theme.ink, linewidth=2))
    axes.set(xlim=(0.5, 6.5), ylim=(0.5, 6.5), xlabel="prefill workers", ylabel="decode workers")
    axes.tick_params(length=0)
    return figure
