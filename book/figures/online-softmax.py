"""A query walks over twelve keys in blocks of three. Above, the scores, and the running maximum, which rises at the
first, second and fourth block. Below, the running sum of weights: two blocks shrink it, to 0.17 and 0.37 of what it
was, before their own weights are added; after the last block it equals the sum of an ordinary softmax.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme

SCORES = np.array([0.2, 1.0, -0.5, 0.6, 2.8, 1.9, 1.2, 2.5, 0.3, 3.8, 2.2, 1.4])
BLOCK = 3


def steps() -> list[tuple[float, float, float, float]]:
    """After each block: the maximum, the factor for what came before, the sum before and behind its own weights."""
    found, maximum, total = [], -np.inf, 0.0
    for scores in SCORES.reshape(-1, BLOCK):
        larger = max(maximum, scores.max())
        keep = float(np.exp(maximum - larger))
        kept = total * keep
        total = kept + float(np.exp(scores - larger).sum())
        maximum = larger
        found.append((float(maximum), keep, kept, total))
    return found


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(np.arange(SCORES.size), SCORES, "o", color=theme.series[0], label="score")
    before = 0.0
    for i, (maximum, keep, kept, total) in enumerate(steps()):
        first, last = i * BLOCK - 0.5, (i + 1) * BLOCK - 0.5
        label = "running maximum" if i == 0 else None
        above.plot([first, last], [maximum, maximum], color=theme.series[1], label=label)
        middle = (first + last) / 2
        below.bar(middle, kept, 1.6, color=theme.series[3], label="what is left of earlier weights" if i == 0 else None)
        below.bar(middle, total - kept, 1.6, bottom=kept, color=theme.series[2], label="own weights" if not i else None)
        below.text(middle, total + 0.12, f"{total:.2f}", ha="center", fontsize=9)
        if i:
            patch = {"facecolor": theme.paper, "edgecolor": "none", "pad": 1.5}
            below.text(first, 0.2, f"x {keep:.2f}", ha="center", fontsize=9, color=theme.ink, bbox=patch)
        before = total
        for axes in (above, below):
            axes.axvline(last, color=theme.muted, linewidth=0.8, linestyle=":")
    exact = np.exp(SCORES - SCORES.max()).sum()
    assert abs(before - exact) < 1e-9
    above.set(ylabel="score", ylim=(-1, 4.6))
    above.legend(loc="upper left", fontsize=9, ncols=2)
    below.set(ylabel="running sum", xlabel="key", xticks=range(SCORES.size), ylim=(0, 5.2))
    below.legend(loc="upper left", fontsize=9, ncols=2)
    return figure
