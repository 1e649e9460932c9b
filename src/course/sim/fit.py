"""Fits the linear step-time model to measured steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.cost import StepShape

Steps = Sequence[tuple["StepShape", int]]


class Fit(NamedTuple):
    """Of `Linear`, in ms: a, b, c of a + b sum(L) + c sum(L^2), and of a + b sum(context) + c batch."""

    prefill: tuple[float, float, float]
    decode: tuple[float, float, float]


def features(steps: Steps) -> np.ndarray:
    """(steps, 6): what each of the six numbers is multiplied by."""
    rows = []
    for (tokens, context, batch, decode_context, _), _ in steps:
        rows.append((tokens > 0, tokens, 2 * context - tokens, batch > 0, decode_context, batch))
    return np.array(rows, float)


def fit_linear(steps: Steps) -> Fit:
    """The numbers, none below 0, with the least squares of relative errors."""
    taken = np.array([time for _, time in steps]) / 1e6
    design = features(steps) / taken[:, None]
    size = np.maximum(np.abs(design).max(0), 1e-30)
    found = non_negative(design / size, np.ones(len(taken))) / size
    return Fit(tuple(found[:3].tolist()), tuple(found[3:].tolist()))


def non_negative(design: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The x >= 0 with the least |design x - wanted|: the best of all sets of columns, (columns) few."""
    columns = design.shape[1]
    best, least = np.zeros(columns), float(wanted @ wanted)
    for chosen in range(1, 1 << columns):
        kept = [column for column in range(columns) if chosen >> column & 1]
        solution = np.linalg.lstsq(design[:, kept], wanted, rcond=None)[0]
        if (solution < 0).any():
            continue
        left = design[:, kept] @ solution - wanted
        if float(left @ left) < least:
            best, least = np.zeros(columns), float(left @ left)
            best[kept] = solution
    return best


def errors(fit: Fit, steps: Steps) -> np.ndarray:
    """(steps), predicted over measured minus 1."""
    taken = np.array([time for _, time in steps]) / 1e6
    return features(steps) @ np.array([*fit.prefill, *fit.decode]) / taken - 1
