"""Week 3's schedulers in a simulated deployment: which one a pool names, and how they live with prompts from elsewhere.

A received prompt without a row locks pages that it shares: it must not keep everybody from running.
"""

from ..serving.chunked import ChunkedScheduler
from ..serving.memory import Memory
from ..serving.mixed import MixedScheduler
from ..serving.request import Batch
from ..serving.scheduler import Scheduler
from .deployment import Pool
from .held_memory import HeldMemory


class Relenting(Scheduler):
    """Where nothing can run, received prompts give up what they lock, the newest first."""

    def next_batch(self) -> Batch | None:
        """As before."""
        batch = super().next_batch()
        while batch is None and self.waiting and self.memory.relent():
            batch = super().next_batch()
        return batch


class HeldMixedScheduler(Relenting, MixedScheduler):
    """A `MixedScheduler` beside received prompts."""


class HeldChunkedScheduler(Relenting, ChunkedScheduler):
    """A `ChunkedScheduler` beside received prompts."""


def scheduler_for(pool: Pool, memory: Memory) -> Scheduler:
    """The scheduler that a pool names."""
    holds = isinstance(memory, HeldMemory)
    if pool.scheduler == "mixed":
        mixed = HeldMixedScheduler if holds else MixedScheduler
        return mixed(memory, pool.max_num_batched_tokens, pool.chunk)
    chunked = HeldChunkedScheduler if holds else ChunkedScheduler
    return (chunked if pool.scheduler == "chunked" else Scheduler)(memory, pool.max_num_batched_tokens)
