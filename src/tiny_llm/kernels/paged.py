"""Paged attention: keys and values are read where they lie in the pages of a pool (Kwon et al., PagedAttention, 2023).

One batch holds rows of many requests, a prompt's chunk or one token each, and every request its own keys. The faces of
the C++ kernels. Causal: the rows of a request are the last of its positions. Nothing here copies a key or value.
"""

from typing import NamedTuple

import mlx.core as mx

from course.kernels import extension

from .flash import scale_of

_ext = extension(__package__)


# ANCHOR: places
class Places(NamedTuple):
    """Whose rows stand where: n requests in a batch of T rows. All int32.

    table: (n, max pages), page numbers; position s of a request stands in page
    table[s // page_size], row s % page_size. What stands behind the pages in use is not read.
    bounds: (n + 1,); request i owns rows bounds[i] .. bounds[i + 1] - 1.
    lengths: (n,), its keys, new ones included.
    """

    table: mx.array
    bounds: mx.array
    lengths: mx.array
    # ANCHOR_END: places


def paged_attention(
    q: mx.array,
    keys: mx.array,
    values: mx.array,
    table: mx.array,
    bounds: mx.array,
    lengths: mx.array,
    scale: float | None = None,
) -> mx.array:
    """Causal grouped attention of every request on its own pages, by the C++ kernel.

    q: (T, H, 1, D), one token per row. keys, values: (pages, H_kv, page_size, D), one layer of a pool. table, bounds,
    lengths: see `Places`. scale: None means 1 / sqrt(D). float32 or bfloat16, one dtype for all.
    Returns (T, H, 1, D) in the dtype of `q`; scores and sums are float32. Raises ValueError for shapes and dtypes that
    do not fit; evaluation raises RuntimeError for numbers that do not, such as a page that is not in the pool.
    """
    return _ext.paged_attention(q, keys, values, table, bounds, lengths, scale_of(scale, q.shape[-1]))


def paged_write(
    k: mx.array, v: mx.array, keys: mx.array, values: mx.array, table: mx.array, bounds: mx.array, lengths: mx.array
) -> tuple[mx.array, mx.array]:
    """Write the new rows k, v: (T, H_kv, 1, D) of a batch to their places. Other arguments as for `paged_attention`.

    Returns keys and values in the same memory: it is never copied, whoever else holds the arrays. A kernel that reads
    the new rows must take what is returned. Raises as `paged_attention`.
    """
    keys, values = _ext.paged_write(k, v, keys, values, table, bounds, lengths)
    return keys, values


def page_offsets(
    table: list[int], page_size: int, page_stride: int, row_stride: int, first: int, count: int
) -> list[int]:
    """What `page_rows` finds: in numbers, from a head's first row in page 0 to its rows of positions `first` on."""
    return _ext.page_offsets(table, page_size, page_stride, row_stride, first, count)


def batch_pieces(bounds: list[int], lengths: list[int], kv_heads: int, threads: int) -> list[list[int]]:
    """What `ragged_pieces` makes of a batch: request, query, queries, visible, first_key, last_key of each piece."""
    return _ext.batch_pieces(bounds, lengths, kv_heads, threads)
