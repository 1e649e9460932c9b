"""Pictures of one run, drawn with Matplotlib: equal runs give equal files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.book.style import LIGHT, settings
from course.sim.intervals import within
from course.sim.report import last_moment

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.goodput import Objective
    from tiny_llm_ref.cluster.run import Run, WorkerRun

BINS = 200


@contextmanager
def picture(
    path: Path, *, rows: int = 1, columns: int = 1, size: tuple[float, float] = (7, 3.4)
) -> Iterator[list[Axes]]:
    """Panels to draw in; written as SVG at the end, without a date."""
    with settings(LIGHT):
        figure = Figure(figsize=size, layout="constrained", facecolor=LIGHT.paper)
        yield list(figure.subplots(rows, columns, squeeze=False).flat)
        figure.savefig(path, metadata={"Date": None})


def draw_run(folder: Path, run: "Run", objective: "Objective") -> None:
    """`latency.svg` and `workers.svg`. Raises OSError."""
    records = [record for record in run.records.values() if record.complete]
    ttft = [record.ttft for record in records if record.ttft is not None]
    tpot = [record.tpot for record in records if record.tpot is not None]
    with picture(folder / "latency.svg", columns=2) as panels:
        _cdf(panels[0], "TTFT", ttft, objective.ttft, LIGHT.series[0])
        _cdf(panels[1], "TPOT", tpot, objective.tpot, LIGHT.series[1])
        panels[0].set_ylabel("share of requests")
    end = last_moment(run)
    pools = list(dict.fromkeys(worker.pool for worker in run.workers.values()))
    with picture(folder / "workers.svg", rows=len(pools), size=(7, 1 + 2 * len(pools))) as panels:
        for axes, pool, color in zip(panels, pools, LIGHT.series, strict=False):
            _busy(axes, [worker for worker in run.workers.values() if worker.pool == pool], end, color)
            axes.set(ylabel=f"{pool}: busy", ylim=(0, 1.03), xlim=(0, end / 1e9))
            for note in run.notes:
                if note.time:
                    axes.axvline(note.time / 1e9, color=LIGHT.series[-1], linewidth=0.6, alpha=0.6)
        panels[-1].set_xlabel("simulated seconds")


def _cdf(axes: Axes, name: str, values: Sequence[float], bound: int | None, color: str) -> None:
    axes.set(xlabel=f"{name}, ms", ylim=(0, 1.02))
    if not values:
        axes.text(0.5, 0.5, "no request", ha="center", transform=axes.transAxes)
        return
    axes.ecdf(np.array(values) / 1e6, color=color)
    axes.set_xlim(0, None)
    if bound is not None:
        axes.axvline(bound / 1e6, color=LIGHT.series[-1], linestyle="--")
        axes.text(bound / 1e6, 0.02, " SLO", color=LIGHT.series[-1])


def _busy(axes: Axes, workers: "Sequence[WorkerRun]", end: int, color: str) -> None:
    """The share of the pool's workers that ran a step, over time."""
    edges = np.linspace(0, end, BINS + 1)
    busy, there = np.zeros(BINS), np.zeros(BINS)
    for worker in workers:
        busy += within(worker.busy.starts, worker.busy.ends, edges)
        stopped = end if worker.stopped is None else worker.stopped
        there += within([worker.started], [stopped], edges)
    share = np.divide(busy, there, out=np.zeros(BINS), where=there > 0)
    axes.stairs(share, edges / 1e9, color=color, fill=True, alpha=0.5)
