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
        self._check(k, v)
        end = self.offset + k.shape[2]
        while self.capacity < end:
            self.capacity *= 2
        self.keys, self.values = self._with_room(self.keys, k), self._with_room(self.values, v)
        # MLX writes a slice in place if nobody else holds the buffer or a view of it, else into a copy.
        self.keys[:, :, self.offset : end] = k
        self.values[:, :, self.offset : end] = v
        self.offset = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def rewind(self, length: int) -> None:
        """Forget all but the first `length` positions. Moves `offset` only; no byte is copied.

        Raises ValueError unless 0 <= length <= offset.
        """
        if not 0 <= length <= self.offset:
            raise ValueError(f"cannot rewind to {length}: the cache holds {self.offset} positions")
        self.offset = length

    @property
    def nbytes(self) -> int:
        """Bytes that both buffers take, spare room included; 0 before the first update."""
        return 0 if self.keys is None else self.keys.nbytes + self.values.nbytes

    def _with_room(self, buffer: mx.array | None, new: mx.array) -> mx.array:
        """`buffer`, or a larger one that begins with the rows in use, for `capacity` rows like those of `new`."""
        B, H_kv, _, D = new.shape
        if buffer is None:
            return mx.zeros((B, H_kv, self.capacity, D), new.dtype)
        if buffer.shape[2] == self.capacity:
            return buffer
        spare = mx.zeros((B, H_kv, self.capacity - self.offset, D), new.dtype)
        return mx.concatenate([buffer[:, :, : self.offset], spare], axis=2)

    def _check(self, k: mx.array, v: mx.array) -> None:
        if k.shape != v.shape or k.dtype != v.dtype:
            raise ValueError(f"keys {k.shape} {k.dtype} and values {v.shape} {v.dtype} must be alike")
        if self.keys is None:
            return
        for name, axis in (("B", 0), ("H_kv", 1), ("D", 3)):
            if k.shape[axis] != self.keys.shape[axis]:
                raise ValueError(f"{name} is {k.shape[axis]}, the cache was begun with {self.keys.shape[axis]}")
        if k.dtype != self.keys.dtype:
            raise ValueError(f"the new keys are {k.dtype}, the cache holds {self.keys.dtype}")


def cache_bytes(config: ModelConfig, tokens: int, dtype: mx.Dtype) -> int:
    """Bytes of keys and values that a model keeps for `tokens` tokens, all sequences together, in `dtype`.

    A token has one key row and one value row of D numbers in each KV head of each layer.
    """
    rows = 2 * config.num_hidden_layers * config.num_key_value_heads
    return rows * tokens * config.head_dim * dtype.size
