"""The batches of two schedulers, run on the same four requests with eight tokens per batch. Each line is a batch, each
cell a token, coloured by its request; a dark frame marks a cell that chooses a token. Left, chunks with prefill first:
three batches of eight, eight and five prompt tokens, then decode batches of one cell for each request. Right, mixed
batches: the first is the same, but from the second on each request that has its prompt computed has a cell in every
batch, and chunks fill the rest.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme
from tiny_llm_ref.serving.chunked import ChunkedScheduler
from tiny_llm_ref.serving.memory import RowMemory
from tiny_llm_ref.serving.mixed import MixedScheduler
from tiny_llm_ref.serving.request import Request, Sampled
from tiny_llm_ref.serving.scheduler import Scheduler

PROMPTS, ANSWERS, BUDGET, SHOWN = (3, 12, 2, 4), (6, 3, 4, 3), 8, 6
NAMES = {ChunkedScheduler: "prefill first", MixedScheduler: "mixed batches"}
Cells = list[tuple[int, bool]]


def batches(kind: type[Scheduler]) -> list[Cells]:
    """Each batch as its cells: whose token it is, and whether it chooses one."""
    scheduler = kind(RowMemory(4, 32), BUDGET)
    for uid, (prompt, answer) in enumerate(zip(PROMPTS, ANSWERS, strict=True)):
        scheduler.add(Request(uid, [0] * prompt, answer))
    found = []
    while scheduler.requests:
        batch = scheduler.next_batch()
        found.append(
            [(s.request.uid, s.samples and i == s.end - 1) for s in batch.steps for i in range(s.start, s.end)]
        )
        scheduler.commit(batch, [Sampled(0)] * len(batch.sampling))
    return found[:SHOWN]


def draw_batches(axes: Axes, found: list[Cells], theme: Theme) -> None:
    """One line of cells per batch, the first on top."""
    for line, cells in enumerate(found):
        axes.text(-0.4, -line, f"{line + 1}", ha="right", va="center", color=theme.muted, fontsize=9)
        for x, (uid, chooses) in enumerate(cells):
            cell = Rectangle((x + 0.06, -line - 0.4), 0.88, 0.8)
            edge = theme.ink if chooses else theme.series[uid]
            cell.set(facecolor=theme.series[uid], edgecolor=edge, linewidth=2.4 if chooses else 0)
            axes.add_patch(cell)
            axes.text(x + 0.5, -line, "ABCD"[uid], ha="center", va="center", color=theme.paper, fontsize=9)
    axes.set(xlim=(-1, BUDGET + 0.2), ylim=(-SHOWN + 0.4, 0.6))
    axes.axis("off")


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    for axes, (kind, name) in zip(figure.subplots(1, 2), NAMES.items(), strict=True):
        draw_batches(axes, batches(kind), theme)
        axes.set_title(name, fontsize=11)
    return figure
