"""Pages over the batches of two schedulers on the same eight requests, whose answers are much shorter than their
max_tokens, in a memory of 32 pages. Left, worst-case reservation: never more than 15 pages are held, as many again are
promised, what is left is too small for the next request, and 115 batches are needed. Right, admission by the first
chunk: nearly all pages are held, five triangles mark batches before which a request was preempted, and the work is done
after 48 batches.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.serving.chunked import ChunkedScheduler
from tiny_llm_ref.serving.memory import RowMemory
from tiny_llm_ref.serving.mixed import MixedScheduler
from tiny_llm_ref.serving.prefill import worst_case
from tiny_llm_ref.serving.request import Request, Sampled
from tiny_llm_ref.serving.scheduler import Scheduler

PAGES, PAGE_SIZE, ROWS = 32, 4, 8
SIZES = [(13, 18), (22, 25), (9, 14), (30, 20), (5, 28), (18, 16), (11, 24), (26, 12)]  # prompts and answers
MAX_TOKENS, STOP = 48, 1
NAMES = {ChunkedScheduler: "worst case reserved", MixedScheduler: "first chunk, then preemption"}


def pages(kind: type[Scheduler]) -> tuple[list[int], list[int], list[int]]:
    """For each batch the pages held, and those promised beside them; and the batches before which one was preempted."""
    memory = RowMemory(ROWS, 128, PAGE_SIZE, PAGES)
    scheduler = kind(memory, 32)
    for uid, (prompt, _) in enumerate(SIZES):
        scheduler.add(Request(uid, [0] * prompt, MAX_TOKENS, stop_tokens=frozenset({STOP})))
    held, promised, preempted, rows = [], [], [], 0
    while scheduler.requests:
        batch = scheduler.next_batch()
        admitted = [request for request in scheduler.requests.values() if request.row is not None]
        if len(admitted) < rows:
            preempted.append(len(held))
        held.append(PAGES - memory.available)
        promised.append(sum(worst_case(request, PAGE_SIZE) for request in admitted) - held[-1])
        answers = [len(step.request.ids) + 1 - step.request.prompt_len for step in batch.sampling]
        ends = [answer == SIZES[step.request.uid][1] for answer, step in zip(answers, batch.sampling, strict=True)]
        scheduler.commit(batch, [Sampled(STOP if end else 0) for end in ends])
        rows = sum(request.row is not None for request in scheduler.requests.values())
    return held, promised, preempted


def draw_pages(axes: Axes, kind: type[Scheduler], theme: Theme) -> None:
    """Held pages, promises on top of them where these count, and the batches with a preemption."""
    held, promised, preempted = pages(kind)
    batches = range(len(held))
    axes.fill_between(batches, held, step="post", color=theme.series[0], linewidth=0, label="held")
    if kind is ChunkedScheduler:
        both = [h + p for h, p in zip(held, promised, strict=True)]
        axes.fill_between(batches, held, both, step="post", color=theme.series[1], alpha=0.5, linewidth=0,
                          label="promised")  # fmt: skip
    axes.plot(preempted, [PAGES + 1.2] * len(preempted), "v", color=theme.series[4], label="preempted")
    axes.axhline(PAGES, color=theme.muted, linewidth=1, linestyle=":")
    axes.set(xlabel="batch", xlim=(0, 120), ylim=(0, 42), title=NAMES[kind])
    axes.legend(fontsize=9, loc="upper right", ncols=2)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, kind in ((left, ChunkedScheduler), (right, MixedScheduler)):
        draw_pages(axes, kind, theme)
    left.set_ylabel(f"pages, of {PAGES}")
    return figure
