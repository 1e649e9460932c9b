# This file is yours to edit. Read book/src/week2-07-flash-attention.md.
"""Flash attention: softmax(Q K^T) V without the scores of all keys at once (Milakov and Gimelshein, 2018; Dao, 2022).

A query keeps the largest score so far, the sum of the weights so far, and its unnormalised result; a new maximum
rescales the last two. Here in array operations, and the face of the C++ kernel.
Everything is causal: the L queries are the last L of S positions, query i sees keys 0 .. S - L + i, and a query that
sees none (L > S) gets zeros. Query heads h*G .. h*G + G - 1 share key/value head h, G = H / H_kv.
"""

import math

import mlx.core as mx

from course.kernels import extension

from ..model.qwen3 import LayerCache
from .cpu import FusedOps

_ext = extension(__package__)


def flash_attention(q: mx.array, k: mx.array, v: mx.array, scale: float | None = None, block: int = 128) -> mx.array:
    """Causal grouped attention, one block of keys after another.

    q: (B, H, L, D). k, v: (B, H_kv, S, D). scale: None means 1 / sqrt(D). block: keys whose scores exist at a time.
    Returns (B, H, L, D) in the dtype of `q`; scores and sums are float32. Raises ValueError where shapes do not fit or
    `block` is less than 1.
    """
    raise NotImplementedError("Week 2 Day 7 Task 1: flash_attention - see book/src/week2-07-flash-attention.md#task-1")


def cpu_flash_attention(q: mx.array, k: mx.array, v: mx.array, scale: float | None = None) -> mx.array:
    """`flash_attention` by the C++ kernel, which reads k and v by their strides: a view of a cache is not copied."""
    *_, D = check_shapes(q, k, v)
    return _ext.flash_attention(q, k, v, scale_of(scale, D))


class FlashOps(FusedOps):
    """`FusedOps` with attention by the C++ flash kernel: the fastest table on a CPU."""

    def attend(self, q: mx.array, k: mx.array, v: mx.array, cache: LayerCache | None = None) -> mx.array:
        """Causal attention over the cached and the new keys and values. Shapes as for `Ops.attend`."""
        if cache is not None:
            k, v = cache.update(k, v)
        return cpu_flash_attention(q, k, v)


def scale_of(scale: float | None, dims: int) -> float:
    """`scale`, or 1 / sqrt(dims) where it is None."""
    return 1.0 / math.sqrt(dims) if scale is None else float(scale)


def check_shapes(q: mx.array, k: mx.array, v: mx.array) -> tuple[int, ...]:
    """The shape (B, H, L, D) of `q`, or ValueError."""
    if q.ndim != 4 or k.ndim != 4 or k.shape != v.shape or (q.shape[0], q.shape[3]) != (k.shape[0], k.shape[3]):
        raise ValueError(f"q {q.shape}, k {k.shape}, v {v.shape}: expected (B, H, L, D) and twice (B, H_kv, S, D)")
    if not (q.size and k.size) or q.shape[1] % k.shape[1]:
        raise ValueError(f"q {q.shape}, k {k.shape}: H must be a multiple of H_kv, and L and S at least 1")
    return q.shape
