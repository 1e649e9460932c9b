"""The parts of a disaggregated deployment. Requests enter at the top, at the front end with its router, day 4. Below it
are the prefill workers on the left and the decode workers on the right, each a replica of day 1 that runs the engine of
week 3. Between them keys and values move, days 5 and 6. Discovery, day 3, stands at the bottom left and the planner,
day 7, at the bottom right: both look at all workers.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas

WIDTH, HEIGHT = 2.1, 0.66
LEFT, MIDDLE, RIGHT = 0.1, 1.8, 3.5


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.7, 4.3)
    blue, orange, green, purple, red = theme.series
    parts = {
        "workload": (MIDDLE, 3.5, "Requests", "day 2: load and metrics", blue),
        "router": (MIDDLE, 2.4, "Front end", "day 4: which worker?", red),
        "prefill": (LEFT, 1.3, "Prefill workers", "day 1: engines in time", orange),
        "decode": (RIGHT, 1.3, "Decode workers", "day 5: the hand-off", orange),
        "discovery": (LEFT, 0.1, "Discovery", "day 3: who is alive?", green),
        "planner": (RIGHT, 0.1, "Planner", "day 7: how many?", purple),
    }
    for above, below in (
        ("workload", "router"),
        ("router", "prefill"),
        ("router", "decode"),
        ("discovery", "prefill"),
        ("planner", "decode"),
    ):
        start, end = ((parts[name][0] + WIDTH / 2, parts[name][1]) for name in (above, below))
        if above in ("discovery", "planner"):
            arrow(axes, (start[0], start[1] + HEIGHT), (end[0], end[1]), theme.muted)
        else:
            arrow(axes, start, (end[0], end[1] + HEIGHT), theme.muted)
    arrow(axes, (LEFT + WIDTH, 1.3 + HEIGHT / 2), (RIGHT, 1.3 + HEIGHT / 2), theme.muted)
    axes.text(
        (LEFT + WIDTH + RIGHT) / 2, 1.3 + HEIGHT / 2 + 0.18, "KV: day 6", ha="center", color=theme.muted, fontsize=9
    )
    for x, y, title, detail, color in parts.values():
        box(axes, x, y, WIDTH, HEIGHT, "", theme, color)
        axes.text(x + WIDTH / 2, y + 0.44, title, ha="center", va="center")
        axes.text(x + WIDTH / 2, y + 0.19, detail, ha="center", va="center", color=theme.muted, fontsize=9)
    return figure
