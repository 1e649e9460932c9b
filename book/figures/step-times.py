"""Two panels of step times of Qwen3-8B on one H100 by the roofline model, both axes logarithmic. Left, decode: with 512
tokens of context a step takes 7 ms for one request and 10 ms for 128, since the weights are read once for all; with
16,384 tokens it takes ten times as long for 128 as for 4. Right, prefill: flat up to 256 tokens, then in proportion to
them. Dotted lines show the polynomials of Dynamo's mocker, which have a like shape with other numbers.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.cluster.cost import Mocker, StepShape
from tiny_llm_ref.cluster.roofline import MACHINES, QWEN3, Roofline

BATCHES = [2**i for i in range(9)]
TOKENS = [2**i for i in range(4, 15)]
CONTEXTS = (512, 4096, 16_384)


def draw(theme: Theme) -> Figure:
    """The figure."""
    model, mocker = Roofline(MACHINES["H100"], QWEN3["8B"]), Mocker()
    figure = Figure(figsize=(7.2, 3.3), layout="constrained")
    decode, prefill = figure.subplots(1, 2, sharey=True)
    for color, marker, context in zip(theme.series, "os^", CONTEXTS, strict=False):
        times = [model.step_time(StepShape(0, 0, n, n * context, n)) / 1e6 for n in BATCHES]
        decode.plot(BATCHES, times, color=color, marker=marker, markersize=4, label=f"context {context:,}")
    times = [mocker.step_time(StepShape(0, 0, n, n * 4096, n)) / 1e6 for n in BATCHES]
    decode.plot(BATCHES, times, ":", color=theme.muted, label="mocker, context 4,096")
    times = [model.step_time(StepShape(n, n * (n + 1) // 2, 0, 0, 1)) / 1e6 for n in TOKENS]
    prefill.plot(TOKENS, times, color=theme.series[3], marker="o", markersize=4, label="one whole prompt")
    times = [mocker.step_time(StepShape(n, 0, 0, 0, 1)) / 1e6 for n in TOKENS]
    prefill.plot(TOKENS, times, ":", color=theme.muted, label="mocker")
    decode.set(xscale="log", yscale="log", xlabel="decodes in the batch", ylabel="ms of a step", ylim=(4, 2000))
    prefill.set(xscale="log", xlabel="tokens of the prompt")
    decode.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    prefill.set_xticks([16, 128, 1024, 8192], ["16", "128", "1,024", "8,192"])
    decode.set_yticks([10, 100, 1000], ["10", "100", "1,000"])
    for axes in (decode, prefill):
        axes.minorticks_off()
        axes.legend(fontsize=8.5, loc="upper left")
    return figure
