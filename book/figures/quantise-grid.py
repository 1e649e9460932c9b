"""A group of weights between -1 and 0.57 on a number line, twice, with its sixteen levels below. Above, the levels of
plain min-max: they reach from end to end, and zero lies between two of them. Below, MLX's: -1 is exact, zero is a
level, and the last level, 0.5, stops short of 0.57.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.book.style import Theme, canvas

WEIGHTS = np.array([-1.0, -0.83, -0.56, -0.42, -0.27, -0.18, -0.09, 0.0, 0.04, 0.13, 0.22, 0.34, 0.57])
LEFT, WIDTH = 0.35, 5.2


def place(value: float) -> float:
    """The number line, -1 .. 0.6, in inches."""
    return LEFT + (value + 1.0) / 1.6 * WIDTH


def line(axes: Axes, y: float, title: str, levels: np.ndarray, theme: Theme) -> None:
    """One number line: weights above, levels below, and a stroke from each weight to its level."""
    axes.text(LEFT - 0.2, y + 0.62, title, ha="left", va="bottom", fontsize=10.5)
    axes.plot([place(-1.0) - 0.15, place(0.6) + 0.1], [y, y], color=theme.muted, linewidth=1)
    axes.plot([place(0.0)] * 2, [y, y + 0.52], color=theme.muted, linewidth=1, linestyle=":")
    for index, level in enumerate(levels):
        zero = abs(level) < 1e-9
        color = theme.series[2] if zero else theme.series[0]
        axes.plot([place(level)] * 2, [y - 0.3, y], color=color, linewidth=3 if zero else 1.6)
        axes.text(place(level), y - 0.35, str(index), ha="center", va="top", fontsize=8, color=color)
    for weight in WEIGHTS:
        level = levels[np.abs(levels - weight).argmin()]
        far = abs(level - weight) > 0.51 * (levels[1] - levels[0])
        color = theme.series[4] if far else theme.series[1]
        axes.plot([place(weight), place(level)], [y + 0.3, y], color=color, linewidth=1.2)
        axes.plot([place(weight)], [y + 0.3], "o", markersize=4.5, color=color)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.9, 3.5)
    line(axes, 2.45, "plain min-max: step 1.57 / 15, zero is no level", -1 + np.arange(16) * 1.57 / 15, theme)
    line(axes, 0.85, "MLX: step 0.1, zero is level 10, 0.57 is out of reach", -1 + np.arange(16) * 0.1, theme)
    for value in (-1.0, -0.5, 0.0, 0.5):
        axes.text(place(value), 0.12, f"{value:g}", ha="center", va="center", fontsize=9, color=theme.muted)
    return figure
