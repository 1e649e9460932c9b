"""The exponential function on a logarithmic axis. It passes the largest float16 number, 65,504, at x = 11.1 and the
largest float32 number, 3.4e38, at x = 88.7; beyond, the result is infinity. After the row's maximum is subtracted all
arguments are at most zero, in a shaded region where no exponential exceeds one.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(5.6, 3.4), layout="constrained")
    axes = figure.add_subplot()
    _, orange, green, _, red = theme.series
    axes.axvspan(-40, 0, color=green, alpha=0.15, linewidth=0)
    axes.text(-20, 30, "after\nsubtracting\nthe maximum:\nat most 1", ha="center", va="center", color=green)
    x = np.array([-40.0, 110.0])
    axes.plot(x, x / np.log(10), color=theme.series[0])
    for name, dtype, color in (("float16", np.float16, orange), ("float32", np.float32, red)):
        limit = float(np.finfo(dtype).max)
        edge = np.log(limit)
        axes.plot([0, 110], [np.log10(limit)] * 2, color=color, linestyle="--", linewidth=1.4)
        axes.plot([edge], [np.log10(limit)], "o", color=color)
        x, side = (3, "left") if dtype is np.float32 else (109, "right")  # where the line is not
        axes.text(x, np.log10(limit) + 0.8, f"largest {name}", ha=side, va="bottom", color=color)
        axes.annotate(f"x = {edge:.1f}", (edge, np.log10(limit)), (6, -14), textcoords="offset points", color=color)
    axes.set(xlim=(-40, 110), ylim=(-18, 50), xlabel="x", ylabel="exp(x)")
    axes.set_yticks([-15, 0, 15, 30, 45], ["1e-15", "1", "1e15", "1e30", "1e45"])
    return figure
