"""Runs batches on a Qwen3: lay out the rows, run them through the model, score the last ones, choose tokens.

Knows the model, where keys and values are kept, and the sampler; what runs next is the scheduler's business.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import mlx.core as mx

from ..cache.dense import DenseCache
from ..model.qwen3 import LayerCache, Qwen3
from .batch_sampler import BatchSampler, Chosen
from .ragged import BatchLayer, Ragged, RaggedLayer, ragged
from .request import Batch, Sampled


class Caches(Protocol):
    """Where keys and values are kept between batches."""

    def layers(self, batch: Batch, rows: Ragged) -> list[BatchLayer]:
        """What each layer of the model gets as its cache for this batch."""
        ...


@dataclass(frozen=True)
class Launched:
    """A `Pending` batch. hidden: its last residual stream. chosen: None where no row was scored."""

    hidden: mx.array
    chosen: Chosen | None

    def results(self) -> list[Sampled]:
        """Wait, and read the tokens."""
        mx.eval(self.hidden)
        return [] if self.chosen is None else self.chosen.results()


class ModelRunner:
    """A `Runner` for a model whose table is `batched`."""

    def __init__(self, model: Qwen3, caches: Caches, sampler: BatchSampler):
        self.model = model
        self.caches = caches
        self.sampler = sampler

    def inputs(self, batch: Batch, rows: Ragged) -> mx.array:
        """The token of each row: (T, 1)."""
        return mx.array(rows.tokens)[:, None]

    def launch(self, batch: Batch) -> Launched:
        """Build the graph of a batch and start it."""
        rows = ragged(batch)
        hidden = self.model.hidden(self.inputs(batch, rows), self.caches.layers(batch, rows))
        chosen = None
        if rows.last:
            logits = self.model.ops.head(self.model, hidden[mx.array(rows.last)])
            chosen = self.sampler(logits[:, 0], batch.sampling)
        mx.async_eval(hidden, *(chosen.arrays if chosen else []))
        return Launched(hidden, chosen)


class DenseRows:
    """One dense cache per layer and admitted request, found by the request's row.

    A request that begins at position 0 gets new caches: those of whoever had the row before are dropped.
    """

    def __init__(self, layers: int, make_cache: Callable[[], LayerCache] = DenseCache):
        self.num_layers = layers
        self.make_cache = make_cache
        self.rows: dict[int, list[LayerCache]] = {}

    def layers(self, batch: Batch, rows: Ragged) -> list[RaggedLayer]:
        """A `RaggedLayer` per layer."""
        for request, start, *_ in batch.steps:
            if start == 0:
                self.rows[request.row] = [self.make_cache() for _ in range(self.num_layers)]
        requests = [self.rows[request.row] for request, *_ in batch.steps]
        return [RaggedLayer(rows.positions, rows.bounds, caches) for caches in zip(*requests, strict=True)]
