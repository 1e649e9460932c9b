# This file is yours to edit. Read book/src/week1-04-norm-mlp.md.
"""RMSNorm: scale a vector to unit root mean square, then by learnt weights (Zhang and Sennrich, 2019)."""

import mlx.core as mx


class RMSNorm:
    """y = x / sqrt(mean(x^2) + eps) * weight, over the last axis.

    weight: (E,). eps: keeps the root away from zero; it stands inside the root.
    """

    def __init__(self, weight: mx.array, eps: float = 1e-6):
        self.weight = weight
        self.eps = eps

    def __call__(self, x: mx.array) -> mx.array:
        """x: (..., E). Returns the shape and dtype of `x`; the mean is taken in float32."""
        raise NotImplementedError("Week 1 Day 4 Task 1: RMSNorm.__call__ - see book/src/week1-04-norm-mlp.md#task-1")
