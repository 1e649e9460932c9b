"""The feed-forward half of a block: a gated MLP (Shazeer, 2020)."""

import mlx.core as mx

from .basics import linear


def silu(x: mx.array) -> mx.array:
    """silu(x) = x * sigmoid(x), element by element (Hendrycks and Gimpel, 2016).

    Returns the shape and dtype of `x`; finite for every finite `x`.
    """
    return x * mx.sigmoid(x)


class SwiGLU:
    """y = W_down (silu(W_gate x) * W_up x).

    w_gate, w_up: (I, E). w_down: (E, I). I is the intermediate size.
    """

    def __init__(self, w_gate: mx.array, w_up: mx.array, w_down: mx.array):
        self.w_gate, self.w_up, self.w_down = w_gate, w_up, w_down

    def __call__(self, x: mx.array) -> mx.array:
        """x: (..., E). Returns (..., E) in the dtype of `x`, where the weights share it."""
        return linear(silu(linear(x, self.w_gate)) * linear(x, self.w_up), self.w_down)
