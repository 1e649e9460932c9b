# This file is yours to edit. Read book/src/week1-01-attention.md.
"""The two operations everything else is made of: softmax and the linear layer.

Knows arrays only: no heads, no layers, no weights of its own.
"""

import mlx.core as mx


def softmax(x: mx.array, axis: int = -1) -> mx.array:
    """Turn scores into weights that are positive and sum to 1 along `axis`, for scores of any size.

        softmax(x)_i = exp(x_i - max(x)) / sum_j exp(x_j - max(x))

    x: any shape, float16, bfloat16 or float32. The sums are taken in float32.
    Returns the shape and dtype of `x`. A score of -inf gets weight 0, as long as its row holds a finite score.
    """
    raise NotImplementedError("Week 1 Day 1 Task 1: softmax - see book/src/week1-01-attention.md#task-1")


def linear(x: mx.array, w: mx.array, bias: mx.array | None = None) -> mx.array:
    """Apply a linear layer: y = x W^T + b.

    x: (..., I). w: (O, I), one row per output feature, as checkpoints store it. bias: (O,) or None.
    Returns (..., O) in the dtype of `x` where all arguments share it.
    """
    raise NotImplementedError("Week 1 Day 1 Task 2: linear - see book/src/week1-01-attention.md#task-2")
