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
        wide = x.astype(mx.float32)
        mean_square = mx.mean(wide * wide, axis=-1, keepdims=True)
        return (wide * mx.rsqrt(mean_square + self.eps) * self.weight).astype(x.dtype)
