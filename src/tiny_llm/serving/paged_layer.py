# This file is yours to edit. Read book/src/week3-04-paged-attention.md.
"""Layer caches of a batch over a page pool, with kernels that walk the page table: no dense copy of keys and values.

Knows the pool, the table and a batch's rows. What the kernels compute is in `kernels.paged` and `kernels.metal_paged`.
"""

from collections.abc import Callable, Sequence

import mlx.core as mx
import numpy as np

from ..cache.paged import PageTable
from ..cache.pool import PagePool
from ..kernels.metal_ops import MetalOps
from ..kernels.metal_paged import metal_paged_attention
from ..kernels.paged import Places
from ..model.qwen3 import Ops
from .ragged import Ragged
from .request import Batch


class PagedLayer:
    """A `BatchLayer` whose rows are written and attended to by the C++ kernels, all requests at once.

    positions: (T), of the batch's rows. places: where all its positions stand; slots: where its T new rows belong.
    """

    def __init__(self, pool: PagePool, layer: int, positions: Sequence[int], places: Places, slots: np.ndarray):
        self.pool, self.layer = pool, layer
        self.offset = positions
        self.places, self.slots = places, slots

    def attend(self, q: mx.array, k: mx.array, v: mx.array, attend: Callable[..., mx.array]) -> mx.array:
        """Write the new rows to their pages, then let every row attend. Shapes as for `BatchLayer.attend`.

        `attend`, which would want dense keys and values, is not used.
        """
        raise NotImplementedError(
            "Week 3 Day 4 Task 2: PagedLayer.attend - see book/src/week3-04-paged-attention.md#task-2"
        )


class MetalPagedLayer(PagedLayer):
    """A `PagedLayer` on Metal kernels; the rows are written by MLX."""

    def attend(self, q: mx.array, k: mx.array, v: mx.array, attend: Callable[..., mx.array]) -> mx.array:
        """As `PagedLayer.attend`."""
        self.pool.write(self.layer, k.squeeze(2), v.squeeze(2), self.slots)
        return metal_paged_attention(q, self.pool.keys[self.layer], self.pool.values[self.layer], *self.places)


class KernelRows:
    """The layer caches of a `ModelRunner`, over one pool and the table that says who has which pages.

    ops: the model's table of operations; Metal tables get the Metal kernels, all others the C++ ones.
    """

    def __init__(self, pool: PagePool, table: PageTable, ops: Ops):
        self.pool = pool
        self.table = table
        self.make_layer = MetalPagedLayer if isinstance(ops, MetalOps) else PagedLayer

    def layers(self, batch: Batch, rows: Ragged) -> list[PagedLayer]:
        """One cache per layer for a batch. The table is read now, not when the batch is evaluated."""
        slots = np.concatenate([self.table.slots(step.request.row, step.start, step.end) for step in batch.steps])
        columns = -(-max(rows.lengths) // self.table.page_size)
        table = self.table.entries[[step.request.row for step in batch.steps], :columns]
        places = Places(*(mx.array(np.array(x, np.int32)) for x in (table, rows.bounds, rows.lengths)))
        return [
            self.make_layer(self.pool, layer, rows.positions, places, slots) for layer in range(len(self.pool.keys))
        ]
