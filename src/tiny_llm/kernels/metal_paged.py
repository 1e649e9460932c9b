"""Paged attention on Metal. What it computes stands in `paged`."""

from collections.abc import Callable

import mlx.core as mx

from course.kernels import metal_kernel

from .flash import scale_of
from .metal import check_float, check_threads

QUERIES = 32
"""Queries that a threadgroup of `paged_prefill` takes, of one request."""
MAX_DIMS = 128
"""The largest head dimension of both kernels."""

_INPUTS = ["q", "keys", "values", "table", "bounds", "lengths", "scale"]
_DECODE, _PREFILL = (
    metal_kernel(
        __package__,
        f"paged_{kind}",
        inputs=_INPUTS,
        outputs=["out"],
        helpers_of=f"flash_{kind}",
        ensure_row_contiguous=False,
    )
    for kind in ("decode", "prefill")
)


def metal_paged_attention(
    q: mx.array,
    keys: mx.array,
    values: mx.array,
    table: mx.array,
    bounds: mx.array,
    lengths: mx.array,
    scale: float | None = None,
    threads: int = 256,
) -> mx.array:
    """`paged_attention` by a Metal kernel: `paged_decode` where each of n requests has one row, else `paged_prefill`.

    Arguments as for `paged_attention`; float16 too. q and pool are read by their strides: neither is copied. D a
    multiple of 8, at most 128. Every request has a row. threads: per threadgroup of `paged_decode`, a multiple of 32
    up to 1024; `paged_prefill` takes 128.
    Raises ValueError where shapes, dtypes or `threads` do not fit. Page numbers are not checked.
    """
    T, H, _, D = q.shape
    n = len(lengths)
    _check(q, keys, values, table, bounds, lengths)
    check_threads(threads, 32)
    decode = n == T
    # Request i takes ceil(rows / QUERIES) tiles: together no more than this, which needs no look at `bounds`.
    tiles = T // QUERIES + n
    template = [("T", q.dtype), ("D", D)]
    return (_DECODE if decode else _PREFILL)(
        inputs=[q, keys, values, mx.contiguous(table), bounds, lengths, scale_of(scale, D)],
        template=template if decode else [*template, ("KEYS", 32 if D <= 64 else 16)],
        grid=(threads if decode else 128 * tiles, H, n if decode else 1),
        threadgroup=(threads if decode else 128, 1, 1),
        output_shapes=[q.shape],
        output_dtypes=[q.dtype],
    )[0]


def _check(q: mx.array, keys: mx.array, values: mx.array, table: mx.array, bounds: mx.array, lengths: mx.array) -> None:
    check_float(q=q)
    if q.ndim != 4 or q.shape[2] != 1 or keys.ndim != 4 or keys.shape != values.shape or not (q.size and keys.size):
        raise ValueError(
            f"q {q.shape}, keys {keys.shape}, values {values.shape}: expected (T, H, 1, D) and twice "
            "(pages, H_kv, page_size, D)"
        )
    H, D = q.shape[1], q.shape[3]
    if H % keys.shape[1] or keys.shape[3] != D or D % 8 or D > MAX_DIMS:
        raise ValueError(
            f"q {q.shape}, keys {keys.shape}: H must be a multiple of H_kv, D the same multiple of 8 up to {MAX_DIMS}"
        )
    if not q.dtype == keys.dtype == values.dtype:
        raise ValueError(f"q is {q.dtype}, keys {keys.dtype}, values {values.dtype}: expected one dtype")
    n = len(lengths)
    if table.ndim != 2 or (len(table), bounds.shape) != (n, (n + 1,)) or q.shape[0] < n:
        raise ValueError(
            f"table {table.shape}, bounds {bounds.shape}, lengths {lengths.shape} for {q.shape[0]} rows: expected "
            "(n, max pages), (n + 1,) and (n,), and a row for each request"
        )
    if not table.dtype == bounds.dtype == lengths.dtype == mx.int32:
        raise ValueError(f"table {table.dtype}, bounds {bounds.dtype}, lengths {lengths.dtype}: expected int32")


EXAMPLES: dict[str, Callable[[], list[mx.array]]] = {
    "paged_decode": lambda: [metal_paged_attention(*_example([1, 1], [40, 9]), threads=64)],
    "paged_prefill": lambda: [metal_paged_attention(*_example([40, 1], [50, 9]))],
}


def _example(rows: list[int], lengths: list[int]) -> tuple[mx.array, ...]:
    q = mx.sin(mx.arange(2.0 * sum(rows) * 64)).reshape(-1, 2, 1, 64)
    keys = mx.cos(mx.arange(8.0 * 16 * 64)).reshape(8, 1, 16, 64)
    table = mx.array([[5, 0, 3, 2], [6, 0, 0, 0]])
    bounds = mx.array([0, rows[0], sum(rows)])
    return q, keys, keys * 2, table, bounds, mx.array(lengths)
