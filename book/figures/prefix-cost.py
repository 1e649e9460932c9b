"""FLOPs to write a reply of up to 500 tokens after a prompt of 100, for the shape of Qwen3-0.6B, on a logarithmic
axis. Recomputing the whole prefix at every step grows with the square of the length; with a KV cache the growth is
nearly a straight line. At 500 tokens the first costs hundreds of times the second.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, VOCABULARY = 1024, 28, 16, 8, 128, 3072, 151_936
PROMPT, REPLY = 100, 500


def flops(new: int, seen: int) -> int:
    """FLOPs to compute `new` tokens after `seen` cached ones, every token through the LM head, as in Week 1."""
    features = (HEADS + 2 * KV_HEADS) * HEAD_DIM + HEADS * HEAD_DIM  # q, k, v and the output projection
    linear = 2 * new * (HIDDEN * features + 3 * HIDDEN * INTERMEDIATE)
    attention = 4 * new * (seen + new) * HEADS * HEAD_DIM  # scores and the weighted mean, masked entries included
    return LAYERS * (linear + attention) + 2 * new * HIDDEN * VOCABULARY


def totals() -> tuple[np.ndarray, np.ndarray]:
    """FLOPs after 1 ... REPLY tokens: the whole prefix each time, and with a KV cache."""
    full = [flops(PROMPT + n, 0) for n in range(REPLY)]
    cached = [flops(PROMPT, 0)] + [flops(1, PROMPT + n) for n in range(REPLY - 1)]
    return np.cumsum(full, dtype=float), np.cumsum(cached, dtype=float)


def draw(theme: Theme) -> Figure:
    """The figure."""
    full, cached = totals()
    tokens = np.arange(1, REPLY + 1)
    figure = Figure(figsize=(5.6, 3.3), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(tokens, full, color=theme.series[1])
    axes.plot(tokens, cached, color=theme.series[0])
    axes.text(480, full[-1] * 0.25, "whole prefix each step", ha="right", va="top", color=theme.series[1])
    axes.text(480, cached[-1] * 0.55, "with a KV cache", ha="right", va="top", color=theme.series[0])
    ends = {"arrowstyle": "<->", "color": theme.muted}
    axes.annotate("", (500, full[-1]), (500, cached[-1]), arrowprops=ends)
    axes.text(492, np.sqrt(full[-1] * cached[-1]), f"{full[-1] / cached[-1]:.0f}x", ha="right", va="center")
    axes.set(xlabel="tokens written after a prompt of 100", ylabel="FLOPs in all", yscale="log", xlim=(0, 510))
    return figure
