# ruff: noqa: F821
"""Day 7 in another style: NumPy in float64, row by row, and a sampler without state."""

# file: text/sampler.py
import numpy as _np


def _numbers(logits):
    return _np.array(logits.astype(mx.float32), dtype=_np.float64)


def _softmax(x):
    e = _np.exp(x - x.max())
    return e / e.sum()


def log_probabilities(logits):
    """Through logaddexp."""
    x = _numbers(logits)
    return mx.array((x - _np.logaddexp.reduce(x, axis=-1, keepdims=True)).astype(_np.float32))


def apply_repetition_penalty(logits, history, penalties):
    """Token by token."""
    x = _numbers(logits)
    for row, (tokens, penalty) in enumerate(zip(history, penalties, strict=True)):
        for token in set(tokens):
            x[row, token] *= penalty if x[row, token] < 0 else 1 / penalty
    return mx.array(x.astype(_np.float32)).astype(logits.dtype)


def _filter_row(x, temperature, top_k, top_p, min_p):
    best = sorted(range(len(x)), key=lambda token: (-x[token], token))
    if temperature == 0:
        kept = best[:1]
    else:
        x = x / temperature
        kept = best[: top_k or None]
        if top_p < 1:
            total, count = 0.0, 0
            for p in _softmax(x[kept]):
                count += 1
                total += p
                if total >= top_p:
                    break
            kept = kept[:count]
        if min_p > 0:
            shares = _np.exp(x[kept] - x[kept[0]])
            kept = [token for token, share in zip(kept, shares, strict=True) if share >= min_p]
    out = _np.full(len(x), -_np.inf)
    out[kept] = x[kept]
    return out


def filter_logits(logits, temperature, top_k, top_p, min_p):
    """Row by row."""
    rows = map(_filter_row, _numbers(logits), temperature, top_k, top_p, min_p)
    return mx.array(_np.stack(list(rows)).astype(_np.float32))


class Sampler(Sampler):
    """The draw depends on the seed and the length of the history: nothing is kept."""

    def __call__(self, logits, history):
        chosen = []
        x = apply_repetition_penalty(logits, history, [p.repetition_penalty for p in self.params])
        for row, params in enumerate(self.params):
            p = params
            y = _filter_row(_numbers(x)[row], p.temperature, p.top_k, p.top_p, p.min_p)
            random = _np.random.default_rng([params.seed, len(history[row])]).random()
            chosen.append(min(int(_np.searchsorted(_np.cumsum(_softmax(y)), random, side="right")), len(y) - 1))
        return mx.array(chosen)
