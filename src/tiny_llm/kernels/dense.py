"""The table for unpacked weights: products by MLX's matmul, and each step between two of them in one C++ operation.

The products are as fast as the BLAS behind MLX; a plain table spends much of a small step on the operations between.
"""

from collections.abc import Sequence

import mlx.core as mx

from course.kernels import extension

from ..model.basics import linear
from ..model.norm import RMSNorm
from ..model.qwen3 import Ops, Qwen3, Qwen3Block

_ext = extension(__package__)


class DenseOps(Ops):
    """`Ops` with the norms, the heads' norm and rotation, and the gate in C++. float32 or bfloat16."""

    def qkv(self, layer: Qwen3Block, x: mx.array, offset: int | Sequence[int]) -> tuple[mx.array, mx.array, mx.array]:
        """Input norm, projections, head norms and rope. x: (B, L, E). Returns q, k, v: (B, heads, L, D)."""
        a = layer.attention
        x = _norm(x, layer.input_norm)
        offsets = [offset] if isinstance(offset, int) else offset
        q, k = (
            _ext.rotated_heads(linear(x, w), norm.weight, a.rope.cos, a.rope.sin, norm.eps, offsets, a.rope.traditional)
            for w, norm in ((a.w_q, a.q_norm), (a.w_k, a.k_norm))
        )
        return q, k, mx.unflatten(linear(x, a.w_v), -1, (-1, a.head_dim)).swapaxes(1, 2)

    def mlp(self, layer: Qwen3Block, x: mx.array) -> mx.array:
        """The MLP of the normalised stream, added to the residual stream x: (B, L, E)."""
        normed, mlp = _norm(x, layer.post_attention_norm), layer.mlp
        hidden = _ext.gated(linear(normed, mlp.w_gate), linear(normed, mlp.w_up))
        return x + linear(hidden, mlp.w_down)

    def head(self, model: Qwen3, x: mx.array) -> mx.array:
        """Final norm, then logits (B, L, V)."""
        x = _norm(x, model.norm)
        return model.embedding.as_linear(x) if model.lm_head is None else linear(x, model.lm_head)


def _norm(x: mx.array, norm: RMSNorm) -> mx.array:
    return _ext.normalise(x, norm.weight, norm.eps)
