"""A roofline on logarithmic axes, with the published ceilings of an H100: attainable FLOP/s against FLOP per byte. It
rises with the memory's bandwidth up to the ridge at 295 FLOP per byte, and is flat from there. Decode steps of
Qwen3-0.6B with one sequence stand far to the left under the slope, at about 1 in bfloat16 and 3.5 in 4 bits; 64
sequences move to the right; a prompt of 2,048 tokens stands on the flat part.
"""

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.kernels.roofline import BFLOAT16, PACKED4, Cost, Machine, lower_bound, model_cost
from tiny_llm_ref.model.config import ModelConfig

H100 = Machine(flops=989e12, bandwidth=3.35e12)
CONFIG = ModelConfig(1024, 28, 3072, 16, 8, 128, 151936, 1e-6, 1e6, 40960, True)
# Name, cost, and where the name stands: factors of the point's place, and which side of the text.
RUNS = [
    ("decode, bfloat16", model_cost(CONFIG, 1, 1, 128, BFLOAT16), (1.35, 0.78), "left"),
    ("decode, 4-bit", model_cost(CONFIG, 1, 1, 128, PACKED4), (1.35, 0.78), "left"),
    ("decode of 64, bfloat16", model_cost(CONFIG, 64, 1, 128, BFLOAT16), (0.75, 1.3), "right"),
    ("prefill of 2,048, bfloat16", model_cost(CONFIG, 1, 2048, 2048, BFLOAT16), (1, 1.6), "center"),
]


def attainable(cost: Cost) -> float:
    """FLOP/s at the lower bound of time."""
    return cost.flops / lower_bound(cost, H100)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(5.8, 3.7), layout="constrained")
    axes = figure.add_subplot()
    intensity = np.logspace(-0.5, 4, 200)
    axes.plot(intensity, np.minimum(intensity * H100.bandwidth, H100.flops), color=theme.muted)
    ridge = H100.flops / H100.bandwidth
    axes.plot([ridge, ridge], [1e11, H100.flops], color=theme.muted, linewidth=1, linestyle=":")
    axes.text(ridge * 0.92, 1.4e11, f"ridge: {ridge:.0f}", ha="right", va="bottom", color=theme.muted, fontsize=9)
    for i, (name, cost, factors, align) in enumerate(RUNS):
        x, y, color = cost.intensity, attainable(cost), theme.series[i]
        axes.plot([x], [y], "o", color=color)
        axes.text(x * factors[0], y * factors[1], name, ha=align, va="center", color=color, fontsize=9)
    axes.set(xlabel="FLOP per byte", ylabel="attainable FLOP/s", xscale="log", yscale="log")
    axes.set(xlim=(0.3, 1e4), ylim=(1e11, 4e15))
    return figure
