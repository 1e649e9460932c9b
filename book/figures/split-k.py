"""Split-K. Above, a matrix with two blocks of rows keeps two threadgroups busy. Below, each row is cut into four parts
along K: eight threadgroups work at once, each writes a partial sum, and a second kernel adds the four partial sums of
each row from the first to the last.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.4, 3.7)
    axes.text(0.2, 3.5, "one pass: two threadgroups", ha="left", va="center")
    for block in range(2):
        y = 2.9 - block * 0.42
        box(axes, 0.2, y, 4.0, 0.36, f"rows of threadgroup {block}, all of K", theme, theme.series[0], fontsize=8.5)
        arrow(axes, (4.25, y + 0.18), (4.75, y + 0.18), theme.muted)
        box(axes, 4.8, y, 0.75, 0.36, "out", theme, theme.series[2], fontsize=8.5)
    axes.text(0.2, 2.05, "split-K: eight threadgroups, then a sum", ha="left", va="center")
    for part in range(4):
        for block in range(2):
            name = f"rows {block}\npart {part}"
            box(axes, 0.2 + part * 1.01, 1.4 - block * 0.48, 0.97, 0.42, name, theme, theme.series[0], fontsize=7.5)
        x = 0.2 + part * 1.01 + 0.485
        arrow(axes, (x, 0.88), (x, 0.62), theme.muted)
        box(axes, 0.2 + part * 1.01, 0.2, 0.97, 0.4, f"partial[{part}]", theme, theme.series[1], fontsize=8)
    arrow(axes, (4.25, 0.4), (4.75, 0.4), theme.muted)
    box(axes, 4.8, 0.2, 0.75, 0.4, "out", theme, theme.series[2], fontsize=8.5)
    axes.text(4.5, 0.75, "added in order\n0, 1, 2, 3", ha="left", va="bottom", fontsize=8.5, color=theme.muted)
    return figure
