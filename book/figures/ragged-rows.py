"""Eight rows of one forward: four tokens of request A's prompt, one decoded token of B at position 5, and three of C at
positions 2 to 4. To the right, which keys each row sees: those of its own request from position 0 up to itself, and
none of the others. Keys that were there before are lighter.
"""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas
from tiny_llm_ref.serving.ragged import ragged
from tiny_llm_ref.serving.request import Batch, Request, Step

CELL, LEFT, TOP = 0.34, 2.55, 3.25
SPANS = [("A", 0, 4, True), ("B", 5, 6, True), ("C", 2, 5, False)]


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(8.3, 4.1)
    steps = [Step(Request(i, list(range(9)), 1), a, b, samples) for i, (_, a, b, samples) in enumerate(SPANS)]
    rows = ragged(Batch(tuple(steps)))
    for x, text in ((0.45, "row"), (1.15, "request"), (1.95, "position")):
        axes.text(x, TOP + 0.45, text, ha="center", fontsize=9, color=theme.muted)
    first = LEFT
    for i, (name, start, _, _) in enumerate(SPANS):
        color = theme.series[i]
        keys = f"keys of {name}" if rows.lengths[i] > 2 else name
        axes.text(first + rows.lengths[i] * CELL / 2, TOP + 0.45, keys, ha="center", fontsize=9, color=color)
        for row in range(rows.bounds[-1]):
            own = rows.bounds[i] <= row < rows.bounds[i + 1]
            for key in range(rows.lengths[i]):
                sees = own and key <= rows.positions[row]
                shape = Rectangle((first + key * CELL, TOP - row * CELL), CELL - 0.04, CELL - 0.04, linewidth=0.8)
                shape.set(edgecolor=color if sees else theme.soft, facecolor=color if sees else "none")
                shape.set_alpha(0.45 if sees and key < start else 1)
                axes.add_patch(shape)
        for row in range(rows.bounds[i], rows.bounds[i + 1]):
            y = TOP - row * CELL + CELL / 2 - 0.02
            for x, text in ((0.45, row), (1.15, name), (1.95, rows.positions[row])):
                axes.text(
                    x, y, str(text), ha="center", va="center", fontsize=9, color=color if text == name else theme.ink
                )
        first += rows.lengths[i] * CELL + 0.25
    text = f"bounds {rows.bounds}   lengths {rows.lengths}   rows to score {rows.last}"
    axes.text(0.25, 0.3, text, va="center", fontsize=9, color=theme.muted)
    return figure
