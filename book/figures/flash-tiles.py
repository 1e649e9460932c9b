"""Scores of 128 queries against 192 keys, cut into tiles of 32 by 32: four rows of six tiles. The queries are the last
128 of 192 positions, so each row of tiles sees one tile more than the row above. Fourteen tiles are seen as a whole,
four lie on the diagonal and are masked in part, and six, above it, are neither read nor computed.
"""

from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from course.book.style import Theme, canvas

CELL = 0.52
ROWS, COLUMNS = 4, 6


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.2, 2.9)
    left, top = 0.75, 2.5
    for row in range(ROWS):
        for column in range(COLUMNS):
            x, y = left + column * CELL, top - (row + 1) * CELL
            diagonal = COLUMNS - ROWS + row
            color = theme.series[0] if column < diagonal else theme.soft
            axes.add_patch(Rectangle((x, y), CELL, CELL, facecolor=color, edgecolor=theme.paper, linewidth=1.5))
            if column == diagonal:
                corners = [(x, y), (x, y + CELL), (x + CELL, y)]
                axes.add_patch(Polygon(corners, facecolor=theme.series[1], edgecolor="none"))
        axes.text(
            left - 0.08,
            top - (row + 0.5) * CELL,
            f"{32 * row}",
            ha="right",
            va="center",
            fontsize=8.5,
            color=theme.muted,
        )
    for column in range(COLUMNS):
        at = left + (column + 0.5) * CELL
        axes.text(at, top + 0.05, f"{32 * column}", ha="center", va="bottom", fontsize=8.5, color=theme.muted)
    axes.text(
        left + COLUMNS * CELL / 2, top + 0.25, "first key of the tile", ha="center", color=theme.muted, fontsize=9.5
    )
    axes.text(
        0.2,
        top - ROWS * CELL / 2,
        "first query",
        rotation=90,
        ha="center",
        va="center",
        color=theme.muted,
        fontsize=9.5,
    )
    notes = (
        (theme.series[0], "seen by all 32 queries"),
        (theme.series[1], "masked in part"),
        (theme.soft, "seen by none: skipped"),
    )
    for i, (color, text) in enumerate(notes):
        y = 1.95 - 0.4 * i
        axes.add_patch(Rectangle((4.1, y), 0.22, 0.22, facecolor=color, edgecolor=theme.muted, linewidth=0.8))
        axes.text(4.4, y + 0.11, text, va="center", fontsize=8.5)
    axes.text(left, 0.18, "L = 128 queries, the last of S = 192 positions", fontsize=9.5, va="center")
    return figure
