"""The server's two threads as two columns. Left, the event loop: clients, routes, one queue for each answer, kept in a
map by request. Right, the engine's thread: the loop that obeys, steps and tells, with scheduler, memory and model.
Only two things cross over: commands (add, abort) go right through an inbox, outputs go left by call_soon_threadsafe.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.6, 4.1)
    blue, orange, green, purple, _ = theme.series
    axes.text(1.55, 3.9, "event loop", ha="center", va="center", color=blue)
    axes.text(5.25, 3.9, "engine's thread", ha="center", va="center", color=purple)
    axes.plot([3.4, 3.4], [0.15, 4.0], color=theme.muted, linewidth=1.2, linestyle=":")
    box(axes, 0.1, 3.05, 1.3, 0.5, "clients", theme, theme.muted)
    box(axes, 1.7, 3.05, 1.3, 0.5, "routes", theme, blue)
    box(axes, 1.7, 1.95, 1.3, 0.5, "submit", theme, blue)
    box(axes, 0.1, 1.95, 1.3, 0.5, "answer", theme, blue)
    box(axes, 0.1, 0.55, 2.9, 0.6, "queues: uid -> queue", theme, green)
    box(axes, 4.3, 2.9, 2.0, 0.65, "obey the inbox", theme, purple)
    box(axes, 4.3, 1.75, 2.0, 0.65, "step the engine", theme, purple)
    box(axes, 4.3, 0.55, 2.0, 0.6, "tell the outputs", theme, purple)
    arrow(axes, (1.4, 3.3), (1.7, 3.3), theme.muted)
    arrow(axes, (2.35, 3.05), (2.35, 2.45), theme.muted)
    arrow(axes, (0.75, 1.15), (0.75, 1.95), green)
    arrow(axes, (0.75, 2.45), (0.75, 3.05), theme.muted)
    arrow(axes, (2.35, 1.95), (2.35, 1.15), green)
    arrow(axes, (3.0, 2.2), (4.3, 3.1), orange)
    arrow(axes, (4.3, 0.85), (3.0, 0.85), orange)
    for start, end in (((5.3, 2.9), (5.3, 2.4)), ((5.3, 1.75), (5.3, 1.15))):
        arrow(axes, start, end, theme.muted)
    axes.plot([6.3, 6.5, 6.5], [0.85, 0.85, 3.22], color=theme.muted, linewidth=1.6)
    arrow(axes, (6.5, 3.22), (6.3, 3.22), theme.muted)
    axes.text(3.5, 3.05, "inbox:\nadd, abort", ha="left", va="bottom", color=orange, fontsize=9)
    axes.text(3.5, 0.95, "call_soon_\nthreadsafe", ha="left", va="bottom", color=orange, fontsize=8)
    axes.text(0.85, 1.5, "outputs", ha="left", va="center", color=green, fontsize=9)
    axes.text(2.25, 1.5, "note", ha="right", va="center", color=green, fontsize=9)
    axes.text(5.3, 0.3, "scheduler, memory, model: touched here only", ha="center", va="center", fontsize=8,
              color=theme.muted)  # fmt: skip
    return figure
