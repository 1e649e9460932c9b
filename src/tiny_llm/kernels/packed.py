# This file is yours to edit. Read book/src/week2-03-quantise.md.
"""A model on packed weights: layers that hold a `PackedMatrix`, and the `Ops` that runs a block with them.

Knows the public parts of the Week 1 model; the packed format is `quantize`'s business.
"""

import mlx.core as mx

from ..model.mlp import silu
from ..model.norm import RMSNorm
from ..model.qwen3 import Ops, Qwen3, Qwen3Block
from ..model.rope import RoPE
from .quantize import PackedMatrix


class QuantizedLinear:
    """A linear layer without bias, whose weight (O, I) stays packed."""

    def __init__(self, packed: PackedMatrix):
        self.packed = packed

    def __call__(self, x: mx.array) -> mx.array:
        """x: (..., I). Returns (..., O) in the dtype of `x`: `linear` with the weight dequantised to that dtype."""
        raise NotImplementedError(
            "Week 2 Day 3 Task 3: QuantizedLinear.__call__ - see book/src/week2-03-quantise.md#task-3"
        )


class QuantizedEmbedding:
    """An embedding table (V, E) that stays packed.

    dtype: of the vectors it returns; None means that of the scales.
    """

    def __init__(self, packed: PackedMatrix, dtype: mx.Dtype | None = None):
        self.packed = packed
        self.dtype = dtype or packed.scales.dtype

    def __call__(self, tokens: mx.array) -> mx.array:
        """Look up rows, dequantising those alone.

        tokens: (...) integers in 0 .. V - 1. Returns (..., E) in `self.dtype`.
        """
        raise NotImplementedError(
            "Week 2 Day 3 Task 3: QuantizedEmbedding.__call__ - see book/src/week2-03-quantise.md#task-3"
        )

    def as_linear(self, x: mx.array) -> mx.array:
        """The table used as output head. x: (..., E). Returns (..., V) logits in the dtype of `x`."""
        raise NotImplementedError(
            "Week 2 Day 3 Task 3: QuantizedEmbedding.as_linear - see book/src/week2-03-quantise.md#task-3"
        )


Packed = QuantizedLinear | QuantizedEmbedding
"""What `QuantizedOps.linear` multiplies with. Both have `.packed`."""


# ANCHOR: ops
class QuantizedOps(Ops):
    """Runs a model whose matrices are `QuantizedLinear` and `QuantizedEmbedding` objects.

    A block is spelled out in steps that a faster table may override one by one.
    """

    def linear(self, x: mx.array, w: Packed) -> mx.array:
        """x: (..., I). Returns (..., O) in the dtype of `x`. An embedding acts as output head."""
        return w.as_linear(x) if isinstance(w, QuantizedEmbedding) else w(x)

    def norm(self, x: mx.array, norm: RMSNorm) -> mx.array:
        """Normalise the last axis of `x`."""
        return norm(x)

    def rope(self, x: mx.array, rope: RoPE, offset: int) -> mx.array:
        """Rotate x: (B, H, L, D), whose first token stands at position `offset`."""
        return rope(x, offset)

    def swiglu(self, gate: mx.array, up: mx.array) -> mx.array:
        """silu(gate) * up."""
        return silu(gate) * up

    def add(self, x: mx.array, y: mx.array) -> mx.array:
        """Add `y` to the residual stream `x`."""
        return x + y

    def embedding(self, weight: QuantizedEmbedding) -> QuantizedEmbedding:
        """The packed table as it is."""
        return weight

    def qkv(self, layer: Qwen3Block, x: mx.array, offset: int) -> tuple[mx.array, mx.array, mx.array]:
        """Input norm, projections, heads, q/k norm, rope. x: (B, L, E). Returns q, k, v: (B, heads, L, D)."""
        attention = layer.attention
        x = self.norm(x, layer.input_norm)
        q, k, v = (
            mx.unflatten(self.linear(x, w), -1, (-1, attention.head_dim)).swapaxes(1, 2)
            for w in (attention.w_q, attention.w_k, attention.w_v)
        )
        q = self.rope(self.norm(q, attention.q_norm), attention.rope, offset)
        k = self.rope(self.norm(k, attention.k_norm), attention.rope, offset)
        return q, k, v

    def output(self, layer: Qwen3Block, x: mx.array, attended: mx.array) -> mx.array:
        """Join the heads of `attended` (B, H, L, D), project, and add to the residual stream `x` (B, L, E)."""
        joined = attended.swapaxes(1, 2).flatten(2)
        return self.add(x, self.linear(joined, layer.attention.w_o))

    def mlp(self, layer: Qwen3Block, x: mx.array) -> mx.array:
        """Norm, gate and up, SwiGLU, down; added to the residual stream `x`: (B, L, E)."""
        normed, mlp = self.norm(x, layer.post_attention_norm), layer.mlp
        hidden = self.swiglu(self.linear(normed, mlp.w_gate), self.linear(normed, mlp.w_up))
        return self.add(x, self.linear(hidden, mlp.w_down))

    def head(self, model: Qwen3, x: mx.array) -> mx.array:
        """Final norm, then logits (B, L, V), from the packed head or, where it is tied, the packed embedding."""
        head = model.embedding if model.lm_head is None else model.lm_head
        return self.linear(self.norm(x, model.norm), head)

    # ANCHOR_END: ops
