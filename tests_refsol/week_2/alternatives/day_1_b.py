# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 1 in another style: functional slice updates, padding to grow, NumPy for tokens, recursion over chunks."""


# file: cache/dense.py
def _fit(self: DenseCache, name: str, x: mx.array) -> mx.array:
    """The buffer called `name`, padded with zeros to the capacity."""
    buffer = getattr(self, name)
    if buffer is None:
        buffer = mx.zeros((*x.shape[:2], 0, x.shape[3]), x.dtype)
    for axis in (0, 1, 3):
        if buffer.shape[axis] != x.shape[axis]:
            raise ValueError(f"axis {axis} of the {name} has {x.shape[axis]} entries, expected {buffer.shape[axis]}")
    if buffer.dtype != x.dtype:
        raise ValueError(f"{name} of {x.dtype} after {buffer.dtype}")
    return buffer


def _update(self: DenseCache, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array]:
    """Check both, pad both, write both."""
    if k.shape != v.shape or k.dtype != v.dtype:
        raise ValueError(f"k is {k.shape} of {k.dtype}, v is {v.shape} of {v.dtype}")
    buffers = [_fit(self, "keys", k), _fit(self, "values", v)]
    need, end = self.capacity, self.offset + k.shape[2]
    while need < end:
        need += need
    pad = need - buffers[0].shape[2]
    if pad:
        buffers = [mx.pad(buffer, ((0, 0), (0, 0), (0, pad), (0, 0))) for buffer in buffers]
    self.keys = self.values = None  # so that the buffers are held once, and written in place
    at = mx.array([self.offset])
    self.keys, self.values = (mx.slice_update(buffer, x, at, (2,)) for buffer, x in zip(buffers, (k, v), strict=True))
    self.capacity, self.offset = need, end
    return self.keys[..., :end, :], self.values[..., :end, :]


def _rewind(self: DenseCache, length: int) -> None:
    """By membership."""
    if length not in range(self.offset + 1):
        raise ValueError(f"length {length} is outside 0 .. {self.offset}")
    self.offset = length


def _nbytes(self: DenseCache) -> int:
    """By shape and dtype."""
    return 0 if self.keys is None else 2 * self.keys.size * self.keys.dtype.size


DenseCache.update, DenseCache.rewind, DenseCache.nbytes = _update, _rewind, property(_nbytes)


def cache_bytes(config: ModelConfig, tokens: int, dtype: mx.Dtype) -> int:
    """The size of an array that is never evaluated."""
    shape = (config.num_hidden_layers, 2, config.num_key_value_heads, tokens, config.head_dim)
    return mx.zeros(shape, dtype).nbytes


# file: cache/cached.py
import numpy as np  # noqa: E402


def _call(self: CachedModel, tokens: mx.array) -> mx.array:
    """Find the first column that differs with NumPy; the caches rewind to 0 where nothing can be kept."""
    rows = np.array(tokens)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"tokens must be (B, L), L >= 1: {tokens.shape}")
    B, L = rows.shape
    held = self.tokens if self.tokens is not None and self.tokens.shape[0] == B else np.zeros((B, 0), rows.dtype)
    if held.shape[1] == 0:
        self.caches = [self.make_cache() for _ in self.model.layers]
    n = min(L - 1, held.shape[1])
    differ = np.flatnonzero((held[:, :n] != rows[:, :n]).any(axis=0))
    keep = int(differ[0]) if differ.size else n
    for cache in self.caches:
        cache.rewind(keep)
    self.tokens = rows[:, :keep]
    return self.model.ops.head(self.model, _rest(self, rows)[:, -1:])


def _rest(self: CachedModel, rows: np.ndarray) -> mx.array:
    """Run what is not yet held; the residual stream of the last chunk."""
    start = self.tokens.shape[1]
    end = min(rows.shape[1], start + self.chunk)
    x = self.model.hidden(mx.array(rows[:, start:end]), self.caches)
    mx.eval(x)
    self.tokens = rows[:, :end].copy()
    return x if end == rows.shape[1] else _rest(self, rows)


CachedModel.__call__ = _call
