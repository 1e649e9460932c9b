"""How much of each bin of a time axis is covered by intervals."""

from collections.abc import Sequence

import numpy as np


def within(starts: Sequence[int], ends: Sequence[int], edges: np.ndarray) -> np.ndarray:
    """What intervals, in order and apart from each other, cover between neighbouring edges, (edges - 1)."""
    if not len(starts):
        return np.zeros(len(edges) - 1)
    first, lengths = np.asarray(starts, float), np.asarray(ends, float) - np.asarray(starts, float)
    before = np.concatenate([[0.0], np.cumsum(lengths)])
    at = np.searchsorted(first, edges, side="right")
    last = np.maximum(at - 1, 0)
    covered = before[last] + np.clip(edges - first[last], 0, lengths[last])
    return np.diff(np.where(at == 0, 0.0, covered))
