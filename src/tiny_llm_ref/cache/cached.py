"""A model that remembers: it gets the whole prefix each time, and runs only what it has not seen.

Knows tokens, a `Qwen3` and its caches; how a cache keeps its rows is the cache's business.
"""

from collections.abc import Callable

import mlx.core as mx

from ..model.qwen3 import Qwen3
from .dense import DenseCache


class CachedModel:
    """A `Model` for `generate`, with the logits of a `Qwen3`, that keeps the keys and values of the last call.

    make_cache: makes the empty cache of one layer, for example `DenseCache`. It is called for each layer before the
    first call, and may be called again where nothing can be reused.
    chunk: tokens of each sequence that one run of the model takes at most.
    `caches` are those of the layers in use. `tokens` are those whose keys and values they hold: (B, S), or None.
    Raises ValueError for a chunk below 1.
    """

    def __init__(self, model: Qwen3, make_cache: Callable[[], DenseCache], chunk: int = 512):
        if chunk < 1:
            raise ValueError(f"chunk {chunk} is below 1: the prompt would never be run")
        self.model = model
        self.make_cache = make_cache
        self.chunk = chunk
        self.caches: list[DenseCache] = []
        self.tokens: mx.array | None = None

    def __call__(self, tokens: mx.array) -> mx.array:
        """Score what follows `tokens`: (B, L), the whole prefix of each sequence.

        Keeps the longest prefix that all rows share with the call before, but at most L - 1 tokens: the last one must
        run, or there are no logits. Runs the rest in chunks. A call that fails in the middle leaves behind only what
        the next one may use.
        Returns (B, 1, V): the logits of the last position only, in the dtype of the weights.
        Raises ValueError for tokens that are not (B, L) with L >= 1.
        """
        if tokens.ndim != 2 or 0 in tokens.shape:
            raise ValueError(f"tokens have shape {tokens.shape}: expected (B, L) with at least one token")
        L = tokens.shape[1]
        start = min(self._common_prefix(tokens), L - 1)
        if start == 0:
            self.caches = [self.make_cache() for _ in self.model.layers]
        for cache in self.caches:
            cache.rewind(start)
        self.tokens = tokens[:, :start]
        while start < L:
            end = min(start + self.chunk, L)
            x = self.model.hidden(tokens[:, start:end], self.caches)
            mx.eval(x)  # a chunk is done, and its activations freed, before the next one begins
            self.tokens = tokens[:, :end]
            start = end
        return self.model.ops.head(self.model, x[:, -1:])

    def _common_prefix(self, tokens: mx.array) -> int:
        """How many of the first tokens are, in every row, those whose keys and values are kept."""
        if self.tokens is None or len(self.tokens) != len(tokens):
            return 0
        n = min(self.tokens.shape[1], tokens.shape[1])
        equal = mx.all(self.tokens[:, :n] == tokens[:, :n], axis=0)
        return int(mx.cumprod(equal.astype(mx.int32)).sum())  # ones up to the first difference, zeros from there
