"""Two grids of queries (rows) and keys (columns), filled where a query may attend. Left, L = S = 5: a lower triangle.
Right, L = 2 and S = 5: the two queries are the last two positions, so they see four and five keys.
"""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas

CELL = 0.38


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.6, 3.0)
    for x, queries, keys in ((0.55, 5, 5), (3.35, 2, 5)):
        top = 2.35
        for row in range(queries):
            position = keys - queries + row
            y = top - (row + 1) * CELL
            axes.text(x - 0.08, y + CELL / 2, str(position), ha="right", va="center", fontsize=9, color=theme.muted)
            for column in range(keys):
                seen = column <= position
                cell = Rectangle((x + column * CELL, y), CELL, CELL, edgecolor=theme.paper, linewidth=1.5)
                cell.set_facecolor(theme.series[0] if seen else theme.soft)
                axes.add_patch(cell)
                middle = (x + (column + 0.5) * CELL, y + CELL / 2)
                color = theme.paper if seen else theme.muted
                axes.text(*middle, "0" if seen else "-inf", ha="center", va="center", fontsize=9, color=color)
        for column in range(keys):
            at = x + (column + 0.5) * CELL
            axes.text(at, top + 0.06, str(column), ha="center", va="bottom", fontsize=9, color=theme.muted)
        axes.text(x + keys * CELL / 2, top + 0.32, "key position", ha="center", va="bottom", color=theme.muted)
        axes.text(x + keys * CELL / 2, top - queries * CELL - 0.1, f"L = {queries}, S = {keys}", ha="center", va="top")
    axes.text(0.18, 1.4, "query position", rotation=90, ha="center", va="center", color=theme.muted)
    return figure
