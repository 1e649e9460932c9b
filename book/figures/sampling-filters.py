"""Five bar charts of the same real distribution of the embedded model over its dozen most probable next tokens. First
as the model gives it, then at temperature 0.5, where the first bars grow and the others shrink, then under top-k 4,
top-p 0.8 and min-p 0.2, where the kept tokens share the whole probability and the hidden ones are empty outlines.
"""

import mlx.core as mx
import numpy as np
from matplotlib.figure import Figure
from tokenizers import Tokenizer

from course.book.style import Theme
from course.paths import MODELS
from tiny_llm_ref.model.checkpoint import load_model
from tiny_llm_ref.text.sampler import filter_logits, log_probabilities

PROMPT = "There was once a curious"
SHOWN = 12
SETTINGS = (  # title, temperature, top-k, top-p, min-p
    ("as the model gives it", 1.0, 0, 1.0, 0.0),
    ("temperature 0.5", 0.5, 0, 1.0, 0.0),
    ("top-k 4", 1.0, 4, 1.0, 0.0),
    ("top-p 0.8", 1.0, 0, 0.8, 0.0),
    ("min-p 0.2", 1.0, 0, 1.0, 0.2),
)


def distributions() -> tuple[list[str], np.ndarray]:
    """The most probable tokens as text, and their probabilities under each setting, rounded: (settings, tokens)."""
    tokenizer = Tokenizer.from_file(str(MODELS / "tiny" / "tokenizer.json"))
    model = load_model(MODELS / "tiny", mx.float32)
    logits = model(mx.array([tokenizer.encode(PROMPT).ids]))[:, -1]
    best = mx.argsort(-logits[0])[:SHOWN]
    rows = [filter_logits(logits, *([value] for value in setting[1:])) for setting in SETTINGS]
    probabilities = mx.exp(log_probabilities(mx.concatenate(rows)))[:, best]
    return [tokenizer.decode([token]) for token in best.tolist()], np.round(np.array(probabilities), 3)


def draw(theme: Theme) -> Figure:
    """The figure."""
    words, probabilities = distributions()
    figure = Figure(figsize=(5.6, 6.2), layout="constrained")
    for index, ((title, *_), values) in enumerate(zip(SETTINGS, probabilities, strict=True)):
        axes = figure.add_subplot(len(SETTINGS), 1, index + 1)
        axes.bar(range(SHOWN), probabilities[0], 0.7, facecolor="none", edgecolor=theme.muted, linewidth=0.8)
        axes.bar(range(SHOWN), values, 0.7, color=theme.series[index], alpha=0.9)
        axes.set(ylim=(0, 1.05 * probabilities.max()), xticks=range(SHOWN), xticklabels=[])
        axes.text(SHOWN - 0.4, 0.8 * probabilities.max(), title, ha="right", va="center", color=theme.series[index])
    axes.set_xticklabels([word.strip() or repr(word) for word in words], rotation=45, ha="right", fontsize=9)
    figure.supylabel("probability", fontsize=10)
    return figure
