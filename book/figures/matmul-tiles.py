"""A product in tiles. The result, M rows of tokens by N columns, is divided into tiles of 32 by 32; one threadgroup
makes one tile. For it, the threadgroup walks along K: a tile of x to the left of the result and a tile of w above it
come into threadgroup memory, are multiplied, and make way for the next pair. The tile of the result is shown again,
divided into four quarters, one for each SIMD group, and each quarter into two by two fragments of 8 by 8.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, arrow, canvas

CELL = 0.42


def grid(axes: Axes, x: float, y: float, columns: int, rows: int, theme: Theme) -> None:
    """A matrix of tiles; (x, y) is its lower left corner."""
    for row in range(rows):
        for column in range(columns):
            at = (x + column * CELL, y + row * CELL)
            axes.add_patch(Rectangle(at, CELL, CELL, facecolor="none", edgecolor=theme.muted, linewidth=0.8))


def tile(axes: Axes, x: float, y: float, color: str, theme: Theme, filled: bool = True) -> None:
    """One tile that takes part."""
    face = color if filled else theme.soft
    shape = Rectangle((x, y), CELL, CELL, facecolor=face, edgecolor=color, linewidth=2, alpha=0.85 if filled else 1.0)
    axes.add_patch(shape)


def walk(axes: Axes, theme: Theme) -> None:
    """x, w and the result, with the tiles of one threadgroup."""
    x_color, w_color, out_color = theme.series[:3]
    grid(axes, 0.3, 0.45, 4, 3, theme)
    grid(axes, 2.25, 1.95, 4, 4, theme)
    grid(axes, 2.25, 0.45, 4, 3, theme)
    for step in range(4):
        tile(axes, 0.3 + step * CELL, 0.45 + CELL, x_color, theme, step == 1)
        tile(axes, 2.25 + 2 * CELL, 1.95 + (3 - step) * CELL, w_color, theme, step == 1)
    tile(axes, 2.25 + 2 * CELL, 0.45 + CELL, out_color, theme)
    arrow(axes, (0.35, 0.3), (1.9, 0.3), theme.muted)
    axes.text(1.1, 0.22, "K", ha="center", va="top", fontsize=9, color=theme.muted)
    arrow(axes, (4.1, 3.6), (4.1, 2.0), theme.muted)
    axes.text(4.2, 2.8, "K", ha="left", va="center", fontsize=9, color=theme.muted)
    axes.text(1.14, 1.8, "x: tokens, K", ha="center", va="bottom", fontsize=9, color=x_color)
    axes.text(2.15, 2.8, "w,\ntransposed:\nK, rows", ha="right", va="center", fontsize=9, color=w_color)
    axes.text(3.09, 0.37, "the result: tokens, rows", ha="center", va="top", fontsize=9, color=out_color)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.9, 3.75)
    walk(axes, theme)
    left, bottom, part = 4.9, 0.75, 0.42
    axes.text(left + 2 * part, 2.98, "one tile: 32 by 32", ha="center", va="bottom", fontsize=9.5)
    axes.text(
        left + 2 * part, 2.72, "a colour per SIMD group,\n8 by 8 fragments", ha="center", va="center", fontsize=8.5
    )
    for row in range(4):
        for column in range(4):
            group = 2 * (row // 2) + column // 2
            at = (left + column * part, bottom + (3 - row) * part)
            shape = Rectangle(at, part - 0.03, part - 0.03, facecolor=theme.soft, linewidth=1.6)
            shape.set_edgecolor(theme.series[group])
            axes.add_patch(shape)
            axes.text(at[0] + part / 2 - 0.015, at[1] + part / 2, str(group), ha="center", va="center", fontsize=9)
    return figure
