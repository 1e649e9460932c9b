"""Four circles, one for each pair of features of a head with D = 8. In each, arrows show the same pair at positions 0
to 6. The first pair turns by 1 radian per position, the others by 0.32, 0.1 and 0.03: the last hardly moves.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from course.book.style import Theme, arrow, canvas

DIMS, BASE, POSITIONS = 8, 100.0, 7


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.6, 2.3)
    for pair, color in enumerate(theme.series[:4]):
        rate = BASE ** (-2 * pair / DIMS)
        x, y, radius = 0.75 + 1.37 * pair, 1.25, 0.6
        axes.add_patch(Circle((x, y), radius, facecolor=theme.soft, edgecolor=theme.muted, linewidth=0.8))
        for position in range(POSITIONS):
            angle = position * rate + 0.3
            tip = (x + radius * np.cos(angle), y + radius * np.sin(angle))
            arrow(axes, (x, y), tip, color, alpha=0.25 + 0.75 * position / (POSITIONS - 1))
            if pair < 2:
                at = (x + 1.14 * radius * np.cos(angle), y + 1.14 * radius * np.sin(angle))
                axes.text(*at, str(position), ha="center", va="center", fontsize=8, color=theme.muted)
        axes.text(x, 2.12, f"pair {pair}", ha="center", va="center", weight="bold")
        axes.text(x, 0.38, f"{rate:.2g} rad", ha="center", va="center")
    axes.text(2.8, 0.1, "per position, for D = 8 and base = 100", ha="center", va="center", color=theme.muted)
    return figure
