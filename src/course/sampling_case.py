"""Whether a sampled token is the right one, within the rounding of logits: from float64 logits and the request's seed.

The stream of random numbers is that of Week 1's `Sampler`: draw i takes the second half of the i-th split of the seed's
key, and adds Gumbel noise to the filtered logits.
"""

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

_TOLERANCE = 2e-3


def acceptable(
    token: int,
    logits: np.ndarray,
    seen: Sequence[int],
    draw: int,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    repetition_penalty: float = 1.0,
    seed: int = 0,
) -> bool:
    """Whether `token` may be the choice. logits: (V) float64, raw. seen: prompt and output. draw: how many came before.

    A token that a filter may or may not let in, so near is it to the limit, may be chosen or not.
    """
    scores = logits.astype(np.float64)
    ids = np.unique(seen)
    scores[ids] = np.where(scores[ids] > 0, scores[ids] / repetition_penalty, scores[ids] * repetition_penalty)
    if temperature == 0:
        return scores[token] >= scores.max() - _TOLERANCE
    scores = scores / temperature
    noisy = scores + _noise(seed, draw, len(scores))
    surely, perhaps = (_allowed(scores, top_k, top_p, slack) for slack in (-_TOLERANCE, _TOLERANCE))
    return bool(perhaps[token]) and noisy[token] >= noisy[surely].max() - _TOLERANCE


def _allowed(scores: np.ndarray, top_k: int, top_p: float, slack: float) -> np.ndarray:
    """The tokens that the filters let in, with limits that are `slack` wider; the best one always."""
    ranked = np.sort(scores)[::-1]
    allowed = scores >= ranked[(top_k or len(scores)) - 1] - slack
    weights = np.where(allowed, np.exp(scores - ranked[0]), 0)
    weights /= weights.sum()
    before = np.array([weights[scores > score].sum() for score in scores])
    allowed &= (before < top_p + slack) | (top_p >= 1)
    return allowed | (scores == ranked[0])


def _noise(seed: int, draw: int, size: int) -> np.ndarray:
    key = mx.random.key(seed)
    for _ in range(draw + 1):
        key, own = mx.random.split(key)
    return np.array(mx.random.gumbel((size,), key=own)).astype(np.float64)
