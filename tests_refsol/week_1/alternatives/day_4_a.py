# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 4 in another style: vector norms and logarithms, NumPy in float64 for the norm, one product for gate and up."""

# file: model/norm.py
import numpy as np


def _call(self: RMSNorm, x: mx.array) -> mx.array:
    """Float64 on the CPU, then back."""
    wide = np.array(x.astype(mx.float32), dtype=np.float64)
    weight = np.array(self.weight.astype(mx.float32), dtype=np.float64)
    root = np.sqrt(np.einsum("...e,...e->...", wide, wide) / x.shape[-1] + self.eps)
    return mx.array((wide / root[..., None] * weight).astype(np.float32)).astype(x.dtype)


RMSNorm.__call__ = _call


# file: model/mlp.py
def silu(x: mx.array) -> mx.array:
    """x exp(log sigmoid(x)), with the stable logarithm."""
    wide = x.astype(mx.float32)
    return (wide * mx.exp(-mx.logaddexp(mx.zeros_like(wide), -wide))).astype(x.dtype)


class SwiGLU(SwiGLU):
    """Gate and up as one matrix, made once."""

    def __init__(self, w_gate: mx.array, w_up: mx.array, w_down: mx.array):
        super().__init__(w_gate, w_up, w_down)
        self.both = mx.concatenate([w_gate, w_up], axis=0).T

    def __call__(self, x: mx.array) -> mx.array:
        """One wide product, split in two."""
        gate, up = mx.split(x @ self.both, 2, axis=-1)
        return (silu(gate) * up) @ self.w_down.T
