"""How a task is studied, as a loop of six boxes. Read the chapter and predict; see the task red; write, while watch
runs the tests on every save; a failure is read, and perhaps a hint is asked for, and one writes again. Once the task is
done come the self-check, solution and compare, and then the next task.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.8, 3.0)
    blue, orange, green, purple, red = theme.series
    box(axes, 0.1, 1.85, 1.7, 0.8, "read,\npredict", theme, blue)
    box(axes, 2.5, 1.85, 1.7, 0.8, "see it red\nwatch", theme, red)
    box(axes, 4.95, 1.85, 1.7, 0.8, "write, save", theme, orange)
    box(axes, 4.95, 0.35, 1.7, 0.8, "read the failure\nhint", theme, red)
    box(axes, 2.5, 0.35, 1.7, 0.8, "done\nself-check", theme, green)
    box(axes, 0.1, 0.35, 1.7, 0.8, "solution,\ncompare", theme, purple)
    arrow(axes, (1.8, 2.25), (2.5, 2.25), theme.muted)
    arrow(axes, (4.2, 2.25), (4.95, 2.25), theme.muted)
    arrow(axes, (6.15, 1.85), (6.15, 1.15), red)
    arrow(axes, (5.45, 1.15), (5.45, 1.85), orange)
    arrow(axes, (4.95, 1.85), (4.2, 1.15), green)
    arrow(axes, (2.5, 0.75), (1.8, 0.75), theme.muted)
    arrow(axes, (0.95, 1.15), (0.95, 1.85), theme.muted)
    axes.text(6.25, 1.5, "failing", ha="left", va="center", color=red, fontsize=9)
    axes.text(4.3, 1.62, "passing", ha="right", va="center", color=green, fontsize=9)
    axes.text(1.05, 1.5, "next task", ha="left", va="center", color=theme.muted, fontsize=9)
    return figure
