"""Flash attention on Metal, and the table of operations that uses it. What it computes stands in `flash`."""

from collections.abc import Callable

import mlx.core as mx

from course.kernels import metal_kernel

from ..model.qwen3 import LayerCache
from .flash import check_shapes, scale_of
from .metal import check_float, check_threads
from .metal_ops import MetalOps

QUERIES = 32
"""Queries that a threadgroup of `flash_prefill` takes."""
MAX_DIMS = 128
"""The largest head dimension of both kernels."""

_DECODE = metal_kernel(
    __package__, "flash_decode", inputs=["q", "k", "v", "scale"], outputs=["out"], ensure_row_contiguous=False
)
_PREFILL = metal_kernel(
    __package__, "flash_prefill", inputs=["q", "k", "v", "scale"], outputs=["out"], ensure_row_contiguous=False
)


def metal_flash_attention(
    q: mx.array, k: mx.array, v: mx.array, scale: float | None = None, threads: int = 256
) -> mx.array:
    """`flash_attention` by the Metal kernels: `flash_decode` for one query, `flash_prefill` for several.

    Both read q, k and v by their strides: a view of a cache is not copied. One dtype for all; D a multiple of 8, at
    most 128. threads: per threadgroup of `flash_decode`, a multiple of 32 up to 1024; `flash_prefill` takes 128.
    Raises ValueError where shapes, dtypes or `threads` do not fit.
    """
    B, H, L, D = check_shapes(q, k, v)
    check_float(q=q)
    check_threads(threads, 32)
    if D % 8 or D > MAX_DIMS:
        raise ValueError(f"head dimension {D}: the Metal kernels take multiples of 8 up to {MAX_DIMS}")
    if not q.dtype == k.dtype == v.dtype:
        raise ValueError(f"q is {q.dtype}, k {k.dtype}, v {v.dtype}: expected one dtype")
    decode = L == 1
    template = [("T", q.dtype), ("D", D)]
    return (_DECODE if decode else _PREFILL)(
        inputs=[q, k, v, scale_of(scale, D)],
        template=template if decode else [*template, ("KEYS", 32 if D <= 64 else 16)],
        grid=(threads if decode else 128 * -(-L // QUERIES), H, B),
        threadgroup=(threads if decode else 128, 1, 1),
        output_shapes=[q.shape],
        output_dtypes=[q.dtype],
    )[0]


class MetalFlashOps(MetalOps):
    """`MetalOps` with attention by the flash kernels: every step of a block but the cache is a Metal kernel."""

    def attend(self, q: mx.array, k: mx.array, v: mx.array, cache: LayerCache | None = None) -> mx.array:
        """Causal attention over the cached and the new keys and values. Shapes as for `Ops.attend`."""
        if cache is not None:
            k, v = cache.update(k, v)
        return metal_flash_attention(q, k, v)


EXAMPLES: dict[str, Callable[[], list[mx.array]]] = {
    "flash_decode": lambda: [metal_flash_attention(*_example(L=1, S=40), threads=64)],
    "flash_prefill": lambda: [metal_flash_attention(*_example(L=40, S=50))],
}


def _example(L: int, S: int) -> tuple[mx.array, mx.array, mx.array]:
    q = mx.sin(mx.arange(2.0 * L * 64)).reshape(1, 2, L, 64)
    k = mx.cos(mx.arange(1.0 * S * 64)).reshape(1, 1, S, 64)
    return q, k, k * 2
