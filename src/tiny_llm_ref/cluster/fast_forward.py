"""Many decode steps at once: how many a batch can run before anything changes, and what they leave behind.

Knows requests and counts of pages; nothing of time. The result is that of single steps, exactly.
"""

from bisect import bisect_right
from functools import partial

from ..serving.memory import Memory, pages_for
from ..serving.request import Batch
from ..serving.scheduler import Scheduler
from .cost import StepShape
from .trace_request import TOKEN


def steady(scheduler: Scheduler, shape: StepShape, waiting: int) -> bool:
    """Whether the batch that was just launched would be chosen again, while nobody ends, comes, or misses pages.

    shape: of that batch. waiting: requests that waited before it was chosen: where one was preempted, it may be let in
    again with the next batch.
    """
    return shape.n_decode == shape.n_sequences == len(scheduler.running) and waiting == len(scheduler.waiting)


def runs(memory: Memory, batch: Batch, left: int, spare: int) -> int:
    """How often a launched batch of decodes can run, this time included, up to `left` times.

    It gets at most `spare` more pages. The first run needs none: it was launched. Who waits cannot be admitted
    meanwhile: free pages become fewer, and rows no more.
    """
    if len(batch.steps) * pages_for(left, memory.page_size) <= spare:  # enough in any case
        return left
    return bisect_right(range(1, left + 1), spare, key=partial(more_pages, memory, batch))


def more_pages(memory: Memory, batch: Batch, steps: int) -> int:
    """Pages that this many runs of a launched batch need, over those that its requests hold."""
    return sum(
        pages_for(request.cached_len + steps - 1, memory.page_size) - memory.held(request)
        for request, *_ in batch.steps
    )


def advance(memory: Memory, batch: Batch, steps: int) -> None:
    """Commit a launched batch of decodes and launch it again, `steps` times. Nobody may end, and no page be missing."""
    page, tokens = memory.page_size, [TOKEN] * steps
    for request, *_ in batch.steps:
        filled = request.cached_len - 1
        request.cached_len += steps
        request.device_len += steps
        request.ids.extend(tokens)
        if filled // page != (request.cached_len - 1) // page:
            memory.grow(request, request.cached_len)
