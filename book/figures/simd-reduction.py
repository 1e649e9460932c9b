"""A sum over a row by one threadgroup of 128 threads, in three steps. First each thread adds up its own numbers, every
128th of the row. Then simd_sum turns the 32 sums of each of the four SIMD groups into one, and one lane of each writes
it to threadgroup memory. After a barrier every thread reads the four partial sums and adds them.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.4, 3.3)
    for group in range(4):
        x = 0.2 + group * 1.25
        box(axes, x, 2.55, 1.15, 0.5, "32 threads\n32 sums", theme, theme.series[0], fontsize=8.5)
        arrow(axes, (x + 0.57, 2.5), (x + 0.57, 2.02), theme.muted)
        box(axes, x + 0.22, 1.62, 0.7, 0.36, f"partial[{group}]", theme, theme.series[1], fontsize=8)
        arrow(axes, (x + 0.57, 1.1), (x + 0.57, 0.78), theme.muted)
        box(axes, x, 0.28, 1.15, 0.46, "the total", theme, theme.series[2], fontsize=8.5)
    axes.plot([0.2, 5.1], [1.34, 1.34], linewidth=3, color=theme.series[4])
    axes.text(5.25, 1.34, "barrier", va="center", fontsize=9, color=theme.series[4])
    axes.text(5.25, 2.8, "registers", va="center", fontsize=9, color=theme.muted)
    axes.text(5.25, 2.26, "simd_sum,\none lane writes", va="center", fontsize=8.5, color=theme.muted)
    axes.text(5.25, 1.8, "threadgroup\nmemory", va="center", fontsize=8.5, color=theme.muted)
    axes.text(5.25, 0.51, "each reads\nall four", va="center", fontsize=8.5, color=theme.muted)
    return figure
