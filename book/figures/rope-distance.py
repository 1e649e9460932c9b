"""The dot product of a rotated query at position m and a rotated key at position n, against the distance m - n. The
line for m = 100 and the points for m = 1,000 and m = 10,000 agree: only the distance counts. The dashed line, without
rotation, is level: the distance makes no difference.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme

DIMS, BASE = 64, 1e6


def rotate(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """One vector rotated to many positions, first half with second half; float64."""
    angles = positions[:, None] * BASE ** (-np.arange(0, DIMS, 2) / DIMS)
    a, b = np.split(x, 2)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def draw(theme: Theme) -> Figure:
    """The figure."""
    random = np.random.default_rng(5)
    q = random.normal(size=DIMS) / np.sqrt(DIMS)
    k = q + 0.3 * random.normal(size=DIMS) / np.sqrt(DIMS)
    figure = Figure(figsize=(5.6, 3.1), layout="constrained")
    axes = figure.add_subplot()
    distances = np.arange(0, 61)
    axes.axhline(q @ k, color=theme.muted, linestyle="--", linewidth=1.2, label="without RoPE")
    for m, marker, start, color in zip((100, 1000, 10_000), ("-", "s", "o"), (0, 1, 3), theme.series, strict=False):
        rotated = rotate(q, np.array([m]))[0]
        some = distances if marker == "-" else distances[start::4]
        axes.plot(some, rotate(k, m - some) @ rotated, marker, color=color, label=f"query at {m:,}")
    axes.set(xlabel="distance m - n", ylabel="query · key")
    axes.legend(fontsize=9, loc="upper right", ncols=2)
    axes.set_ylim(top=q @ k + 0.5)
    return figure
