"""Queries against keys for a batch of three requests: A with three rows of a prompt whose first five positions are
cached, B and C with one row each and nine and six keys. Each request has a rectangle of its own: its queries against
its own keys, with a staircase where the mask begins. The rectangles are the pieces of work; B's keys are cut in two, as
for more threads than pieces.
"""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas

REQUESTS = (("A", 3, 8), ("B", 1, 9), ("C", 1, 6))
"""Name, rows in the batch, keys."""
CELL = 0.3


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.6, 2.8)
    axes.text(1.75, 2.62, "keys of its own request, position 0 first", va="center", color=theme.muted, fontsize=9)
    y = 2.4
    query = 0
    for index, (name, rows, keys) in enumerate(REQUESTS):
        color = theme.series[index]
        for row in range(rows):
            top = y - (row + 1) * CELL
            position = keys - rows + row
            axes.text(
                1.62, top + CELL / 2, f"q{query}: {name}, position {position}", ha="right", va="center", fontsize=9
            )
            for key in range(keys):
                seen = key <= position
                cell = Rectangle((1.75 + key * CELL, top), CELL * 0.92, CELL * 0.92)
                cell.set(facecolor=color if seen else "none", edgecolor=color if seen else theme.muted, alpha=0.85)
                axes.add_patch(cell)
            query += 1
        text = {"A": "one piece: keys 0 .. 7", "B": "two: keys 0 .. 4, 5 .. 8", "C": "one piece"}
        axes.text(4.62, y - rows * CELL / 2, text[name], va="center", fontsize=9)
        if name == "B":
            x = 1.75 + 5 * CELL - CELL * 0.04
            axes.plot([x, x], [y - CELL - 0.07, y + 0.07], color=theme.ink, linewidth=2)
        y -= rows * CELL + 0.28
    return figure
