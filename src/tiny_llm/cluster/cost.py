# This file is yours to edit. Read book/src/week4-01-virtual-time.md.
"""What an engine step costs: time as a function of the shape of its batch, behind one interface.

Knows counts of tokens. Inside, times are float nanoseconds; outside, integers. A formula takes a number or an array of
numbers as the context of its decodes, with the same result to the bit: so many steps can be had at once.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..serving.request import Step

MS = 1e6
"""Nanoseconds of a millisecond."""
Nanoseconds = float | np.ndarray


# ANCHOR: shape
class StepShape(NamedTuple):
    """What the time of a batch depends on.

    prefill_tokens: of prompts. prefill_context: positions that these attend to,
    summed, each token's own included: L (L + 1) / 2 for a whole prompt.
    n_decode: requests that choose their next token. decode_context: positions
    that those attend to, summed. n_sequences: requests in the batch.
    """

    prefill_tokens: int = 0
    prefill_context: int = 0
    n_decode: int = 0
    decode_context: int = 0
    n_sequences: int = 0
    # ANCHOR_END: shape


# ANCHOR: is_decode
def is_decode(step: Step) -> bool:
    """Whether a step runs the newest token of an answer, to choose the next."""
    return step.samples and step.end - step.start == 1 and step.start >= step.request.prompt_len
    # ANCHOR_END: is_decode


def shape_of(steps: Sequence[Step]) -> StepShape:
    """The shape of a batch. What is computed again after preemption counts as a prompt."""
    raise NotImplementedError("Week 4 Day 1 Task 3: shape_of - see book/src/week4-01-virtual-time.md#task-3")


class StepCost(Protocol):
    """How long steps take."""

    def step_time(self, shape: StepShape) -> int:
        """Nanoseconds of one step."""
        ...

    def step_times(self, shape: StepShape, steps: int) -> np.ndarray:
        """(steps,) int64, nanoseconds of each of the next steps of a batch of decodes, the first of this shape.

        Each equals `step_time` of its own shape exactly.
        """
        ...


class Formula:
    """A `StepCost` of a formula: subclasses write `time`."""

    def time(self, shape: StepShape) -> Nanoseconds:
        """Nanoseconds, not rounded; an array where the shape's decode_context is one."""
        raise NotImplementedError

    def step_time(self, shape: StepShape) -> int:
        """Nanoseconds, rounded."""
        return int(self.time(shape) + 0.5)

    # ANCHOR: step_times
    def step_times(self, shape: StepShape, steps: int) -> np.ndarray:
        """(steps,) int64: each step's context is longer by a token for each request."""
        contexts = shape.decode_context + shape.n_decode * np.arange(steps)
        times = self.time(shape._replace(decode_context=contexts)) + 0.5
        if isinstance(times, np.ndarray):
            return times.astype(np.int64)
        return np.full(steps, int(times))
        # ANCHOR_END: step_times


class Linear(Formula):
    """DistServe's form (Zhong et al., 2024), in ms: what prompts cost, and what decodes do, with a term for either.

    prefill: a, b, c of a + b * sum(L) + c * sum(L^2). decode: a, b, c of a + b * sum(context) + c * batch; for at least
    `large` decodes those of `decode_large`. Chunks of a prompt have the same sums as the whole.
    """

    def __init__(
        self,
        prefill: tuple[float, float, float],
        decode: tuple[float, float, float],
        large: int | None = None,
        decode_large: tuple[float, float, float] = (0, 0, 0),
    ):
        self.prefill = prefill
        self.decode = decode
        self.large = large
        self.decode_large = decode_large

    def time(self, shape: StepShape) -> Nanoseconds:
        """Nanoseconds."""
        raise NotImplementedError("Week 4 Day 1 Task 3: Linear.time - see book/src/week4-01-virtual-time.md#task-3")


OPT_13B_A100 = Linear((18.10, 0.10191, 7.12e-6), (19.93, 6.27e-4, 0.0385), 95, (7.17, 5.80e-4, 0.158))
"""OPT-13B on one A100 (DistServe)."""


class Mocker(Formula):
    """The polynomials of Dynamo's mocker: new tokens of prompts, and the share of the KV memory that decodes use.

    capacity: tokens that fit into the KV memory.
    """

    def __init__(self, capacity: int = 16_384 * 64):
        self.capacity = capacity

    def time(self, shape: StepShape) -> Nanoseconds:
        """Nanoseconds."""
        raise NotImplementedError("Week 4 Day 1 Task 3: Mocker.time - see book/src/week4-01-virtual-time.md#task-3")
