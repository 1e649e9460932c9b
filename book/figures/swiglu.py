"""Left: SiLU beside ReLU; SiLU is smooth, dips to -0.28 near x = -1.28, and approaches x for large x. Right: the
SwiGLU MLP. The input x of size E goes through w_gate and SiLU on one side and through w_up on the other, both of the
intermediate size; their product goes through w_down back to size E.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(5.6, 3.2))
    blue, orange, green, purple, _ = theme.series
    plot = figure.add_axes((0.08, 0.15, 0.38, 0.75))
    x = np.linspace(-6, 4, 201)
    plot.plot(x, np.maximum(x, 0), color=theme.muted, linestyle="--", linewidth=1.4, label="ReLU")
    plot.plot(x, x / (1 + np.exp(-x)), color=blue, label="SiLU")
    plot.set(xlabel="x", ylim=(-0.8, 4))
    plot.legend(loc="upper left", fontsize=10)
    flow = figure.add_axes((0.5, 0, 0.5, 1))
    flow.set(xlim=(0, 2.8), ylim=(0, 3.2))
    flow.axis("off")
    box(flow, 1.15, 0.12, 0.5, 0.36, "x", theme, theme.muted)
    box(flow, 0.3, 0.85, 0.9, 0.36, "w_gate", theme, blue)
    box(flow, 1.6, 0.85, 0.9, 0.36, "w_up", theme, orange)
    box(flow, 0.3, 1.5, 0.9, 0.36, "SiLU", theme, blue)
    box(flow, 1.18, 2.05, 0.44, 0.36, "\N{MULTIPLICATION SIGN}", theme, purple)
    box(flow, 0.95, 2.7, 0.9, 0.36, "w_down", theme, green)
    arrow(flow, (1.25, 0.48), (0.78, 0.85), theme.muted)
    arrow(flow, (1.55, 0.48), (2.02, 0.85), theme.muted)
    arrow(flow, (0.75, 1.21), (0.75, 1.5), theme.muted)
    arrow(flow, (0.8, 1.86), (1.2, 2.16), theme.muted)
    arrow(flow, (2.05, 1.21), (1.6, 2.16), theme.muted)
    arrow(flow, (1.4, 2.41), (1.4, 2.7), theme.muted)
    return figure
