"""Three rows of marks over ten seconds, each mark an arrival, each row about eight per second. With burstiness 0.25
they come in clumps with gaps of seconds between them. With 1, a Poisson process, some are close together and some
far apart. With 4 they are nearly even. To the right of each row, how long a server with 80 % load lets them wait on
average: most at 0.25, least at 4.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.cluster.queueing import lindley
from tiny_llm_ref.cluster.workload import SECOND, arrival_times

RATE, SERVICE, KINDS = 8.0, SECOND // 10, {0.25: "bursty", 1.0: "Poisson", 4.0: "nearly even"}


def wait(times: np.ndarray) -> float:
    """Mean wait in ms at a server that takes SERVICE for each."""
    ends = np.array(lindley(times.tolist(), [SERVICE] * len(times)))
    return float((ends - SERVICE - times).mean() / 1e6)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(7.2, 2.6), layout="constrained")
    axes = figure.subplots()
    for row, (burstiness, name) in enumerate(KINDS.items()):
        times = arrival_times(np.random.default_rng(5), RATE, 20_000, burstiness)
        seen = times[times < 10 * SECOND] / SECOND
        axes.vlines(seen, -row - 0.3, -row + 0.3, color=theme.series[row], linewidth=1.2)
        axes.text(10.15, -row, f"mean wait {wait(times):.0f} ms", va="center", fontsize=9)
        axes.text(-0.15, -row, f"{burstiness:g}\n{name}", va="center", ha="right", fontsize=9)
    axes.set(xlim=(-0.05, 12.4), ylim=(-2.6, 0.6), xlabel="seconds")
    axes.set_yticks([])
    axes.set_xticks(range(0, 11, 2))
    axes.spines["left"].set_visible(False)
    return figure
