# This file is yours to edit. Read book/src/week1-05-model.md.
"""The embedding table: from token ids to vectors, and, where it is tied, back to scores over the vocabulary."""

import mlx.core as mx


class Embedding:
    """One row per token of the vocabulary. weight: (V, E)."""

    def __init__(self, weight: mx.array):
        self.weight = weight

    def __call__(self, tokens: mx.array) -> mx.array:
        """tokens: (...) integers in 0 .. V - 1. Returns (..., E): row `tokens[...]` of the table."""
        raise NotImplementedError("Week 1 Day 5 Task 1: Embedding.__call__ - see book/src/week1-05-model.md#task-1")

    def as_linear(self, x: mx.array) -> mx.array:
        """The table used as output head: how well `x` matches each row.

        x: (..., E). Returns (..., V) logits in the dtype of `x`.
        """
        raise NotImplementedError("Week 1 Day 5 Task 1: Embedding.as_linear - see book/src/week1-05-model.md#task-1")
