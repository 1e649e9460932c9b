"""The two sides of a connector as states. Left, the prefill worker's prompt: computing, kept, sending, free. Kept turns
into sending with a question, and back when a copy has ended; kept turns into free when all was sent, when it is too old
or released; sending never does. Right, the decode worker's request: queue, receiving, received, running, ended.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(7.2, 4.0)
    blue, orange, green, purple, red = theme.series

    def label(x: float, y: float, text: str, color: str, **how: object) -> None:
        axes.text(x, y, text, color=color, fontsize=8, **({"ha": "left", "va": "center"} | how))

    axes.text(1.6, 3.8, "a prompt at the prefill worker", ha="center", va="center", color=blue)
    axes.text(5.6, 3.8, "a request at the decode worker", ha="center", va="center", color=purple)
    axes.plot([3.45, 3.45], [0.1, 3.9], color=theme.muted, linewidth=1.2, linestyle=":")
    box(axes, 0.5, 3.05, 1.2, 0.42, "computing", theme, blue)
    box(axes, 0.5, 1.75, 1.2, 0.42, "kept", theme, blue)
    box(axes, 2.2, 1.75, 1.1, 0.42, "sending", theme, orange)
    box(axes, 0.5, 0.35, 1.2, 0.42, "free", theme, green)
    arrow(axes, (1.1, 3.05), (1.1, 2.17), theme.muted)
    label(1.2, 2.6, "length: the row is free,\nthe pages are not", theme.muted)
    arrow(axes, (1.7, 2.05), (2.2, 2.05), orange)
    label(1.95, 2.3, "question", orange, ha="center")
    arrow(axes, (2.2, 1.87), (1.7, 1.87), orange)
    label(1.95, 1.6, "last copy\nended", orange, ha="center", va="top")
    arrow(axes, (1.1, 1.75), (1.1, 0.77), theme.muted)
    label(1.2, 1.05, "all sent, too old,\nor released", theme.muted)
    label(2.8, 1.55, "never freed here", red, ha="center")
    axes.plot([0.5, 0.25, 0.25], [3.26, 3.26, 0.56], color=theme.muted, linewidth=1.6)
    arrow(axes, (0.25, 0.56), (0.5, 0.56), theme.muted)
    axes.text(0.2, 1.95, "another end", color=theme.muted, fontsize=8, rotation=90, ha="right", va="center")
    names = ("queue", "receiving", "received", "running")
    for row, (name, color) in enumerate(zip(names, (purple, orange, purple, purple), strict=True)):
        box(axes, 4.0, 3.05 - 0.82 * row, 1.2, 0.42, name, theme, color)
        if row:
            arrow(axes, (4.6, 3.87 - 0.82 * row), (4.6, 3.47 - 0.82 * row), theme.muted)
    for row, text in enumerate(("pages for all of the prompt: ask", "every copy for every rank ended", "a row")):
        label(4.7, 2.85 - 0.82 * row, text, theme.muted)
    box(axes, 5.85, 0.0 + 0.12, 1.2, 0.42, "ended", theme, green)
    arrow(axes, (4.6, 0.59), (5.85, 0.33), theme.muted)
    label(5.35, 2.44, "the client leaves: keep\nthe pages to the last copy", red)
    label(5.35, 3.26, "the client leaves:\nrelease", theme.muted)
    label(5.35, 1.62, "the client leaves:\nfree the pages", theme.muted)
    label(5.35, 0.8, "its row and pages: free", theme.muted)
    return figure
