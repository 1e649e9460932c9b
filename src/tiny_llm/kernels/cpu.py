"""The C++ kernels as functions of MLX arrays, and the tables of operations made of them.

Every function adds one operation to the graph: nothing is computed before its result is needed. Activations are float32
or bfloat16 with any strides; results have their dtype, sums are float32. Knows which parts of a block the kernels
need; what they compute is in `extensions/src`.
"""

from collections.abc import Sequence

import mlx.core as mx

from course.kernels import extension

from ..model.norm import RMSNorm
from ..model.qwen3 import Qwen3, Qwen3Block
from ..model.rope import RoPE
from .packed import Packed, QuantizedOps
from .quantize import PackedMatrix

_ext = extension(__package__)

Parts = tuple[mx.array, mx.array, mx.array]
"""Words, scales and biases, as the C++ functions take a matrix."""


def quantized_matmul(x: mx.array, packed: PackedMatrix, kernel: str = "auto") -> mx.array:
    """y = x W^T with W as it is packed.

    x: (..., I). packed: (O, I), 4 bits. kernel: "auto" takes the vector kernel for up to 4 rows of x and the blocked
    one for more, on all threads; "scalar", "vector" and "blocked" run that kernel on one thread.
    Returns (..., O). Raises ValueError, naming values, for shapes, dtypes, bits or a kernel that do not fit.
    """
    return _ext.quantized_matmul(x, _parts(packed), packed.group_size, kernel)


def fused_qkv(
    x: mx.array,
    norm: RMSNorm,
    q: PackedMatrix,
    k: PackedMatrix,
    v: PackedMatrix,
    q_norm: RMSNorm,
    k_norm: RMSNorm,
    rope: RoPE,
    offset: int | Sequence[int],
) -> tuple[mx.array, mx.array, mx.array]:
    """Norm, three projections, norm of each query and key head, and rope, in one operation.

    x: (B, L, E), the residual stream, at positions `offset` .. `offset` + L - 1; a sequence holds one offset per row of
    the batch, and costs no evaluation. q: (H * D, E). k, v: (H_kv * D, E).
    Returns q (B, H, L, D), k and v (B, H_kv, L, D). Raises ValueError, naming values, for what does not fit.
    """
    return tuple(
        _ext.fused_qkv(
            x,
            norm.weight,
            *(_parts(w) for w in (q, k, v)),
            q_norm.weight,
            k_norm.weight,
            rope.cos,
            rope.sin,
            _group_size(q, k, v),
            norm.eps,
            q_norm.eps,
            [offset] if isinstance(offset, int) else offset,
            rope.traditional,
        )
    )


def fused_output(x: mx.array, attended: mx.array, w: PackedMatrix) -> mx.array:
    """x + W (the heads of `attended`, joined).

    x: (B, L, E). attended: (B, H, L, D). w: (E, H * D). Returns (B, L, E). Raises ValueError for what does not fit.
    """
    return _ext.fused_output(x, attended, _parts(w), w.group_size)


def fused_mlp(x: mx.array, norm: RMSNorm, gate: PackedMatrix, up: PackedMatrix, down: PackedMatrix) -> mx.array:
    """x + W_down (silu(W_gate n) * W_up n), where n is x normalised: the second half of a block in one operation.

    x: (B, L, E). gate, up: (I, E). down: (E, I). Returns (B, L, E). Raises ValueError for what does not fit.
    """
    parts = (_parts(w) for w in (gate, up, down))
    return _ext.fused_mlp(x, norm.weight, *parts, _group_size(gate, up, down), norm.eps)


def fused_head(x: mx.array, norm: RMSNorm, w: PackedMatrix) -> mx.array:
    """The last norm and the head. x: (B, L, E). w: (V, E). Returns logits (B, L, V). Raises ValueError as above."""
    return _ext.fused_head(x, norm.weight, _parts(w), w.group_size, norm.eps)


class CpuOps(QuantizedOps):
    """`QuantizedOps` with every product by the C++ kernels."""

    def linear(self, x: mx.array, w: Packed) -> mx.array:
        """x: (..., I). Returns (..., O)."""
        return quantized_matmul(x, w.packed)


class FusedOps(CpuOps):
    """`CpuOps` with one operation for each step of a block."""

    def qkv(self, layer: Qwen3Block, x: mx.array, offset: int | Sequence[int]) -> tuple[mx.array, mx.array, mx.array]:
        """`fused_qkv` with the parts of `layer`."""
        a = layer.attention
        projections = (w.packed for w in (a.w_q, a.w_k, a.w_v))
        return fused_qkv(x, layer.input_norm, *projections, a.q_norm, a.k_norm, a.rope, offset)

    def output(self, layer: Qwen3Block, x: mx.array, attended: mx.array) -> mx.array:
        """`fused_output` with the output projection of `layer`."""
        return fused_output(x, attended, layer.attention.w_o.packed)

    def mlp(self, layer: Qwen3Block, x: mx.array) -> mx.array:
        """`fused_mlp` with the MLP of `layer`."""
        mlp = layer.mlp
        return fused_mlp(x, layer.post_attention_norm, mlp.w_gate.packed, mlp.w_up.packed, mlp.w_down.packed)

    def head(self, model: Qwen3, x: mx.array) -> mx.array:
        """`fused_head` with the head or, where it is tied, the embedding table."""
        head = model.embedding if model.lm_head is None else model.lm_head
        return fused_head(x, model.norm, head.packed)


def _parts(packed: PackedMatrix) -> Parts:
    if packed.bits != 4:
        raise ValueError(f"a matrix of {packed.bits} bits: the C++ kernels take 4")
    return packed.words, packed.scales, packed.biases


def _group_size(*matrices: PackedMatrix) -> int:
    sizes = {packed.group_size for packed in matrices}
    if len(sizes) > 1:
        raise ValueError(f"matrices with groups of {sorted(sizes)}: one operation takes one group size")
    return sizes.pop()
