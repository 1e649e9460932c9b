"""Layer caches of a batch over a page pool: new keys and values go to pages, attention gets a dense copy of all.

The copy is what Day 4's kernels make superfluous.
"""

from collections.abc import Callable

import mlx.core as mx
import numpy as np

from ..cache.paged import PageTable
from ..cache.pool import PagePool
from .ragged import Ragged, RaggedLayer
from .request import Batch


class Gathered:
    """One request's keys and values of one layer (a `LayerCache`), written before it is asked for them."""

    def __init__(self, pool: PagePool, layer: int, pages: list[int], start: int, end: int):
        self.pool, self.layer, self.pages = pool, layer, pages
        self.offset = start
        self.end = end

    def update(self, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array]:
        """All keys and values up to those of the step, each (1, H_kv, end, D)."""
        return self.pool.gather(self.layer, self.pages, self.end)


# ANCHOR: layer
class GatheredLayer(RaggedLayer):
    """The layer cache of a batch. slots: where the batch's T rows belong."""

    def __init__(self, pool: PagePool, layer: int, rows: Ragged, caches: list[Gathered], slots: np.ndarray):
        super().__init__(rows.positions, rows.bounds, caches)
        self.pool, self.layer, self.slots = pool, layer, slots

    def attend(self, q: mx.array, k: mx.array, v: mx.array, attend: Callable[..., mx.array]) -> mx.array:
        """Write all rows, then attend request by request: (T, H, 1, D).

        So each layer of the pool is written once before it is read, and MLX writes in place.
        """
        self.pool.write(self.layer, k[:, :, 0], v[:, :, 0], self.slots)
        return super().attend(q, k, v, attend)
        # ANCHOR_END: layer


class PagedRows:
    """The layer caches of a `ModelRunner`, over one pool and the table that says who has which pages."""

    def __init__(self, pool: PagePool, table: PageTable):
        self.pool = pool
        self.table = table

    def layers(self, batch: Batch, rows: Ragged) -> list[GatheredLayer]:
        """One cache per layer for a batch. The table is read now, not when the batch is evaluated."""
        slots = np.concatenate([self.table.slots(step.request.row, step.start, step.end) for step in batch.steps])
        pages = [self.table.pages(step.request.row) for step in batch.steps]
        return [self._layer(layer, batch, rows, pages, slots) for layer in range(len(self.pool.keys))]

    def _layer(
        self, layer: int, batch: Batch, rows: Ragged, pages: list[list[int]], slots: np.ndarray
    ) -> GatheredLayer:
        caches = [
            Gathered(self.pool, layer, held, step.start, step.end)
            for held, step in zip(pages, batch.steps, strict=True)
        ]
        return GatheredLayer(self.pool, layer, rows, caches, slots)
