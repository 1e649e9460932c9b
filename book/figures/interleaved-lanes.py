"""One vector of four words, and one of the eight steps that use it up. In step j every lane takes nibble j of its own
word, and needs the activation of the same place: lane 0 number j, lane 1 number 8 + j, lane 2 number 16 + j, lane 3
number 24 + j. So the activations are put into that order once: x[0], x[8], x[16], x[24], then x[1], x[9], x[17], x[25],
and so on.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas

LANES = 4


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.9, 3.0)
    axes.text(0.1, 2.86, "a vector of 4 words: 32 neighbours of a row", ha="left", va="center", fontsize=9)
    for lane in range(LANES):
        left = 0.1 + lane * 1.72
        axes.text(left + 0.8, 2.62, f"lane {lane}", ha="center", va="center", fontsize=8, color=theme.muted)
        for place in range(8):
            nibble = 7 - place
            color = theme.series[1] if nibble == 1 else theme.series[0]
            box(axes, left + place * 0.2, 2.15, 0.18, 0.32, f"{8 * lane + nibble}", theme, color, fontsize=6.5)
    axes.text(0.1, 1.74, "step 1: nibble 1 of each word", ha="left", va="center", fontsize=9)
    for lane in range(LANES):
        x = 2.9 + lane * 0.62
        box(axes, x, 1.55, 0.56, 0.36, f"q[{8 * lane + 1}]", theme, theme.series[1], fontsize=8)
        arrow(
            axes, (0.1 + lane * 1.72 + 1.29, 2.14), (x + 0.28, 1.93), theme.series[1], linewidth=0.9, mutation_scale=8
        )
        axes.text(x + 0.28, 1.42, "\N{MULTIPLICATION SIGN}", ha="center", va="center", fontsize=9)
        box(axes, x, 0.95, 0.56, 0.36, f"x[{8 * lane + 1}]", theme, theme.series[2], fontsize=8)
    axes.text(0.1, 1.13, "the same four places of x", ha="left", va="center", fontsize=9)
    axes.text(0.1, 0.6, "x, put in that order once:", ha="left", va="center", fontsize=9)
    for step in range(3):
        for lane in range(LANES):
            x = 0.1 + (step * LANES + lane) * 0.52
            color = theme.series[2] if step == 1 else theme.muted
            box(axes, x, 0.1, 0.48, 0.32, f"x[{8 * lane + step}]", theme, color, fontsize=7)
    axes.text(0.1 + 12 * 0.52 + 0.05, 0.26, "...", ha="left", va="center", fontsize=9)
    return figure
