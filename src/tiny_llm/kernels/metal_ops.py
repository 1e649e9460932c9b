"""The table of operations whose products, norms, rotations and gates are Metal kernels."""

import mlx.core as mx

from ..model.norm import RMSNorm
from ..model.qwen3 import Qwen3Block
from ..model.rope import RoPE
from .metal import add, rms_norm, rope, swiglu
from .metal_matmul import MAX_TOKENS, quantized_matmul, quantized_matvec
from .packed import Packed, QuantizedOps


class MetalOps(QuantizedOps):
    """`QuantizedOps` step by step on Metal; attention itself stays in array operations. 4-bit weights only."""

    def linear(self, x: mx.array, w: Packed) -> mx.array:
        """A matrix-vector kernel for the few tokens of a decode step, tiles for the many of a prompt."""
        rows = x.size // x.shape[-1]
        return (quantized_matvec if rows <= MAX_TOKENS else quantized_matmul)(x, w.packed)

    def norm(self, x: mx.array, norm: RMSNorm) -> mx.array:
        """`rms_norm` on the last axis."""
        return rms_norm(x, norm.weight, norm.eps)

    def rope(self, x: mx.array, rotation: RoPE, offset: int) -> mx.array:
        """`rope` with the angles of `rotation`. x: (B, H, L, D), in any layout."""
        return rope(x, rotation.cos, rotation.sin, offset, rotation.traditional)

    def swiglu(self, gate: mx.array, up: mx.array) -> mx.array:
        """`swiglu` in one pass."""
        return swiglu(gate, up)

    def add(self, x: mx.array, y: mx.array) -> mx.array:
        """`add` to the residual stream."""
        return add(x, y)

    def qkv(self, layer: Qwen3Block, x: mx.array, offset: int) -> tuple[mx.array, mx.array, mx.array]:
        """As `QuantizedOps.qkv`, but heads are normalised before they are transposed.

        The norm then reads them as they lie, and the rotation, which takes any layout, writes the transposed ones.
        """
        attention = layer.attention
        x = self.norm(x, layer.input_norm)
        q, k, v = (
            mx.unflatten(self.linear(x, w), -1, (-1, attention.head_dim))
            for w in (attention.w_q, attention.w_k, attention.w_v)
        )
        q, k = self.norm(q, attention.q_norm), self.norm(k, attention.k_norm)
        q, k = (self.rope(heads.swapaxes(1, 2), attention.rope, offset) for heads in (q, k))
        return q, k, v.swapaxes(1, 2)
