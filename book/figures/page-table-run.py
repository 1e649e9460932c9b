"""Six moments of one run with pages of four positions. Beside each stands the page table, a row of page numbers per
request, and the pool, eight pages and a dummy page, with the slots that hold keys and values filled. Requests A and B
are prefilled into pages 0 and 1, and 2. After two more steps each needs one more page: A gets page 3, B page 4. When B
has ended, C gets its row and its pages 4 and 2, in this order, and page 5. When C has ended, A takes page 5. In the end
all pages are free, and every entry of the table is the dummy page again.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas
from tiny_llm_ref.serving.paged_memory import PagedMemory
from tiny_llm_ref.serving.request import Request, Sampled
from tiny_llm_ref.serving.scheduler import Scheduler

ROWS, PAGES, SIZE = 3, 8, 4
NAMES = "ABC"
SLOT, CELL, STEP = 0.105, 0.2, 1.33
# After which step, what had happened by then.
MOMENTS = {
    1: "A (7 tokens) and B (3) are prefilled",
    2: "a decode step: A has 8 positions and B has 4, all these pages are full",
    3: "one more step: A's 9th position needs a page, and so does B's 5th",
    4: "B has ended; C (9 tokens) is prefilled into B's two pages and a new one",
    8: "C has ended; A's 13th position gets one of its pages",
    9: "A has ended: all pages are free, no entry names one",
}


class Moment(NamedTuple):
    """The table's entries, and (uid, row, positions written) of each request that has a row."""

    entries: np.ndarray
    requests: list[tuple[int, int, int]]


def run() -> dict[int, Moment]:
    """The moments of a run of the reference's scheduler over real pages. Tokens do not matter: all are 0."""
    memory = PagedMemory(ROWS, 4 * SIZE, SIZE, PAGES)
    scheduler = Scheduler(memory)
    for uid, (prompt, tokens) in enumerate(((7, 7), (3, 3))):
        scheduler.add(Request(uid, [0] * prompt, tokens))
    moments = {}
    for step in range(1, max(MOMENTS) + 1):
        if step == 4:
            scheduler.add(Request(2, [0] * 9, 4))
        batch = scheduler.next_batch()
        requests = [(r.uid, r.row, r.cached_len) for r in scheduler.requests.values() if r.row is not None]
        moments[step] = Moment(memory.table.entries.copy(), requests)
        if batch is not None:
            scheduler.commit(batch, [Sampled(0)] * len(batch.sampling))
    return moments


def draw_table(axes: Axes, x: float, y: float, moment: Moment, theme: Theme) -> None:
    """The rows of the table from top to bottom, the dummy row last."""
    owners = {row: uid for uid, row, _ in moment.requests}
    for row, entries in enumerate(moment.entries):
        top = y - CELL * (row + 1)
        name = "dummy" if row == ROWS else NAMES[owners[row]] if row in owners else ""
        axes.text(x - 0.08, top + CELL / 2, name, ha="right", va="center", fontsize=7.5)
        for i, page in enumerate(entries):
            own = page != PAGES
            color = theme.series[owners[row]] if own else theme.muted
            axes.add_patch(Rectangle((x + CELL * i, top), CELL, CELL, facecolor="none", edgecolor=theme.muted))
            text = str(page) if own else "d"
            axes.text(x + CELL * (i + 0.5), top + CELL / 2, text, ha="center", va="center", color=color, fontsize=7.5)


def draw_pool(axes: Axes, x: float, y: float, moment: Moment, theme: Theme) -> None:
    """The pages side by side: filled slots have their owner's colour."""
    owner, used = {}, {}
    for uid, row, written in moment.requests:
        for i, page in enumerate(moment.entries[row]):
            if page != PAGES:
                owner[page], used[page] = uid, min(max(written - i * SIZE, 0), SIZE)
    for page in range(PAGES + 1):
        left = x + page * (SIZE * SLOT + 0.1)
        color = theme.series[owner[page]] if page in owner else theme.muted
        for slot in range(used.get(page, 0)):
            axes.add_patch(Rectangle((left + slot * SLOT, y), SLOT, 0.3, facecolor=color, edgecolor=theme.paper))
        style = ":" if page == PAGES else "-"
        frame = Rectangle(
            (left, y), SIZE * SLOT, 0.3, facecolor="none", edgecolor=color, linestyle=style, linewidth=1.2
        )
        axes.add_patch(frame)
        name = f"{page} {NAMES[owner[page]]}" if page in owner else "dummy" if page == PAGES else str(page)
        axes.text(left + SIZE * SLOT / 2, y - 0.13, name, ha="center", va="center", fontsize=7.5, color=color)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(6.5, STEP * len(MOMENTS) + 0.1)
    moments = run()
    for i, (step, text) in enumerate(MOMENTS.items()):
        top = STEP * (len(MOMENTS) - i) - 0.05
        axes.text(0.1, top, text, ha="left", va="center", fontsize=9)
        draw_table(axes, 0.6, top - 0.17, moments[step], theme)
        draw_pool(axes, 1.65, top - 0.75, moments[step], theme)
    return figure
