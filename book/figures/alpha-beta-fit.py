"""Nine measured transfers of keys and values, 21 MB to 4.8 GB, with the line that was fitted to them. Left: time
against size, both logarithmic. The points lie on the curve, which is flat below 10 MB, where the latency of 0.38 ms is
all, and straight above 200 MB. Right: bytes per second, from 39 GB/s for the smallest to 153 for the largest; the curve
comes near the fitted rate of 146 GB/s, and passes half of it at 56 MB.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.cluster.link import SECOND, fit_link

MIB = 1 << 20
MEASURED = {128: 0.54, 256: 0.61, 512: 0.92, 1024: 1.50, 2048: 2.51, 4096: 4.75, 8192: 8.84, 16384: 16.43, 32768: 31.65}
"""Tokens of the prompt, and ms: vLLM's documentation of its Mooncake connector (Qwen3-8B over eight RoCE ports)."""
SAMPLES = [(tokens * 147_456 + 2 * MIB, round(ms * 1e6)) for tokens, ms in MEASURED.items()]


def draw(theme: Theme) -> Figure:
    """The figure."""
    latency, rate = fit_link(SAMPLES)
    sizes, times = np.array(SAMPLES, float).T
    line = np.geomspace(1e6, 1e10, 200)
    fitted = latency + line * SECOND / rate
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.loglog(line / 1e6, fitted / 1e6, color=theme.series[0])
    left.loglog(sizes / 1e6, times / 1e6, "o", color=theme.series[1])
    left.set(xlabel="MB", ylabel="ms")
    right.semilogx(line / 1e6, line / fitted, color=theme.series[0], label="fit")
    right.semilogx(sizes / 1e6, sizes / times, "o", color=theme.series[1], label="measured")
    right.axhline(rate / 1e9, color=theme.muted, linewidth=1, linestyle=":")
    half = latency * rate / SECOND
    right.plot([half / 1e6] * 2, [0, rate / 2e9], color=theme.muted, linewidth=1, linestyle=":")
    right.set(xlabel="MB", ylabel="GB/s", ylim=(0, 165))
    right.legend(fontsize=9, loc="lower right")
    return figure
