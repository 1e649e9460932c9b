"""One buffer of a KV cache as a row of cells, five times. Capacity 4 with three rows in use and one spare; a fourth row
fills the spare cell; a fifth does not fit, so the buffer is copied into one of capacity 8, with three spare cells; a
rewind to 2 moves the offset back and leaves the old rows behind it; the next row is written over the first of them.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, arrow, canvas

CELL, LEFT = 0.5, 1.55
# What happened, the rows in the cells ("" is spare), how many are in use, and which one is new.
STEPS = [
    ("update: 3 rows", ["a", "b", "c", ""], 3, range(3)),
    ("update: 1 row", ["a", "b", "c", "d"], 4, range(3, 4)),
    ("full: double, copy", ["a", "b", "c", "d", "e", "", "", ""], 5, range(4, 5)),
    ("rewind(2)", ["a", "b", "c", "d", "e", "", "", ""], 2, range(0)),
    ("update: 1 row", ["a", "b", "f", "d", "e", "", "", ""], 3, range(2, 3)),
]


def cell(axes: Axes, x: float, y: float, text: str, used: bool, new: bool, theme: Theme) -> None:
    """One row of the buffer: in use, dead or spare."""
    color = theme.series[1] if new else theme.series[0] if used else theme.muted
    shape = Rectangle((x, y), CELL, CELL, facecolor=theme.soft if used else "none", edgecolor=color, linewidth=1.6)
    shape.set_linestyle("-" if used else ":")
    axes.add_patch(shape)
    axes.text(x + CELL / 2, y + CELL / 2, text, ha="center", va="center", color=theme.ink if used else theme.muted)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.8, 4.7)
    for step, (text, rows, used, new) in enumerate(STEPS):
        y = 3.9 - 0.9 * step
        axes.text(LEFT - 0.1, y + CELL / 2, text, ha="right", va="center", fontsize=9)
        for i, row in enumerate(rows):
            cell(axes, LEFT + CELL * i, y, row, i < used, i in new, theme)
        x = LEFT + CELL * used
        arrow(axes, (x, y - 0.22), (x, y - 0.02), theme.muted, linewidth=1.2)
        axes.text(x + 0.08, y - 0.15, f"offset {used}", ha="left", va="center", fontsize=8, color=theme.muted)
    return figure
