"""The seven days of Week 2 as a stack of parts, each with the option of the program that it unlocks. At the bottom day
1, the KV cache; on it day 2, measuring, then day 3, quantising. From there two paths lead up side by side: day 4,
kernels in C++, on the left; days 5 and 6, kernels in Metal, on the right. They meet in day 7, flash attention.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas

WIDTH, HEIGHT = 2.35, 0.62
LEFT, MIDDLE, RIGHT = 0.1, 1.65, 3.2


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.65, 6.0)
    blue, orange, green, purple, red = theme.series
    days = {
        1: (MIDDLE, 0.1, "The KV cache", "--cache dense", blue),
        2: (MIDDLE, 1.1, "Measure first", "what is the limit?", theme.muted),
        3: (MIDDLE, 2.1, "Quantise", "--ops packed", orange),
        4: (LEFT, 3.7, "CPU kernels", "--ops cpu, --ops fused", green),
        5: (RIGHT, 3.2, "First Metal kernels", "one GPU, or none", purple),
        6: (RIGHT, 4.2, "Metal matrix kernels", "--ops metal", purple),
        7: (MIDDLE, 5.3, "Flash attention", "--ops flash, --ops metal-flash", red),
    }
    for below, above in ((1, 2), (2, 3), (3, 4), (3, 5), (5, 6), (4, 7), (6, 7)):
        start, end = ((days[day][0] + WIDTH / 2, days[day][1]) for day in (below, above))
        arrow(axes, (start[0], start[1] + HEIGHT), end, theme.muted)
    for day, (x, y, title, option, color) in days.items():
        box(axes, x, y, WIDTH, HEIGHT, "", theme, color)
        axes.text(x + WIDTH / 2, y + 0.42, f"Day {day}: {title}", ha="center", va="center")
        axes.text(x + WIDTH / 2, y + 0.17, option, ha="center", va="center", color=theme.muted, fontsize=9)
    return figure
