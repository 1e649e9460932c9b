# This file is yours to edit. Read book/src/week3-03-paged-kv.md.
"""The memory behind the pages: the keys and values of every layer, written by slot and read by page.

Knows pages and slots; who owns them, and in which order, is the page table's business.
"""

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from ..model.config import ModelConfig


class PagePool:
    """keys, values: for each layer (pages + 1, H_kv, page_size, D) in `dtype`. The last page is the dummy page.

    A slot is a position in a page: page * page_size + place in the page.
    """

    def __init__(self, config: ModelConfig, pages: int, page_size: int, dtype: mx.Dtype):
        shape = (pages + 1, config.num_key_value_heads, page_size, config.head_dim)
        self.pages = self.dummy_page = pages
        self.page_size = page_size
        self.keys = [mx.zeros(shape, dtype) for _ in range(config.num_hidden_layers)]
        self.values = [mx.zeros(shape, dtype) for _ in range(config.num_hidden_layers)]
        mx.eval(self.keys, self.values)

    def write(self, layer: int, k: mx.array, v: mx.array, slots: np.ndarray) -> None:
        """Put row t of k and v into slot slots[t] of a layer. Where a slot is named twice, either row may stay.

        k, v: (T, H_kv, D) in the dtype of the pool. slots: (T,) integers on the host.
        Lazy, and one assignment for all rows. The layer's memory is written in place, not copied, if nothing
        unevaluated reads what it held before: so write once per layer and step, then read.
        """
        raise NotImplementedError("Week 3 Day 3 Task 3: PagePool.write - see book/src/week3-03-paged-kv.md#task-3")

    def gather(self, layer: int, pages: Sequence[int], length: int) -> tuple[mx.array, mx.array]:
        """A dense copy of the first `length` positions of a request whose pages these are, in order.

        Returns keys and values, each (1, H_kv, length, D). Pages behind the last position are not read.
        """
        raise NotImplementedError("Week 3 Day 3 Task 3: PagePool.gather - see book/src/week3-03-paged-kv.md#task-3")


def page_bytes(config: ModelConfig, page_size: int, dtype: mx.Dtype) -> int:
    """Bytes of one page in all layers: keys and values of `page_size` positions."""
    raise NotImplementedError("Week 3 Day 3 Task 3: page_bytes - see book/src/week3-03-paged-kv.md#task-3")


def pages_that_fit(memory: int, config: ModelConfig, page_size: int, dtype: mx.Dtype) -> int:
    """The most pages of a pool that takes at most `memory` bytes, its dummy page included, though not counted.

    Raises ValueError where not one page fits beside the dummy page; the message names both sizes.
    """
    raise NotImplementedError("Week 3 Day 3 Task 3: pages_that_fit - see book/src/week3-03-paged-kv.md#task-3")
