"""How MLX packs a row. Above, one 32-bit word as eight boxes of four bits: level 0 stands in the lowest bits, at the
right end, and level 7 in the highest. Below, what a group of 64 weights takes: eight such words, 256 bits, and a scale
and a bias of 16 bits each.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, box, canvas

CELL = 0.62


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.9, 2.9)
    left = 0.5
    axes.text(left, 2.62, "one word: eight neighbours of a row", ha="left", va="center")
    for place in range(8):
        level = 7 - place
        x = left + place * CELL
        box(axes, x, 1.75, CELL - 0.04, 0.45, f"level {level}", theme, theme.series[0], fontsize=8.5)
        axes.text(x, 2.28, f"{4 * level + 3}", ha="left", va="bottom", fontsize=8, color=theme.muted)
        axes.text(x + CELL - 0.06, 2.28, f"{4 * level}", ha="right", va="bottom", fontsize=8, color=theme.muted)
    axes.text(left + 8 * CELL + 0.05, 2.28, "bit", ha="left", va="bottom", fontsize=8, color=theme.muted)
    axes.text(left, 1.2, "one group of 64: 288 bits, 4.5 for each weight", ha="left", va="center")
    inch = 8 * CELL / 288
    for word in range(8):
        color = theme.series[0]
        box(axes, left + word * 32 * inch, 0.42, 32 * inch - 0.04, 0.45, "word", theme, color, fontsize=8)
    for index, name in enumerate(("scale", "bias")):
        x = left + (256 + 16 * index) * inch
        box(axes, x, 0.42, 16 * inch - 0.04, 0.45, "", theme, theme.series[1 + index])
        side = ("right", "left")[index]
        at = x + (14, 2)[index] * inch
        axes.text(at, 0.36, name, ha=side, va="top", fontsize=8, color=theme.series[1 + index])
    axes.text(left + 128 * inch, 0.36, "8 words of 32 bits", ha="center", va="top", fontsize=8, color=theme.muted)
    return figure
