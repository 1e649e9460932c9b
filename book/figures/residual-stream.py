"""One Qwen3 block as a vertical line, the residual stream of shape (B, L, E), with two side branches. The first reads
the stream through an RMSNorm, then attention with q/k norm and RoPE, and adds its output to the stream. The second
reads it through another RMSNorm and the SwiGLU MLP and adds its output. Below the block stands the embedding, above
it more blocks, the final norm and the LM head.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas

STREAM = 1.2


def branch(axes: Axes, y: float, steps: tuple[str, str], theme: Theme, color: str) -> None:
    """A side branch that leaves the stream at height y and comes back as a sum."""
    top = y + 1.35
    axes.plot([STREAM, 2.35], [y, y], color=color)
    arrow(axes, (2.35, y), (2.35, y + 0.18), color)
    box(axes, 1.75, y + 0.18, 1.2, 0.36, "RMSNorm", theme, color)
    arrow(axes, (2.95, y + 0.36), (3.2, y + 0.36), color)
    box(axes, 3.2, y + 0.06, 2.2, 0.6, steps[0], theme, color)
    arrow(axes, (4.3, y + 0.66), (4.3, y + 0.8), color)
    box(axes, 3.2, y + 0.8, 2.2, 0.36, steps[1], theme, color)
    axes.plot([4.3, 4.3], [y + 1.16, top], color=color)
    arrow(axes, (4.3, top), (STREAM + 0.16, top), color)
    axes.plot([STREAM], [top], "o", markersize=18, markerfacecolor=theme.soft, markeredgecolor=color)
    axes.text(STREAM, top, "+", ha="center", va="center", fontsize=14)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.6, 5.6)
    blue, orange, *_ = theme.series
    arrow(axes, (STREAM, 0.52), (STREAM, 4.55), theme.muted, linewidth=4, mutation_scale=18, zorder=0)
    box(axes, 0.6, 0.14, 1.2, 0.38, "Embedding", theme, theme.muted)
    branch(axes, 0.95, ("q, k, v; q/k norm;\nRoPE", "attention, w_o"), theme, blue)
    branch(axes, 2.75, ("w_gate, w_up;\nSiLU, product", "w_down"), theme, orange)
    axes.text(STREAM - 0.2, 2.55, "(B, L, E)", rotation=90, ha="right", va="center", color=theme.muted)
    box(axes, 0.3, 4.6, 1.8, 0.36, "more blocks", theme, theme.muted)
    arrow(axes, (2.1, 4.78), (2.4, 4.78), theme.muted)
    box(axes, 2.4, 4.6, 1.1, 0.36, "RMSNorm", theme, theme.muted)
    arrow(axes, (3.5, 4.78), (3.8, 4.78), theme.muted)
    box(axes, 3.8, 4.6, 1.6, 0.36, "LM head", theme, theme.muted)
    axes.text(4.6, 5.06, "logits (B, L, V)", ha="center", va="bottom", color=theme.muted)
    return figure
