"""Six moments of the radix tree in one run, with pages of two tokens and a pool of nine. A's three pages are one
locked node. A has ended: its answer hangs behind it, in a second, and nothing is locked. B begins with the same two
pages: the first node is split behind them, and the front is locked. B has ended: two branches follow the front. C is
A's next turn, and finds four pages. It needs three more, and two are free: the last page of B's branch, which nobody
asked for longest, is gone. C has ended: for its answer one more page of that branch went, and the chat is one path.
"""

from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas
from tiny_llm_ref.cache.radix import RadixTree
from tiny_llm_ref.serving.chunked import ChunkedScheduler
from tiny_llm_ref.serving.prefix_memory import PrefixMemory
from tiny_llm_ref.serving.request import Batch, Request, Sampled

PROMPTS = [
    "You are kind . Hi !",
    "You are kind . Who are you ?",
    "You are kind . Hi ! Hello there ! How are you ?",
]
ANSWERS = ["Hello there !", "A model .", "Fine , thanks"]
TITLES = [
    ("A has run its prompt, and is answering", "A has ended: its answer is cached too, nothing is locked"),
    ("B begins like A: the node is split, its front is locked", "B has ended: two branches"),
    (
        "C, A's next turn, finds 4 pages; for its third new one B's last goes",
        "C has ended: one more of B's went for its answer",
    ),
]
WORDS = sorted({word for text in PROMPTS + ANSWERS for word in text.split()})
CELL, HEIGHT, GAP, LINE = 0.79, 0.36, 0.13, 0.46


class Part(NamedTuple):
    """A node: its first page's number from the root, the line it is drawn in, and the line of its parent."""

    depth: int
    line: int
    parent: int
    level: int
    texts: list[str]
    pages: list[int]
    locked: bool


class Moment(NamedTuple):
    """What had happened, the tree then, and the pages that were free."""

    title: str
    parts: list[Part]
    free: int


def parts_of(tree: RadixTree) -> list[Part]:
    """The nodes of a tree, each branch in a line of its own; the first child goes on in its parent's line."""
    parts, line = [], -1
    stack = [(child, 0, 0, 0) for child in reversed(tree.root.children.values())]
    while stack:
        node, depth, parent, level = stack.pop()
        first = level > 0 and next(iter(node.parent.children.values())) is node
        line = parent if first else line + 1
        texts = [" ".join(WORDS[i] for i in key) for key in node.keys]
        parts.append(Part(depth, line, parent if level else line, level, texts, list(node.pages), node.ref_count > 0))
        below = [(child, depth + len(node.keys), line, level + 1) for child in node.children.values()]
        stack += reversed(below)
    return parts


def commit(scheduler: ChunkedScheduler, batch: Batch) -> None:
    """Read a batch. What it chooses stands above."""
    words = [ANSWERS[r.uid].split()[len(r.ids) - r.prompt_len] for r, *_ in batch.sampling]
    scheduler.commit(batch, [Sampled(WORDS.index(word)) for word in words])


def run() -> list[Moment]:
    """The moments of a run of the reference's scheduler over a prefix memory."""
    memory = PrefixMemory(rows=2, max_len=18, page_size=2, pages=9)
    moments = []

    def note(title: str) -> None:
        moments.append(Moment(title, parts_of(memory.tree), memory.allocator.available))

    def begin(uid: int) -> ChunkedScheduler:
        scheduler = ChunkedScheduler(memory)
        scheduler.add(Request(uid, [WORDS.index(word) for word in PROMPTS[uid].split()], 3))
        return scheduler

    for uid, (first, last) in enumerate(TITLES):
        scheduler = begin(uid)
        batch = scheduler.next_batch()
        if uid > 0:  # what a match does shows at once; what A shares shows when its prompt was read
            note(first)
        commit(scheduler, batch)
        if uid == 0:
            note(first)
        while scheduler.requests:
            commit(scheduler, scheduler.next_batch())
        note(last)
    return moments


def draw_part(axes: Axes, part: Part, top: float, theme: Theme) -> None:
    """A node as a frame around its pages."""
    left = 0.15 + part.depth * CELL + part.level * GAP
    y = top - part.line * LINE
    color = theme.series[1] if part.locked else theme.series[0]
    width = CELL * len(part.pages)
    frame = Rectangle((left, y), width, HEIGHT, facecolor=theme.soft, edgecolor=color, linewidth=1.8)
    frame.set_linestyle("-" if part.locked else ":")
    axes.add_patch(frame)
    for i, (text, page) in enumerate(zip(part.texts, part.pages, strict=True)):
        x = left + CELL * (i + 0.5)
        axes.text(x, y + 0.235, text, ha="center", va="center", fontsize=7.5)
        axes.text(x, y + 0.09, f"page {page}", ha="center", va="center", fontsize=6, color=theme.muted)
    if part.level:
        bend, middle, above = left - GAP / 2, y + HEIGHT / 2, top - part.parent * LINE + HEIGHT / 2
        axes.plot([left - GAP, bend, bend, left], [above, above, middle, middle], color=theme.muted, linewidth=1)


def draw(theme: Theme) -> Figure:
    """The figure."""
    moments = run()
    heights = [0.42 + LINE * (1 + max(part.line for part in moment.parts)) for moment in moments]
    figure, axes = canvas(6.9, sum(heights) + 0.35)
    top = sum(heights) + 0.3
    for moment, height in zip(moments, heights, strict=True):
        axes.text(0.15, top - 0.12, moment.title, va="center", fontsize=9)
        axes.text(
            6.75, top - 0.12, f"free pages: {moment.free}", va="center", ha="right", fontsize=8, color=theme.muted
        )
        for part in moment.parts:
            draw_part(axes, part, top - 0.24 - HEIGHT, theme)
        top -= height
    axes.text(0.15, 0.14, "solid: locked", color=theme.series[1], fontsize=9, va="center")
    axes.text(1.35, 0.14, "dotted: can be evicted", color=theme.series[0], fontsize=9, va="center")
    return figure
