"""The seven days of Week 1 as a stack of parts. At the bottom day 1, attention; on it day 2, positions, day 3,
grouped queries, and day 4, norm and MLP. These meet in day 5, the model, which leads to day 6, generation, and day 7,
sampling, and so to a program that chats.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.6, 4.1)
    blue, orange, green, purple, red = theme.series
    box(axes, 1.9, 0.15, 1.8, 0.62, "Day 1\nAttention", theme, blue)
    for x, text in ((0.1, "Day 2\nPositions"), (1.95, "Day 3\nGrouped queries"), (3.85, "Day 4\nNorm and MLP")):
        box(axes, x, 1.25, 1.7, 0.62, text, theme, orange)
        arrow(axes, (2.8, 0.77), (x + 0.85, 1.25), theme.muted)
        arrow(axes, (x + 0.85, 1.87), (2.8, 2.3), theme.muted)
    box(axes, 1.9, 2.3, 1.8, 0.62, "Day 5\nThe model", theme, green)
    arrow(axes, (2.8, 2.92), (2.8, 3.3), theme.muted)
    for x, text, color in ((0.1, "Day 7\nSampling", red), (1.95, "Day 6\nGeneration", purple)):
        box(axes, x, 3.3, 1.7, 0.62, text, theme, color)
    arrow(axes, (1.95, 3.61), (1.8, 3.61), theme.muted, arrowstyle="<|-|>", mutation_scale=9)
    arrow(axes, (3.65, 3.61), (3.85, 3.61), theme.muted)
    box(axes, 3.85, 3.3, 1.7, 0.62, "a chat", theme, theme.muted)
    return figure
