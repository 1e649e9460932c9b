# This file is yours to edit. Read book/src/week2-01-kv-cache.md.
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
        raise NotImplementedError(
            "Week 2 Day 1 Task 3: CachedModel.__call__ - see book/src/week2-01-kv-cache.md#task-3"
        )
