"""Bandwidth from which fetching the KV of a cached prefix is faster than computing it again, against the length of the
prefix, for eight A800 and eight H800, both axes logarithmic. At 8,192 tokens it is 6 GB/s and 19 GB/s. Both lines fall,
slowly up to ten thousand tokens and faster beyond, where attention makes long prefixes dear.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme

LAYERS, HIDDEN, KV_BYTES = 80, 8192, 320 * 1024
"""A model of 70 billion weights, as Mooncake's paper describes it; KV in bytes per token."""
MACHINES = {"8 x A800": 8 * 312e12, "8 x H800": 8 * 989e12}


def flops(tokens: float) -> float:
    """Of a prompt (Mooncake, FAST '25): 4 n^2 d + 22 n d^2 a layer."""
    return LAYERS * (4 * tokens**2 * HIDDEN + 22 * tokens * HIDDEN**2)


def break_even(prefix: float, flops_per_s: float) -> float:
    """Bytes per second at which moving the KV of a prefix takes as long as computing it."""
    return prefix * KV_BYTES / (flops(prefix) / flops_per_s)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(5.6, 3.2), layout="constrained")
    axes, prefixes = figure.add_subplot(), np.geomspace(512, 131_072, 60)
    for color, (name, speed) in zip(theme.series, MACHINES.items(), strict=False):
        axes.plot(prefixes, [break_even(n, speed) / 1e9 for n in prefixes], color=color, label=name)
        axes.plot([8192], [break_even(8192, speed) / 1e9], "o", color=color)
    for speed, name in ((12.5, "100 Gb/s"), (25, "200 Gb/s"), (50, "400 Gb/s")):
        axes.axhline(speed, color=theme.muted, linewidth=0.8, linestyle=":")
        axes.text(131_072, speed * 1.04, name, ha="right", fontsize=8, color=theme.muted)
    axes.set(xscale="log", yscale="log", xlabel="tokens of the prefix", ylabel="GB/s", ylim=(1, 70))
    axes.set_xticks([512, 2048, 8192, 32_768, 131_072], ["512", "2k", "8k", "32k", "128k"])
    axes.set_yticks([1, 5, 10, 50], ["1", "5", "10", "50"])
    axes.minorticks_off()
    axes.legend(fontsize=9, loc="lower left")
    return figure
