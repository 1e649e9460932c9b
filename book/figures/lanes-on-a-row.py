"""Which words of a packed row eight lanes read, in two ways. Above, lane i reads word i and then word i + 8: each read
of all lanes touches neighbours, one line of memory. Below, each lane reads a stretch of its own: the first read touches
the words 0, 2, 4 and so on, spread over two lines, and so does the second.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas

CELL, LEFT, LANES = 0.34, 0.2, 8


def words(axes: Axes, y: float, stretch: bool, theme: Theme) -> None:
    """Sixteen words of a row, each with the lane that reads it; a colour for each of the two reads."""
    for word in range(2 * LANES):
        lane, read = divmod(word, 2) if stretch else (word % LANES, word // LANES)
        x, color = LEFT + word * CELL + 0.1 * (word // LANES), theme.series[read]
        axes.add_patch(Rectangle((x, y), CELL - 0.04, 0.38, facecolor=theme.soft, edgecolor=color, linewidth=1.6))
        axes.text(x + CELL / 2 - 0.02, y + 0.19, str(lane), ha="center", va="center", fontsize=9)


def lines(axes: Axes, y: float, theme: Theme) -> None:
    """Brackets under the two lines of memory."""
    for line in range(2):
        x = LEFT + line * (LANES * CELL + 0.1)
        axes.plot([x, x + LANES * CELL - 0.04], [y, y], color=theme.muted, linewidth=1.2)
        axes.text(x + LANES * CELL / 2, y - 0.06, f"line {line}", ha="center", va="top", fontsize=8, color=theme.muted)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.0, 3.1)
    for y, stretch, title in ((2.15, False, "lane i reads word i, then word i + 8"), (0.75, True, "a stretch each")):
        axes.text(LEFT, y + 0.62, title, ha="left", va="center")
        words(axes, y, stretch, theme)
        lines(axes, y - 0.1, theme)
    axes.text(LEFT, 0.12, "first read", fontsize=9, va="center", color=theme.series[0])
    axes.text(LEFT + 0.95, 0.12, "second read", fontsize=9, va="center", color=theme.series[1])
    axes.text(LEFT + 2.1, 0.12, "in each word: the lane that reads it", fontsize=9, va="center", color=theme.muted)
    return figure
