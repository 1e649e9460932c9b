"""Three bar charts of one row of eight features: the input x; x divided by its root mean square, after which the mean
square is 1; and that times the weight of each feature.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme


def draw(theme: Theme) -> Figure:
    """The figure."""
    x = np.array([0.4, -1.2, 0.1, 2.6, -0.3, 0.8, -0.7, 0.2])
    weight = np.array([1.0, 0.5, 1.0, 0.25, 2.0, 1.0, 1.0, 3.0])
    rms = np.sqrt(np.mean(x**2))
    rows = (
        (f"x, root mean square {rms:.2f}", x),
        ("x / rms(x), root mean square 1", x / rms),
        ("weight · x / rms(x)", weight * x / rms),
    )
    figure = Figure(figsize=(5.6, 4.4), layout="constrained")
    for index, (title, values) in enumerate(rows):
        axes = figure.add_subplot(3, 1, index + 1)
        axes.bar(range(8), values, 0.62, color=theme.series[index])
        axes.axhline(0, color=theme.muted, linewidth=0.8)
        axes.set_title(title, loc="left", fontsize=11)
        axes.set(ylim=(-2.1, 2.9), xticks=range(8) if index == 2 else [])
        axes.spines["bottom"].set_visible(False)
    axes.set_xlabel("feature")
    return figure
