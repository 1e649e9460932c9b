# This file is yours to edit. Read book/src/week3-01-continuous-batching.md.
"""One forward for many requests of different lengths: one token per row of the model's batch, nothing padded.

Projections, norms and MLPs work on each token alone and see all T rows at once. Only attention must know whose row is
whose, and there each request attends with its own cache. Knows steps, rows and positions; nothing of pages or sampling.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import mlx.core as mx

from ..model.qwen3 import LayerCache, Ops
from .request import Batch

Attend = Callable[[mx.array, mx.array, mx.array, LayerCache], mx.array]
"""`Ops.attend` of a table."""


# ANCHOR: ragged
class Ragged(NamedTuple):
    """A batch laid out in T rows, request after request, all in plain ints.

    tokens: (T), of the host ids; one that the host does not know yet is missing.
    positions: (T), of each token in its request.
    bounds: (n + 1), request i owns rows bounds[i] .. bounds[i + 1] - 1.
    lengths: (n), keys that the last row of each request sees.
    last: the row of each of `batch.sampling`, which the head must score.
    """

    tokens: list[int]
    positions: list[int]
    bounds: list[int]
    lengths: list[int]
    last: list[int]
    # ANCHOR_END: ragged


def ragged(batch: Batch) -> Ragged:
    """Lay out the steps of a batch in their order, each token at the position that it has in its request."""
    raise NotImplementedError("Week 3 Day 1 Task 4: ragged - see book/src/week3-01-continuous-batching.md#task-4")


# ANCHOR: layer
class BatchLayer(Protocol):
    """The keys and values of all requests of a batch in one layer.

    offset: (T), the position of each row.
    """

    offset: Sequence[int]

    def attend(self, q: mx.array, k: mx.array, v: mx.array, attend: Attend) -> mx.array:
        """Keep the new keys and values, and let each row attend to its request.

        A row sees keys of its own request only, up to itself.
        q: (T, H, 1, D). k, v: (T, H_kv, 1, D), new. Returns (T, H, 1, D).
        attend: what a model without a batch would use.
        """
        ...

    # ANCHOR_END: layer


class RaggedLayer:
    """A `BatchLayer` of one `LayerCache` per request, which holds what the request has computed before.

    positions, bounds: those of `Ragged`.
    """

    def __init__(self, positions: Sequence[int], bounds: Sequence[int], caches: Sequence[LayerCache]):
        self.offset = positions
        self.bounds = bounds
        self.caches = caches

    def attend(self, q: mx.array, k: mx.array, v: mx.array, attend: Attend) -> mx.array:
        """Give each request its own rows as a sequence of L tokens, (1, heads, L, D), and join the results.

        Shapes as for `BatchLayer.attend`; `attend` is called once for each request, with its own cache.
        """
        raise NotImplementedError(
            "Week 3 Day 1 Task 4: RaggedLayer.attend - see book/src/week3-01-continuous-batching.md#task-4"
        )


# ANCHOR: ops
class RaggedOps(Ops):
    """Mixed into a table of operations, it lets the batch's caches attend.

    They get the table's own attention, for one request at a time.
    """

    def attend(self, q: mx.array, k: mx.array, v: mx.array, cache: BatchLayer) -> mx.array:
        """q: (T, H, 1, D). k, v: (T, H_kv, 1, D). Returns (T, H, 1, D)."""
        return cache.attend(q, k, v, super().attend)


def batched(ops: Ops) -> Ops:
    """The table of `ops` for a model whose caches are `BatchLayer`s.

    For example `batched(make_ops("packed"))`.
    """
    table = type(ops)
    return type(f"Batched{table.__name__}", (RaggedOps, table), {})()
    # ANCHOR_END: ops
