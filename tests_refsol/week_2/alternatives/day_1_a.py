# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 1 in another style: one buffer for keys and values, and a token list compared in Python."""


# file: cache/dense.py
class DenseCache(DenseCache):
    """Keys and values stacked in one array: (2, B, H_kv, capacity, D)."""

    def __init__(self, capacity: int = 256):
        super().__init__(capacity)
        self.both = None

    def update(self, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array]:
        """Grow by an array of the doubled size into which the old one is written."""
        if (k.shape, k.dtype) != (v.shape, v.dtype):
            raise ValueError(f"keys are {k.dtype} {k.shape}, values {v.dtype} {v.shape}")
        B, H_kv, L, D = k.shape
        if self.both is not None:
            begun = (*self.both.shape[1:3], self.both.shape[4], self.both.dtype)
            if begun != (B, H_kv, D, k.dtype):
                raise ValueError(f"the cache holds (B, H_kv, D, dtype) {begun}, not {(B, H_kv, D, k.dtype)}")
        capacity = self.capacity if self.both is None else self.both.shape[3]
        while capacity < self.offset + L:
            capacity = 2 * capacity
        if self.both is None or capacity > self.both.shape[3]:
            larger = mx.zeros((2, B, H_kv, capacity, D), dtype=k.dtype)
            if self.both is not None:
                larger[..., : self.offset, :] = self.both[..., : self.offset, :]
            self.both = larger
        self.both[..., self.offset : self.offset + L, :] = mx.stack([k, v])
        self.offset += L
        return self.both[0, ..., : self.offset, :], self.both[1, ..., : self.offset, :]

    def rewind(self, length: int) -> None:
        """Refuse or move."""
        if length < 0 or length > self.offset:
            raise ValueError(f"{length} is not between 0 and {self.offset}")
        self.offset = length

    @property
    def nbytes(self) -> int:
        """Of the stack."""
        return self.both.nbytes if self.both is not None else 0


def cache_bytes(config: ModelConfig, tokens: int, dtype: mx.Dtype) -> int:
    """Add up the layers."""
    row = config.head_dim * dtype.size
    return sum(2 * tokens * config.num_key_value_heads * row for _ in range(config.num_hidden_layers))


# file: cache/cached.py
class CachedModel(CachedModel):
    """Keeps Python lists, column by column, and forgets them while a call runs."""

    def __init__(self, model: Qwen3, make_cache: Callable[[], DenseCache], chunk: int = 512):
        super().__init__(model, make_cache, chunk)
        self.columns = []

    def __call__(self, tokens: mx.array) -> mx.array:
        """Compare columns of tokens until two differ."""
        if tokens.ndim != 2 or tokens.size == 0:
            raise ValueError(f"(B, L) with L >= 1 is needed, not {tokens.shape}")
        columns = tokens.T.tolist()
        kept, self.columns = self.columns, []
        keep = 0
        while keep < min(len(columns) - 1, len(kept)) and kept[keep] == columns[keep]:
            keep += 1
        if not self.caches or (kept and len(kept[0]) != len(columns[0])) or (not kept):
            self.caches = [self.make_cache() for _ in range(self.model.config.num_hidden_layers)]
            keep = 0
        for cache in self.caches:
            cache.rewind(keep)
        for at in range(keep, len(columns), self.chunk):
            x = self.model.hidden(tokens[:, at : at + self.chunk], self.caches)
            mx.eval(x)
        self.columns = columns
        return self.model.ops.head(self.model, x[:, x.shape[1] - 1 :])
