"""The parts of a serving engine as a stack. At the top the server of day 7, where a request enters; below it the loop
of days 1 and 6. The loop asks the scheduler, days 1 and 2, on the left, which asks the memory below it, days 3 and 5.
The loop hands batches to the runner on the right, which computes them with paged attention, day 4, on the model of the
weeks before; the runner reads and writes the pages that the memory has given out.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas

WIDTH, HEIGHT = 2.5, 0.66
LEFT, MIDDLE, RIGHT = 0.1, 1.6, 3.1


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.7, 4.3)
    blue, orange, green, purple, red = theme.series
    parts = {
        "server": (MIDDLE, 3.5, "Server", "day 7: HTTP, streams, limits", red),
        "loop": (MIDDLE, 2.4, "Engine", "days 1, 6: launch, commit", blue),
        "scheduler": (LEFT, 1.3, "Scheduler", "days 1, 2: who runs next?", orange),
        "memory": (LEFT, 0.1, "Memory", "days 3, 5: pages, prefix tree", green),
        "runner": (RIGHT, 1.3, "Runner", "one forward for a batch", purple),
        "model": (RIGHT, 0.1, "Model", "day 4: paged attention", purple),
    }
    for above, below in (
        ("server", "loop"),
        ("loop", "scheduler"),
        ("loop", "runner"),
        ("scheduler", "memory"),
        ("runner", "model"),
    ):
        start, end = ((parts[name][0] + WIDTH / 2, parts[name][1]) for name in (above, below))
        arrow(axes, start, (end[0], end[1] + HEIGHT), theme.muted)
    arrow(axes, (RIGHT, 0.1 + HEIGHT / 2), (LEFT + WIDTH, 0.1 + HEIGHT / 2), theme.muted)
    for x, y, title, detail, color in parts.values():
        box(axes, x, y, WIDTH, HEIGHT, "", theme, color)
        axes.text(x + WIDTH / 2, y + 0.44, title, ha="center", va="center")
        axes.text(x + WIDTH / 2, y + 0.19, detail, ha="center", va="center", color=theme.muted, fontsize=9)
    return figure
