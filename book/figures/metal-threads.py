"""How a launch is divided. A grid of 14 by 2 threads is cut into threadgroups of 8 by 1: two in each row, of which the
second has only 6 threads. Below, one threadgroup of 96 threads is three SIMD groups of 32 lanes that share one box of
threadgroup memory; the device memory with the buffers belongs to all.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, box, canvas

CELL = 0.3


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.4, 3.9)
    axes.text(0.2, 3.68, "grid: (14, 2, 1) threads, threadgroups of (8, 1, 1)", ha="left", va="center")
    for row in range(2):
        for column in range(14):
            group = column // 8
            x, y = 0.2 + column * CELL + 0.25 * group, 3.08 - row * 0.48
            box(axes, x, y, CELL - 0.04, 0.36, str(column), theme, theme.series[group], fontsize=7.5)
    axes.text(0.2, 2.36, "the last threadgroup of a row is smaller: 6 threads", fontsize=9, color=theme.muted)
    axes.text(0.2, 1.98, "one threadgroup of 96 threads", ha="left", va="center")
    for group in range(3):
        x = 0.2 + group * 1.45
        box(axes, x, 1.25, 1.35, 0.45, f"SIMD group {group}", theme, theme.series[0], fontsize=9)
        axes.text(x + 0.67, 1.17, "lanes 0 .. 31", ha="center", va="top", fontsize=8, color=theme.muted)
    box(axes, 0.2, 0.58, 4.25, 0.36, "threadgroup memory, at most 32 KiB", theme, theme.series[1], fontsize=9)
    box(axes, 4.7, 0.58, 1.5, 1.12, "registers:\none set\nper thread", theme, theme.series[2], fontsize=8.5)
    box(
        axes,
        0.2,
        0.08,
        6.0,
        0.36,
        "device memory: the arrays, shared by all threadgroups",
        theme,
        theme.series[3],
        fontsize=9,
    )
    return figure
