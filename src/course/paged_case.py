"""What cases about paged attention share: random batches over a pool, the float64 oracle, and what mistakes give.

A batch of n requests has T rows, one token each; request i owns rows bounds[i] .. bounds[i + 1] - 1, the last of its
lengths[i] positions. Position s stands in page table[i][s // page_size], row s % page_size.
"""

from collections.abc import Callable, Sequence

import mlx.core as mx
import numpy as np

from course.attention_case import attention64
from course.checkpoint_files import wide

Inputs = dict[str, mx.array | np.ndarray | float]
Where = Callable[[int, np.ndarray, int], np.ndarray]
"""(request, positions, kv head) -> where each row begins in the memory of the pool, in numbers."""


def random_batch(
    rng: np.random.Generator,
    *,
    rows: Sequence[int],
    lengths: Sequence[int],
    H: int = 2,
    H_kv: int = 1,
    D: int = 8,
    page_size: int = 16,
    dtype: mx.Dtype = mx.float32,
    unused: str = "numbers",
) -> Inputs:
    """q (T, H, 1, D), keys and values (pages, H_kv, page_size, D), table (n, max pages), bounds, lengths.

    Pages are dealt out in random order. Page 0 is somebody's, the last one, the dummy page, nobody's: entries of the
    table behind a request's pages point there. unused: what stands where no request has a position: "numbers" like any
    others, or "nan".
    """
    counts = [-(-length // page_size) for length in lengths]
    spare = 3
    pages = sum(counts) + spare
    order = np.concatenate([[0], 1 + rng.permutation(pages - 2)])
    rng.shuffle(order[: max(1, sum(counts))])
    table = np.full((len(rows), max(counts) + 1), pages - 1, np.int32)
    used = np.zeros((pages, page_size), bool)
    for i, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        table[i, :count], order = order[:count], order[count:]
        s = np.arange(length)
        used[table[i, s // page_size], s % page_size] = True
    shape = (pages, H_kv, page_size, D)
    pool = {name: rng.standard_normal(shape).astype(np.float32) for name in ("keys", "values")}
    if unused == "nan":
        for x in pool.values():
            x[~used[:, None].repeat(H_kv, 1)] = np.nan
    q = rng.standard_normal((sum(rows), H, 1, D)).astype(np.float32)
    return {name: mx.array(x).astype(dtype) for name, x in ({"q": q} | pool).items()} | {
        "table": mx.array(table),
        "bounds": mx.array(np.cumsum([0, *rows]).astype(np.int32)),
        "lengths": mx.array(np.array(lengths, np.int32)),
    }


def in_pages(inputs: Inputs, table: np.ndarray | None = None) -> Where:
    """Where rows really are; with another table, where it would have them."""
    _, H_kv, size, D = inputs["keys"].shape
    table = np.array(inputs["table"]) if table is None else table

    def where(i: int, s: np.ndarray, head: int) -> np.ndarray:
        return (table[i, s // size] * H_kv + head) * size * D + s % size * D

    return where


def paged64(
    inputs: Inputs,
    where: Where | None = None,
    *,
    first: Callable[[int, int], int] | None = None,
    heads: np.ndarray | None = None,
    missing: Callable[[int], np.ndarray] | None = None,
    zeros: bool = False,
) -> np.ndarray:
    """Attention in float64: (T, H, 1, D).

    The other arguments make mistakes. first(rows, length): keys that a request's first query sees; heads: the kv head
    of each query head; missing(length): keys that are left out; zeros: what stands behind the last key is zero.
    """
    where = where or in_pages(inputs)
    bounds, lengths = np.array(inputs["bounds"]), np.array(inputs["lengths"])
    flat = {name: wide(inputs[name]).ravel() for name in ("keys", "values")}
    H_kv, D = inputs["keys"].shape[1], inputs["keys"].shape[3]
    results = []
    for i, length in enumerate(lengths):
        rows = int(bounds[i + 1] - bounds[i])
        if rows == 0:
            continue
        seen = (length - rows + 1 if first is None else first(rows, length)) + np.arange(rows)
        s = np.arange(max(length, seen.max()))
        at = np.stack([where(i, s, head)[:, None] + np.arange(D) for head in range(H_kv)])
        k, v = (mx.array(flat[name][at % flat[name].size][None].astype(np.float32)) for name in ("keys", "values"))
        if zeros:
            k, v = (mx.where(mx.array(s < length)[:, None], x, 0) for x in (k, v))
        q = inputs["q"][int(bounds[i]) : int(bounds[i + 1])].swapaxes(0, 2)
        gone = None if missing is None else missing(length)
        results.append(
            attention64(q, k, v, inputs.get("scale"), last=seen - 1, heads=heads, missing=gone).swapaxes(0, 2)
        )
    return np.concatenate(results)


def paged_suspects(inputs: Inputs) -> dict[str, Callable[[], np.ndarray]]:
    """What likely mistakes give, by the mistake."""
    table, bounds = np.array(inputs["table"]), np.array(inputs["bounds"])
    pages, H_kv, size, D = inputs["keys"].shape
    H, n = inputs["q"].shape[1], len(table)
    wide_table = np.pad(table, ((0, 0), (0, 4)), constant_values=pages - 1)

    def other(new: np.ndarray) -> Callable[[], np.ndarray]:
        return lambda: paged64(inputs, in_pages(inputs, np.pad(new, ((0, 0), (0, 4)), constant_values=pages - 1)))

    def laid_out(where: Where) -> Callable[[], np.ndarray]:
        return lambda: paged64(inputs, where)

    def seen(first: Callable[[int, int], int]) -> Callable[[], np.ndarray]:
        return lambda: paged64(inputs, in_pages(inputs, wide_table), first=first)

    in_row = np.minimum(bounds[:-1], n - 1)
    found = {
        "a position was looked up in the next entry of the table": other(np.roll(table, -1, axis=1)),
        "a position was looked up in the entry before its own": other(np.roll(table, 1, axis=1)),
        "every position was looked up in the first entry of the table": other(table[:, :1].repeat(table.shape[1], 1)),
        "the pages of a request were taken to follow each other": other(table[:, :1] + np.arange(table.shape[1])),
        "the table was ignored: position s was read in page s / page_size": other(
            np.arange(table.shape[1]).repeat(n).reshape(-1, n).T
        ),
        "every request read the pages of the first request": other(table[:1].repeat(n, 0)),
        "each request read the pages of the next one": other(np.roll(table, -1, axis=0)),
        "the row of the table is that of the request, not of its first query": other(table[in_row]),
        "keys were read by their strides: with pages only page_rows, and so KeyBlock, knows where a row is": laid_out(
            lambda i, s, h: h * size * D + 0 * s
        ),
        "a page is as long as all its heads: the page stride forgot them": laid_out(
            lambda i, s, h: (table[i, s // size] + h) * size * D + s % size * D
        ),
        "the row in the page was forgotten: every position read row 0": laid_out(
            lambda i, s, h: (table[i, s // size] * H_kv + h) * size * D
        ),
        "the rows of a page were read as if all heads of a position stood together": laid_out(
            lambda i, s, h: ((table[i, s // size] * size + s % size) * H_kv + h) * D
        ),
        "the mask is off by one: a query sees one key too many": seen(lambda rows, length: length - rows + 2),
        "the mask is off by one: a query sees one key too many, the last query one that does not exist": lambda: (
            paged64(inputs, in_pages(inputs, wide_table), first=lambda rows, length: length - rows + 2, zeros=True)
        ),
        "the mask is off by one: a query does not see its own position": seen(lambda rows, length: length - rows),
        "the cached prefix was forgotten: queries were taken for the first positions of their request": seen(
            lambda rows, length: 1
        ),
        "nothing was masked: every query saw all keys of its request": seen(
            lambda rows, length: length - np.arange(rows)
        ),
        "query head h read key/value head h % H_kv": lambda: paged64(inputs, heads=np.arange(H) % H_kv),
        "every query head read the first key/value head": lambda: paged64(inputs, heads=np.zeros(H, int)),
        "the last page of a request was left out": lambda: paged64(
            inputs, missing=lambda length: np.arange((length - 1) // size * size, length)
        ),
        "the scale was forgotten": lambda: paged64(inputs | {"scale": 1.0}),
    }
    for wrong in {4, 8, 16, 32, 64} - {size}:
        found[f"a page was taken to have {wrong} positions"] = laid_out(
            lambda i, s, h, p=wrong: (
                (wide_table[i, np.minimum(s // p, table.shape[1])] * H_kv + h) * size * D + s % p * D
            )
        )
    return found


def poisoned(result: mx.array, inputs: Inputs) -> None:
    """Raise AssertionError where NaNs of a pool's unused slots reached the result."""
    bad = ~np.isfinite(wide(result))
    if bad.any():
        t = int(np.argwhere(bad)[0][0])
        i = int(np.searchsorted(np.array(inputs["bounds"]), t, side="right")) - 1
        size = inputs["keys"].shape[2]
        raise AssertionError(
            f"row {t}, of request {i} with {int(inputs['lengths'][i])} keys in pages of {size}, is not finite: a slot "
            "was read that no position of the request stands in. Behind the last position of its last page, in other "
            "pages and in the dummy page anything may stand, also NaN; not even a weight of 0 makes it harmless"
        )
