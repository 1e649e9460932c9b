# This file is yours to edit. Read book/src/week4-01-virtual-time.md.
"""Many decode steps at once: how many a batch can run before anything changes, and what they leave behind.

Knows requests and counts of pages; nothing of time. The result is that of single steps, exactly.
"""

from ..serving.memory import Memory
from ..serving.request import Batch
from ..serving.scheduler import Scheduler
from .cost import StepShape


def steady(scheduler: Scheduler, shape: StepShape, waiting: int) -> bool:
    """Whether the batch that was just launched would be chosen again, while nobody ends, comes, or misses pages.

    shape: of that batch. waiting: requests that waited before it was chosen: where one was preempted, it may be let in
    again with the next batch.
    """
    raise NotImplementedError("Week 4 Day 1 Task 5: steady - see book/src/week4-01-virtual-time.md#task-5")


def runs(memory: Memory, batch: Batch, left: int, spare: int) -> int:
    """How often a launched batch of decodes can run, this time included, up to `left` times.

    It gets at most `spare` more pages. The first run needs none: it was launched. Who waits cannot be admitted
    meanwhile: free pages become fewer, and rows no more.
    """
    raise NotImplementedError("Week 4 Day 1 Task 5: runs - see book/src/week4-01-virtual-time.md#task-5")


def more_pages(memory: Memory, batch: Batch, steps: int) -> int:
    """Pages that this many runs of a launched batch need, over those that its requests hold."""
    raise NotImplementedError("Week 4 Day 1 Task 5: more_pages - see book/src/week4-01-virtual-time.md#task-5")


def advance(memory: Memory, batch: Batch, steps: int) -> None:
    """Commit a launched batch of decodes and launch it again, `steps` times. Nobody may end, and no page be missing."""
    raise NotImplementedError("Week 4 Day 1 Task 5: advance - see book/src/week4-01-virtual-time.md#task-5")
