"""Tensor parallelism over a step-time model of one card: each layer ends twice with a sum over all cards."""

import numpy as np

from .cost import Formula, Nanoseconds, StepShape
from .roofline import all_reduce


class Sharded(Formula):
    """A `StepCost` of `cards` cards. cost: of one card's share of the work.

    layers: of the model. token_bytes: of one token's hidden state. latency: seconds of each message between cards;
    bandwidth: bytes/s. Each layer sums what attention, and what the MLP gave, over the cards (Megatron-LM).
    """

    def __init__(self, cost: Formula, layers: int, token_bytes: int, cards: int, latency: float, bandwidth: float):
        self.cost, self.layers, self.token_bytes = cost, layers, token_bytes
        self.cards, self.latency, self.bandwidth = cards, latency, bandwidth

    def time(self, shape: StepShape) -> Nanoseconds:
        """Nanoseconds."""
        size = (shape.prefill_tokens + shape.n_decode) * self.token_bytes
        sums = 2 * self.layers * all_reduce(size, self.cards, self.latency, self.bandwidth)
        return np.add(self.cost.time(shape), sums * 1e9)
