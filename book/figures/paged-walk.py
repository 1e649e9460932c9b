"""A batch of two requests over a pool of eight pages with four positions each. Request A has ten positions, in pages 5,
2 and 7, and two rows in the batch; request B has six, in pages 0 and 4, and one row. Position 9 of A is looked up in
entry 2 of its row of the table: page 7, row 1. Behind the last positions, in the free pages and in the dummy page
nothing is read.
"""

from matplotlib.figure import Figure

from course.book.style import Theme, arrow, box, canvas

SIZE = 4
TABLE = {"A": [5, 2, 7], "B": [0, 4]}
LENGTHS = {"A": 10, "B": 6}
PAGES = 8  # and the dummy page


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.6, 4.2)
    colors = {"A": theme.series[0], "B": theme.series[1]}
    owner = {page: (name, entry) for name, pages in TABLE.items() for entry, page in enumerate(pages)}

    text = "rows of the batch: bounds [0, 2, 3], lengths [10, 6]"
    axes.text(0.2, 4.0, text, va="center", color=theme.muted, fontsize=9)
    rows = (("A, pos. 8", "A"), ("A, pos. 9", "A"), ("B, pos. 5", "B"))
    for x, (text, name) in zip((0.2, 1.22, 2.24), rows, strict=True):
        box(axes, x, 3.45, 0.96, 0.36, text, theme, colors[name], fontsize=9)

    axes.text(0.2, 3.12, "table: page numbers", va="center", color=theme.muted, fontsize=9)
    for row, (name, pages) in enumerate(TABLE.items()):
        y = 2.62 - row * 0.42
        axes.text(0.32, y + 0.17, name, ha="center", va="center", color=colors[name], fontsize=10)
        for entry in range(4):
            text, color = (str(pages[entry]), colors[name]) if entry < len(pages) else ("d", theme.muted)
            box(axes, 0.55 + entry * 0.6, y, 0.54, 0.34, text, theme, color, fontsize=9)
    axes.text(3.15, 2.6, "position 9 of A: entry 9 / 4 = 2,\nrow 9 % 4 = 1 of page 7", va="center", fontsize=9)
    arrow(axes, (1.7, 3.42), (2.02, 2.99), theme.ink)

    axes.text(0.2, 1.85, "pool of one layer and head", va="center", color=theme.muted, fontsize=9)
    for page in range(PAGES + 1):
        x = 0.2 + page * 0.7
        axes.text(x + 0.3, 0.18, "d" if page == PAGES else str(page), ha="center", va="center", fontsize=9)
        for row in range(SIZE):
            name, entry = owner.get(page, (None, 0))
            s = entry * SIZE + row
            text, color = (f"{name}{s}", colors[name]) if name and s < LENGTHS[name] else ("", theme.muted)
            box(axes, x, 1.38 - row * 0.34, 0.6, 0.3, text, theme, color, fontsize=8.5)
    arrow(axes, (2.02, 2.58), (5.4, 1.36), theme.ink, connectionstyle="arc3,rad=-0.12")
    return figure
