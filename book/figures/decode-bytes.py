"""Gigabytes that one decode step of Qwen3-0.6B reads, for one sequence, against its length up to 32,768 tokens. The
weights are a flat line: 1.19 GB in bfloat16, 0.34 GB in 4 bits. Keys and values are a straight line through zero. It
crosses that of the 4-bit weights before 3,000 tokens and that of the bfloat16 weights near 10,400.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.kernels.roofline import BFLOAT16, PACKED4, model_cost
from tiny_llm_ref.model.config import ModelConfig

CONFIG = ModelConfig(1024, 28, 3072, 16, 8, 128, 151936, 1e-6, 1e6, 40960, True)


def draw(theme: Theme) -> Figure:
    """The figure."""
    tokens = np.array([1, 32768])
    figure = Figure(figsize=(5.6, 3.3), layout="constrained")
    axes = figure.add_subplot()
    for i, (name, precision) in enumerate((("bfloat16 weights", BFLOAT16), ("4-bit weights", PACKED4))):
        weights = model_cost(CONFIG, 1, 1, 1, precision).bytes / 1e9
        axes.plot(tokens, [weights, weights], color=theme.series[i])
        axes.text(32000, weights + 0.07, name, ha="right", va="bottom", color=theme.series[i])
    start = model_cost(CONFIG, 1, 1, 1, BFLOAT16).bytes
    cache = [(model_cost(CONFIG, 1, 1, int(S), BFLOAT16).bytes - start) / 1e9 for S in tokens]
    axes.plot(tokens, cache, color=theme.series[2])
    axes.text(24500, 2.95, "keys and values", ha="right", va="center", color=theme.series[2])
    axes.set(xlabel="tokens of the sequence", ylabel="GB read in one step", xlim=(0, 32768), ylim=(0, 4))
    return figure
