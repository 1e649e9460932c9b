# ruff: noqa: F821
"""Day 7 in a third style: ranks instead of sorted logits, thresholds, and Gumbel noise for the draw."""

# file: text/sampler.py
import math


def _log_sum(x):
    top = mx.max(x, axis=-1, keepdims=True)
    return top + mx.log(mx.sum(mx.exp(x - top), axis=-1, keepdims=True))


def log_probabilities(logits):
    """x minus the logarithm of the sum of exponentials."""
    wide = logits.astype(mx.float32)
    top = mx.max(wide, axis=-1, keepdims=True)
    return (wide - top) - _log_sum(wide - top)


def apply_repetition_penalty(logits, history, penalties):
    """A factor for every logit."""
    rows = []
    for x, tokens, penalty in zip(logits.astype(mx.float32), history, penalties, strict=True):
        seen = mx.zeros(x.shape)
        if len(tokens):
            seen = seen.at[mx.array(sorted(set(tokens)))].add(1.0)
        factor = mx.where(seen > 0, mx.where(x > 0, 1.0 / penalty, penalty), 1.0)
        rows.append(mx.where(factor == 1.0, x, x * factor))
    return mx.stack(rows).astype(logits.dtype)


def filter_logits(logits, temperature, top_k, top_p, min_p):
    """Every filter is a mask over the tokens in their own order."""
    rows = []
    for x, t, k, p, m in zip(logits.astype(mx.float32), temperature, top_k, top_p, min_p, strict=True):
        order = mx.argsort(-x)
        rank = mx.argsort(order)
        if t == 0:
            rows.append(mx.where(rank == 0, x, -mx.inf))
            continue
        x = x * (1 / t) if t != 1 else x
        if k:
            x = mx.where(rank < k, x, -mx.inf)
        if p < 1:
            share = mx.exp(x - _log_sum(x))
            remaining = mx.cumsum(share[order], reverse=True)[rank]  # the token and all after it
            x = mx.where((rank == 0) | (1 - remaining < p), x, -mx.inf)
        if m:
            x = mx.where(x >= mx.max(x) + math.log(m), x, -mx.inf)
        rows.append(x)
    return mx.stack(rows)


def _call(self, logits, history):
    if not hasattr(self, "streams"):
        self.streams = [np.random.default_rng(p.seed) for p in self.params]
    scores = apply_repetition_penalty(logits, history, [p.repetition_penalty for p in self.params])
    names = ("temperature", "top_k", "top_p", "min_p")
    scores = filter_logits(scores, *([getattr(p, name) for p in self.params] for name in names))
    noise = np.stack([stream.gumbel(size=scores.shape[-1]) for stream in self.streams])
    return mx.argmax(scores + mx.array(noise.astype(np.float32)), axis=-1)


Sampler.__call__ = _call
