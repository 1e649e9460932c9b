# This file is yours to edit. Read book/src/week1-07-sampling.md.
"""Choosing the next token from logits: penalty, temperature, top-k, top-p, min-p, then a seeded draw.

Every row of a batch has its own parameters and its own stream of random numbers, so that a request gets the same tokens
whatever it is batched with. Knows logits and token ids; nothing of models or text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import mlx.core as mx


@dataclass(frozen=True)
class SamplingParams:
    """How to choose tokens for one request.

    temperature: 0 is greedy. top_k: 0 is off. top_p: 1 is off. min_p: 0 is off. repetition_penalty: 1 is off.
    Raises ValueError for a value out of range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        limits = {
            "temperature": (self.temperature >= 0, "at least 0"),
            "top_k": (self.top_k >= 0, "at least 0"),
            "top_p": (0 < self.top_p <= 1, "above 0 and at most 1"),
            "min_p": (0 <= self.min_p <= 1, "between 0 and 1"),
            "repetition_penalty": (self.repetition_penalty > 0, "above 0"),
        }
        for name, (holds, limit) in limits.items():
            if not holds:
                raise ValueError(f"{name} {getattr(self, name)} must be {limit}")


def log_probabilities(logits: mx.array) -> mx.array:
    """The logarithm of softmax(logits), without taking the logarithm of a number that may have become 0.

    logits: (..., V), as the model gave them: before penalty, temperature and filters. Returns (..., V) float32.
    """
    raise NotImplementedError("Week 1 Day 7 Task 1: log_probabilities - see book/src/week1-07-sampling.md#task-1")


def apply_repetition_penalty(
    logits: mx.array, history: Sequence[Sequence[int]], penalties: Sequence[float]
) -> mx.array:
    """Make tokens that a row has already seen less likely (Keskar et al., 2019).

    logits: (B, V). history: the tokens of each row, prompt and output; how often one occurs does not matter.
    penalties: one per row. A seen token's logit is divided by the penalty where positive, multiplied where negative.
    Computed in float32, so that a penalty near 1 is not lost; returns (B, V) in the dtype of `logits`.
    """
    raise NotImplementedError(
        "Week 1 Day 7 Task 2: apply_repetition_penalty - see book/src/week1-07-sampling.md#task-2"
    )


def filter_logits(
    logits: mx.array,
    temperature: Sequence[float],
    top_k: Sequence[int],
    top_p: Sequence[float],
    min_p: Sequence[float],
) -> mx.array:
    """Scale the logits and hide unlikely tokens, each row by its own parameters.

    logits: (B, V). The other arguments hold one value per row; the steps follow one another in this order:
    1. temperature divides the logits; 0 leaves only the best token (the one with the lowest id among equals);
    2. top_k keeps the k best tokens (0: all; lower ids first among equals);
    3. top_p keeps the fewest best tokens whose probabilities, among those left, add up to p or more (1: all);
    4. min_p keeps the tokens at least `min_p` times as likely as the best one (0: all).
    Returns (B, V) float32: the scaled logits, -inf for hidden tokens. At least one token per row stays.
    """
    raise NotImplementedError("Week 1 Day 7 Task 3: filter_logits - see book/src/week1-07-sampling.md#task-3")


class Sampler:
    """Chooses the next token of every row, by the row's own parameters. params: one per row."""

    def __init__(self, params: Sequence[SamplingParams]):
        self.params = list(params)
        self.keys = [mx.random.key(p.seed) for p in self.params]

    def __call__(self, logits: mx.array, history: Sequence[Sequence[int]]) -> mx.array:
        """Penalise, filter, draw.

        logits: (B, V), as the model gave them. history: the tokens of each row, prompt and output.
        Returns the chosen tokens (B,). A row's tokens depend on its logits, history and seed alone.
        """
        raise NotImplementedError("Week 1 Day 7 Task 4: Sampler.__call__ - see book/src/week1-07-sampling.md#task-4")
