"""Attention as rectangles for L = 3, S = 5 and D = 4. First row: q of shape (L, D) times k transposed of shape (D, S)
gives scores of shape (L, S). Second row: the softmax of each row of the scores, shape (L, S), times v of shape (S, D)
gives the output of shape (L, D). Darker cells hold larger numbers.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas

L, S, D = 3, 5, 4
CELL = 0.26


def matrix(
    axes: Axes, x: float, y: float, values: np.ndarray, label: str, shape: str, theme: Theme, color: str
) -> None:
    """A grid of cells shaded by value, centred on height y, with a name above and a shape below."""
    rows, columns = values.shape
    low, high = values.min(), values.max()
    top = y + rows * CELL / 2
    for (row, column), value in np.ndenumerate(values):
        share = 0.12 + 0.8 * (value - low) / (high - low)
        face = np.array(to_rgb(color)) * share + np.array(to_rgb(theme.paper)) * (1 - share)
        corner = (x + column * CELL, top - (row + 1) * CELL)
        axes.add_patch(Rectangle(corner, CELL, CELL, facecolor=face, edgecolor=theme.paper, linewidth=1))
    axes.text(x + columns * CELL / 2, top + 0.1, label, ha="center", va="bottom", weight="bold")
    axes.text(x + columns * CELL / 2, top - rows * CELL - 0.1, shape, ha="center", va="top", color=theme.muted)


def draw(theme: Theme) -> Figure:
    """The figure."""
    random = np.random.default_rng(3)
    q, k, v = (random.normal(size=shape) for shape in ((L, D), (S, D), (S, D)))
    scores = q @ k.T / np.sqrt(D)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    blue, orange, green, purple, _ = theme.series
    figure, axes = canvas(5.6, 4.4)
    matrix(axes, 0.3, 3.3, q, "q", "(L, D)", theme, blue)
    matrix(axes, 1.9, 3.3, k.T, "k transposed", "(D, S)", theme, orange)
    matrix(axes, 3.8, 3.3, scores, "scores", "(L, S)", theme, purple)
    matrix(axes, 0.3, 1.1, weights, "softmax(scores)", "(L, S), rows sum to 1", theme, purple)
    matrix(axes, 2.35, 1.1, v, "v", "(S, D)", theme, green)
    matrix(axes, 4.1, 1.1, weights @ v, "output", "(L, D)", theme, blue)
    for y, times, equals in ((3.3, 1.62, 3.5), (1.1, 1.98, 3.75)):
        axes.text(times, y, "\N{MULTIPLICATION SIGN}", ha="center", va="center", fontsize=16)
        axes.text(equals, y, "=", ha="center", va="center", fontsize=16)
    return figure
