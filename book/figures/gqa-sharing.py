"""Eight query heads in a row above their key/value heads, three times. MHA: eight key/value heads, one for each query
head. GQA: two, each shared by four neighbouring query heads. MQA: a single one shared by all eight.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, box, canvas

HEADS = 8


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(5.6, 4.6)
    for row, (name, kv_heads) in enumerate((("MHA", 8), ("GQA", 2), ("MQA", 1))):
        y = 3.3 - 1.5 * row
        group = HEADS // kv_heads
        axes.text(0.08, y + 0.65, name, va="center", weight="bold")
        axes.text(0.08, y + 0.4, f"H_kv = {kv_heads}", va="center", fontsize=9, color=theme.muted)
        for head in range(HEADS):
            color = theme.series[head // group % len(theme.series)]
            x = 1.05 + 0.56 * head
            kv = head // group
            middle = 1.05 + 0.56 * (kv * group + (group - 1) / 2) + 0.22
            axes.plot([x + 0.22, middle], [y + 0.78, y + 0.36], color=color, linewidth=1.4)
            box(axes, x, y + 0.78, 0.44, 0.34, f"q{head}", theme, color, fontsize=9)
            if head % group == 0:
                box(axes, middle - 0.22, y, 0.44, 0.36, f"kv{kv}", theme, color, fontsize=9)
    return figure
