"""Three calls of a cached model as rows of tokens. The first runs all six tokens of a prompt. The second repeats them
and adds one: six are kept, one runs. The third differs from its fourth token on: three are kept, and the three behind
them run, although the last of them was there before.
"""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas

CELL = 0.62
CALLS = [("call 1", "The cat sat on the mat", 0), ("call 2", "The cat sat on the mat .", 6),
         ("call 3", "The cat sat by the mat", 3)]  # fmt: skip


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.8, 2.9)
    for row, (name, text, kept) in enumerate(CALLS):
        y = 2.1 - 0.85 * row
        axes.text(0.1, y + 0.25, name, va="center", fontsize=10)
        for i, word in enumerate(text.split()):
            ran = i >= kept
            color = theme.series[1] if ran else theme.series[0]
            x = 0.85 + (CELL + 0.08) * i
            shape = Rectangle((x, y), CELL, 0.5, edgecolor=color, linewidth=1.6, facecolor=theme.soft)
            shape.set_linestyle("-" if ran else ":")
            axes.add_patch(shape)
            axes.text(x + CELL / 2, y + 0.25, word, ha="center", va="center", color=theme.ink if ran else theme.muted)
    axes.text(0.85, 0.1, "dotted: kept", color=theme.series[0], fontsize=9, va="center")
    axes.text(2.25, 0.1, "solid: runs now", color=theme.series[1], fontsize=9, va="center")
    return figure
