"""Choosing the next token of every request of a batch, each as Week 1's `Sampler` would choose it alone.

Knows logits and what requests ask for; nothing of models or memory. Nothing here waits for the device but `results`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import mlx.core as mx

from ..text.sampler import SamplingParams, apply_repetition_penalty, filter_logits, log_probabilities
from .request import Request, Sampled, Step


@dataclass(frozen=True)
class Alternatives:
    """Log-probabilities of the raw logits, for the rows that asked. asked: how many each of n rows wants, or None.

    chosen: (n). ids and values: (n, K), best first, K the largest wish. All on the device.
    """

    asked: list[int | None]
    chosen: mx.array
    ids: mx.array
    values: mx.array

    def add_to(self, tokens: list[int]) -> list[Sampled]:
        """Read them, and hand out to each row what it asked for."""
        read = zip(tokens, self.asked, self.chosen.tolist(), self.ids.tolist(), self.values.tolist(), strict=True)
        return [
            Sampled(token) if asked is None else Sampled(token, logprob, list(zip(ids, values, strict=True))[:asked])
            for token, asked, logprob, ids, values in read
        ]


@dataclass(frozen=True)
class Chosen:
    """Tokens that have been chosen, (n) on the device, and the alternatives if a row asked for them."""

    tokens: mx.array
    alternatives: Alternatives | None

    @property
    def arrays(self) -> list[mx.array]:
        """All that must be computed."""
        more = self.alternatives
        return [self.tokens] if more is None else [self.tokens, more.chosen, more.ids, more.values]

    def results(self) -> list[Sampled]:
        """Wait for them. Returns one for each row."""
        tokens = self.tokens.tolist()
        return [Sampled(token) for token in tokens] if self.alternatives is None else self.alternatives.add_to(tokens)


class BatchSampler:
    """Each request has its own parameters and its own stream of random numbers, which begins with its seed.

    A draw takes the next key of the stream. So a request gets the same tokens whatever it is batched with, also after
    it was preempted: its prompt then holds its output, and nothing is drawn twice.
    """

    def __init__(self):
        self._keys: WeakKeyDictionary[Request, mx.array] = WeakKeyDictionary()

    def __call__(self, logits: mx.array, steps: Sequence[Step]) -> Chosen:
        """Choose a token for each of `steps`.

        logits: (n, V), as the model gave them. A repetition penalty looks at `ids`: these must be complete.
        """
        requests = [step.request for step in steps]
        rows = [row for row, request in enumerate(requests) if not is_argmax(request.sampling)]
        tokens = mx.argmax(logits, axis=-1)
        if rows:
            at = mx.array(rows)
            tokens[at] = self._draw(logits[at], [requests[row] for row in rows]).astype(tokens.dtype)
        return Chosen(tokens, alternatives(logits, tokens, [request.logprobs for request in requests]))

    def _draw(self, logits: mx.array, requests: Sequence[Request]) -> mx.array:
        params = [request.sampling for request in requests]
        if any(p.repetition_penalty != 1 for p in params):
            logits = apply_repetition_penalty(logits, [r.ids for r in requests], [p.repetition_penalty for p in params])
        # A filter sorts the vocabulary. Without one only the temperature is left, and most requests have no filter.
        scaled = logits.astype(mx.float32) / mx.array([p.temperature or 1.0 for p in params])[:, None]
        if rows := [row for row, p in enumerate(params) if has_filter(p)]:
            at = mx.array(rows)
            scaled[at] = filtered(logits[at], [params[row] for row in rows])
        keys = [self._next_key(request) for request in requests]
        return mx.stack([mx.random.categorical(row, key=key) for row, key in zip(scaled, keys, strict=True)])

    def _next_key(self, request: Request) -> mx.array:
        key = self._keys.get(request)
        self._keys[request], now = mx.random.split(mx.random.key(request.sampling.seed) if key is None else key)
        return now


def is_argmax(params: SamplingParams) -> bool:
    """Whether the token is simply the best one: no draw, and no look at earlier tokens."""
    return params.temperature == 0 and params.repetition_penalty == 1


def has_filter(params: SamplingParams) -> bool:
    """Whether some tokens are hidden; for a temperature of 0 all but the best."""
    return params.temperature == 0 or params.top_k > 0 or params.top_p < 1 or params.min_p > 0


def filtered(logits: mx.array, params: Sequence[SamplingParams]) -> mx.array:
    """`filter_logits` with the parameters of each row."""
    columns = zip(*((p.temperature, p.top_k, p.top_p, p.min_p) for p in params), strict=True)
    return filter_logits(logits, *columns)


def alternatives(logits: mx.array, tokens: mx.array, asked: list[int | None]) -> Alternatives | None:
    """What each row wants to know beside its token; None where no row asked. logits: (n, V), raw."""
    if all(wish is None for wish in asked):
        return None
    scores = log_probabilities(logits)
    ids = mx.argsort(-scores, axis=-1)[:, : max(wish or 0 for wish in asked)]
    chosen = mx.take_along_axis(scores, tokens[:, None].astype(mx.uint32), axis=-1)[:, 0]
    return Alternatives(asked, chosen, ids, mx.take_along_axis(scores, ids, axis=-1))
