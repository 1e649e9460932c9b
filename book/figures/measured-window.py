"""Ten requests as horizontal bars over time: a thin line while they wait for their first token, a bar while tokens
leave. A shaded window begins after the warm-up and ends with the last arrival. Eight requests that arrived inside
the window are coloured, also one that ends far to the right of it. The first, which arrived during the warm-up, and
the last are grey. Dots mark ends inside the window: those of the first eight.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme
from course.drills.one_replica import OneReplica
from tiny_llm_ref.cluster.window import steady_state
from tiny_llm_ref.cluster.workload import SECOND, Lengths, OpenLoop, arrival_times, generate


def draw(theme: Theme) -> Figure:
    """The figure."""
    rng = np.random.default_rng(12)
    times = arrival_times(rng, 1.0, 10)
    arrivals = generate(rng, times, Lengths(900, 0.6), Lengths(90, 0.8))
    records = OneReplica("tiny_llm_ref", rows=3).serve(OpenLoop(arrivals))
    window = steady_state(records, 2 * SECOND)
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(window.start / SECOND, window.end / SECOND, color=theme.soft, zorder=0)
    axes.text(sum(window) / 2 / SECOND, 0.9, "measured window", ha="center", fontsize=9, color=theme.muted)
    for row, record in enumerate(records):
        arrival, first, done = (time / SECOND for time in (record.arrival, record.first_token, record.done))
        color = theme.series[0] if window.start <= record.arrival < window.end else theme.muted
        axes.plot([arrival, first], [-row, -row], color=color, linewidth=1)
        axes.plot([first, done], [-row, -row], color=color, linewidth=6, solid_capstyle="butt")
        axes.plot([arrival], [-row], marker="|", color=color, markersize=9)
        if window.start <= record.done < window.end:
            axes.plot([done], [-row], marker="o", color=theme.series[1], markersize=7)
    axes.set(xlabel="seconds", ylim=(-len(records) + 0.3, 1.6))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    return figure
