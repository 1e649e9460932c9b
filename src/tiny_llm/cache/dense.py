# This file is yours to edit. Read book/src/week2-01-kv-cache.md.
"""The dense KV cache: the keys and values of one layer, side by side in buffers that have room to grow.

Knows keys and values, not tokens or models. Positions 0 .. offset - 1 are in use; what stands behind them is spare.
"""

import mlx.core as mx

from ..model.config import ModelConfig


class DenseCache:
    """One layer's keys and values (a `LayerCache`). Each buffer is (B, H_kv, capacity, D).

    capacity: positions that the first buffers hold. It doubles until the new rows fit, in the first update too, so that
    n tokens cause about log2(n / capacity) copies and not n.
    Raises ValueError for a capacity below 1.
    """

    def __init__(self, capacity: int = 256):
        if capacity < 1:
            raise ValueError(f"capacity {capacity} is below 1: doubling it would never make room")
        self.offset = 0
        self.capacity = capacity
        self.keys: mx.array | None = None
        self.values: mx.array | None = None

    def update(self, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array]:
        """Write the keys and values of L new tokens behind those in use.

        k, v: (B, H_kv, L, D) in the dtype of the first update. L may be 0, and larger than the capacity.
        Returns all keys and all values so far, (B, H_kv, offset + L, D): views of the buffers, not copies.
        Raises ValueError, and changes nothing, where `v` has another shape or dtype than `k`, or where B, H_kv, D or
        the dtype is not that of the first update.
        """
        raise NotImplementedError("Week 2 Day 1 Task 1: DenseCache.update - see book/src/week2-01-kv-cache.md#task-1")

    def rewind(self, length: int) -> None:
        """Forget all but the first `length` positions. Moves `offset` only; no byte is copied.

        Raises ValueError unless 0 <= length <= offset.
        """
        raise NotImplementedError("Week 2 Day 1 Task 2: DenseCache.rewind - see book/src/week2-01-kv-cache.md#task-2")

    @property
    def nbytes(self) -> int:
        """Bytes that both buffers take, spare room included; 0 before the first update."""
        raise NotImplementedError("Week 2 Day 1 Task 1: DenseCache.nbytes - see book/src/week2-01-kv-cache.md#task-1")


def cache_bytes(config: ModelConfig, tokens: int, dtype: mx.Dtype) -> int:
    """Bytes of keys and values that a model keeps for `tokens` tokens, all sequences together, in `dtype`.

    A token has one key row and one value row of D numbers in each KV head of each layer.
    """
    raise NotImplementedError("Week 2 Day 1 Task 2: cache_bytes - see book/src/week2-01-kv-cache.md#task-2")
