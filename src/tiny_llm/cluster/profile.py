# This file is yours to edit. Read book/src/week4-07-planner.md.
"""What is known of engines in advance: how long a prompt takes alone, and a decode step by context and batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .cost import StepCost, StepShape
from .window import SECOND


# ANCHOR: profile
@dataclass(frozen=True)
class Profile:
    """Measured on one prefill and one decode engine. Between the points it is
    linear, beyond them constant.

    lengths, ttft: prompts of so many tokens, in rising order, take so many ns.
    contexts, batches, itl: a decode step of batches[j] requests with contexts[i]
    tokens each takes itl[i][j] ns. kv_tokens: that fit into a decode engine.
    """

    lengths: Sequence[int]
    ttft: Sequence[float]
    contexts: Sequence[int]
    batches: Sequence[int]
    itl: Sequence[Sequence[float]]
    kv_tokens: int
    prefill_gpus: int = 1
    decode_gpus: int = 1
    # ANCHOR_END: profile

    def ttft_at(self, length: float) -> float:
        """Ns of a prompt, alone on an engine."""
        return float(np.interp(length, self.lengths, self.ttft))

    def prefill_rate(self, length: float) -> float:
        """Prompt tokens per second and GPU, with prompts of this length."""
        return length * SECOND / self.ttft_at(length) / self.prefill_gpus

    def itl_at(self, context: float, batch: float) -> float:
        """Ns of a decode step of `batch` requests with `context` tokens each."""
        return float(np.interp(context, self.contexts, [np.interp(batch, self.batches, row) for row in self.itl]))

    def decode_rate(self, context: float, itl: float) -> float:
        """The most tokens per second and GPU at this context, over the batches whose step takes at most `itl` ns.

        Only batches that fit into the KV memory count. If none is left, what the smallest batch reaches: no number of
        workers would meet the target, and more of them come nearest.
        """
        raise NotImplementedError("Week 4 Day 7 Task 1: Profile.decode_rate - see book/src/week4-07-planner.md#task-1")


def measure(
    prefill: StepCost,
    decode: StepCost,
    kv_tokens: int,
    lengths: Sequence[int] = (128, 512, 1024, 2048, 4096, 8192, 16_384, 32_768),
    contexts: Sequence[int] = (256, 1024, 4096, 16_384, 65_536),
    batches: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256),
    gpus: tuple[int, int] = (1, 1),
) -> Profile:
    """The profile of engines whose steps cost this much. gpus: of a prefill and of a decode engine."""
    ttft = [prefill.step_time(StepShape(n, n * (n + 1) // 2, n_sequences=1)) for n in lengths]
    itl = [[decode.step_time(StepShape(0, 0, n, n * context, n)) for n in batches] for context in contexts]
    return Profile(lengths, ttft, contexts, batches, itl, kv_tokens, *gpus)
