"""One memory for 32,768 positions, filled with the same requests in the order of their arrival, four times, as bars.
Where the longest length of 2,048 positions is reserved for each, 16 requests fit, and most of the memory is reserved
and not used. With pages of 64 positions 100 fit, and a tenth is wasted in last pages; with pages of 16 there are 104
and a thin stripe of waste, with pages of 1 there are 107 and none.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme, canvas
from tiny_llm_ref.serving.memory import OutOfPagesError
from tiny_llm_ref.serving.paged_memory import PagedMemory
from tiny_llm_ref.serving.request import Request

POSITIONS, LONGEST = 32_768, 2_048
LEFT, WIDTH, HEIGHT, STEP = 1.75, 4.6, 0.34, 0.72


class Filled(NamedTuple):
    """How a memory stands when the next request does not fit: requests, and shares of all positions."""

    requests: int
    used: float
    wasted: float


def fill(page_size: int, reserve: bool) -> Filled:
    """Admit requests until one does not fit. Each is caught at a random moment of its life: some positions are used.

    reserve: give each the positions of the longest request, and not those that it uses.
    """
    rng = np.random.default_rng(7)
    memory = PagedMemory(POSITIONS, LONGEST, page_size, POSITIONS // page_size)
    requests = used = held = 0
    while True:
        length = int(np.clip(rng.lognormal(5.6, 0.8), 8, LONGEST - 1))
        request = Request(requests, [0], 1)
        memory.open(request, memory.match(request))
        try:
            memory.grow(request, LONGEST if reserve else length)
        except OutOfPagesError:
            break
        requests, used, held = requests + 1, used + length, held + memory.held(request) * page_size
    return Filled(requests, used / POSITIONS, (held - used) / POSITIONS)


def rows() -> list[tuple[str, Filled]]:
    """The four ways."""
    ways = [(f"pages of {size}", fill(size, reserve=False)) for size in (64, 16, 1)]
    return [("longest length\nreserved", fill(64, reserve=True)), *ways]


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(7.6, STEP * 4 + 0.75)
    for i, (name, filled) in enumerate(rows()):
        y = 0.55 + STEP * (3 - i)
        axes.text(LEFT - 0.12, y + HEIGHT / 2, name, ha="right", va="center", fontsize=9.5)
        axes.barh(y, filled.used * WIDTH, HEIGHT, LEFT, align="edge", color=theme.series[0])
        axes.barh(y, filled.wasted * WIDTH, HEIGHT, LEFT + filled.used * WIDTH, align="edge", color=theme.series[1])
        axes.barh(y, WIDTH, HEIGHT, LEFT, align="edge", facecolor="none", edgecolor=theme.muted)
        text = f"{filled.requests} requests"
        axes.text(LEFT + WIDTH + 0.12, y + HEIGHT / 2, text, ha="left", va="center", fontsize=9.5)
    for x, color, text in ((LEFT, theme.series[0], "used"), (LEFT + 1.0, theme.series[1], "reserved, not used")):
        axes.barh(0.12, 0.2, 0.2, x, align="edge", color=color)
        axes.text(x + 0.28, 0.22, text, ha="left", va="center", fontsize=9)
    return figure
