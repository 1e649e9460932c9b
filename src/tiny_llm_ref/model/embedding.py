"""The embedding table: from token ids to vectors, and, where it is tied, back to scores over the vocabulary."""

import mlx.core as mx

from .basics import linear


class Embedding:
    """One row per token of the vocabulary. weight: (V, E)."""

    def __init__(self, weight: mx.array):
        self.weight = weight

    def __call__(self, tokens: mx.array) -> mx.array:
        """tokens: (...) integers in 0 .. V - 1. Returns (..., E): row `tokens[...]` of the table."""
        return self.weight[tokens]

    def as_linear(self, x: mx.array) -> mx.array:
        """The table used as output head: how well `x` matches each row.

        x: (..., E). Returns (..., V) logits in the dtype of `x`.
        """
        return linear(x, self.weight)
