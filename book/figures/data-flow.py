"""The path of a request as a loop of boxes joined by arrows: messages, the chat template, text, the tokenizer,
tokens, the model, logits, the sampler, one new token. The new token goes two ways: back to the tokens for the next
step, and through the detokenizer to the text that the reader sees.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.6, 3.9)
    blue, orange, green, purple, red = theme.series
    rows = (
        (3.25, (("messages", theme.muted), ("chat template", green), ("tokenizer", theme.muted))),
        (2.05, (("sampler", red), ("model", blue), ("tokens (B, L)", theme.muted))),
        (0.55, (("new token", theme.muted), ("detokenizer", purple), ("text", theme.muted))),
    )
    for y, boxes in rows:
        for column, (text, color) in enumerate(boxes):
            box(axes, 0.1 + 1.9 * column, y, 1.5, 0.5, text, theme, color)
    for start, end in (((1.6, 3.5), (2.0, 3.5)), ((3.5, 3.5), (3.9, 3.5)), ((4.65, 3.25), (4.65, 2.55))):
        arrow(axes, start, end, theme.muted)
    arrow(axes, (3.9, 2.3), (3.5, 2.3), theme.muted)
    arrow(axes, (2.0, 2.3), (1.6, 2.3), theme.muted)
    arrow(axes, (0.85, 2.05), (0.85, 1.05), theme.muted)
    arrow(axes, (1.6, 0.8), (2.0, 0.8), theme.muted)
    arrow(axes, (3.5, 0.8), (3.9, 0.8), theme.muted)
    axes.plot([1.3, 1.3, 4.65], [1.05, 1.45, 1.45], color=orange, linewidth=1.6)
    arrow(axes, (4.65, 1.45), (4.65, 2.05), orange)
    axes.text(2.75, 1.52, "append, until a stop condition", ha="center", va="bottom", color=orange)
    axes.text(1.8, 2.62, "logits (B, V)", ha="center", va="bottom", color=theme.muted, fontsize=9)
    axes.text(4.75, 2.9, "token ids", ha="left", va="center", color=theme.muted, fontsize=9)
    axes.text(4.65, 0.4, "streamed to the reader", ha="center", va="top", color=theme.muted, fontsize=9)
    return figure
