"""Two threads over time. Your thread first calls the function, which only adds a node to the graph; then it asks for
the value with mx.eval, which calls eval_cpu of each node in turn. Each eval_cpu allocates its output and queues a
function. The stream's thread, below, runs these functions in order, later: when eval_cpu of the product runs, x has
memory, but the numbers in it are still being computed.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas

HIGH, LOW, TALL = 1.95, 0.55, 0.5


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.9, 3.1)
    graph, queue, work = theme.series[3], theme.series[0], theme.series[1]
    for y, text in ((HIGH, "your\nthread"), (LOW, "the stream's\nthread")):
        axes.text(0.05, y + TALL / 2, text, ha="left", va="center", fontsize=9)
        axes.plot([1.05, 6.8], [y - 0.08, y - 0.08], color=theme.muted, linewidth=1)
    box(axes, 1.1, HIGH, 1.2, TALL, "x = f(a)\ny = product(x)", theme, graph, fontsize=8)
    box(axes, 2.65, HIGH, 1.05, TALL, "f::eval_cpu", theme, queue, fontsize=8)
    box(axes, 3.75, HIGH, 1.3, TALL, "Product::eval_cpu", theme, queue, fontsize=8)
    box(axes, 5.1, HIGH, 1.65, TALL, "wait", theme, theme.muted, fontsize=8)
    box(axes, 3.3, LOW, 2.0, TALL, "computes x", theme, work, fontsize=8)
    box(axes, 5.35, LOW, 1.25, TALL, "computes y", theme, work, fontsize=8)
    axes.text(1.7, HIGH + 0.58, "the graph grows", ha="center", va="bottom", fontsize=8, color=graph)
    axes.text(
        3.85,
        HIGH + 0.58,
        "mx.eval(y): memory, and a place in the queue",
        ha="center",
        va="bottom",
        fontsize=8,
        color=queue,
    )
    arrow(axes, (3.2, HIGH), (3.4, LOW + TALL), queue)
    arrow(axes, (4.5, HIGH), (5.6, LOW + TALL), queue)
    arrow(axes, (6.5, LOW + TALL), (6.6, HIGH), theme.muted)
    axes.plot([4.2, 4.2], [0.25, HIGH], color=theme.series[4], linewidth=1.2, linestyle=(0, (3, 2)))
    axes.text(
        4.2, 0.22, "here x has memory, but no values yet", ha="center", va="top", fontsize=8, color=theme.series[4]
    )
    return figure
