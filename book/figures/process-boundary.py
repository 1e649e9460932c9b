"""The way of a submission through the grader, in two columns. Left, the grader's own process, from top to bottom: a
submission, intake, inputs made from seeds, verify, points, result files. Right, in a dashed frame, the process
boundary: a fresh tree, a process that has imported NumPy and MLX, and a fork of it for each case, which runs observe.
Three arrows cross: files go in once, inputs go in and values come out for each case. Booleans never cross.
"""

import itertools

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from course.book.style import Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.8, 4.7)
    blue, orange, green, purple, red = theme.series
    frame = FancyBboxPatch((3.95, 0.95), 2.75, 3.15, boxstyle="round,pad=0,rounding_size=0.1")
    frame.set(facecolor="none", edgecolor=red, linewidth=1.6, linestyle="--")
    axes.add_patch(frame)
    axes.text(1.45, 4.45, "the grader", ha="center", va="center", color=blue)
    axes.text(5.32, 4.45, "inside the boundary", ha="center", va="center", color=red)
    left = (
        (3.55, "submission", theme.muted),
        (2.9, "intake: known files only", blue),
        (2.25, "inputs, from seeds", blue),
        (1.6, "verify: compare values", blue),
        (0.95, "points", blue),
        (0.3, "result files", green),
    )
    for y, text, color in left:
        box(axes, 0.1, y, 2.7, 0.45, text, theme, color)
    for (above, _, _), (y, _, _) in itertools.pairwise(left):
        arrow(axes, (1.45, above), (1.45, y + 0.45), theme.muted)
    box(axes, 4.15, 3.3, 2.35, 0.55, "fresh tree, read-only", theme, purple)
    box(axes, 4.15, 2.35, 2.35, 0.55, "imports NumPy, MLX", theme, purple)
    box(axes, 4.15, 1.25, 2.35, 0.7, "a fork for each case:\nobserve", theme, orange)
    arrow(axes, (5.32, 2.35), (5.32, 1.95), theme.muted)
    axes.plot([6.5, 6.6, 6.6], [3.55, 3.55, 1.6], color=theme.muted, linewidth=1.6)
    arrow(axes, (6.6, 1.6), (6.5, 1.6), theme.muted)
    arrow(axes, (2.8, 3.15), (4.15, 3.5), purple)
    arrow(axes, (2.8, 2.45), (4.15, 1.78), orange)
    arrow(axes, (4.15, 1.45), (2.8, 1.75), orange)
    axes.text(3.4, 3.55, "files", ha="center", va="center", color=purple, fontsize=9)
    axes.text(3.55, 2.45, "inputs", ha="center", va="center", color=orange, fontsize=9)
    axes.text(3.4, 1.28, "values", ha="center", va="center", color=orange, fontsize=9)
    told = "limits on time, memory, processes, disk\nno network, no tests, no seeds, no results"
    axes.text(5.32, 0.55, told, ha="center", va="center", color=theme.muted, fontsize=8)
    return figure
