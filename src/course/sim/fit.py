"""Fits a step-time model to measured steps: `Fitted`, a line of pieces over the tokens of a batch, and two slopes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.cost import StepShape

Steps = Sequence[tuple["StepShape", int]]
ROUNDS = 3
"""Of weighing the errors by what the fit before has predicted."""


class Fit(NamedTuple):
    """Of `Fitted`. tokens: where the line bends; times: microseconds there. sequence, pair: microseconds of each."""

    tokens: tuple[int, ...]
    times: tuple[float, ...]
    sequence: float
    pair: float


def knots(steps: Steps) -> list[int]:
    """Where the line may bend: powers of two, and the largest batch."""
    most = max(shape.prefill_tokens + shape.n_decode for shape, _ in steps)
    return [*(1 << power for power in range(most.bit_length()) if 1 << power < most), most]


def features(steps: Steps, tokens: Sequence[int]) -> np.ndarray:
    """(steps, knots + 2): what each number of the fit is multiplied by."""
    counts = np.array([shape.prefill_tokens + shape.n_decode for shape, _ in steps], float)
    hats = [np.interp(counts, tokens, np.eye(len(tokens))[place]) for place in range(len(tokens))]
    pairs = [float(shape.prefill_context + shape.decode_context) for shape, _ in steps]
    return np.stack([*hats, [float(shape.n_sequences) for shape, _ in steps], pairs], 1)


def measured(steps: Steps) -> np.ndarray:
    """(steps), microseconds."""
    return np.array([time for _, time in steps]) / 1e3


def fit_steps(steps: Steps) -> Fit:
    """The numbers, none below 0, with the least squares of errors over what is predicted.

    Weighed by the prediction, long steps do not drown the short ones; and a step that was disturbed counts as much as
    any, so that sums of many steps come out right.
    """
    tokens, taken = knots(steps), measured(steps)
    design, weight = features(steps, tokens), taken
    for _ in range(ROUNDS):
        found = non_negative(design / weight[:, None], taken / weight)
        weight = np.maximum(design @ found, 1e-3 * taken)
    *times, sequence, pair = found.tolist()
    return Fit(tuple(tokens), tuple(times), sequence, pair)


def non_negative(design: np.ndarray, wanted: np.ndarray, sweeps: int = 2000) -> np.ndarray:
    """The x >= 0 with the least |design x - wanted|, by descent along one number after the other."""
    size = np.maximum(np.sqrt((design**2).sum(0)), 1e-30)
    matrix, right = (design / size).T @ (design / size), (design / size).T @ wanted
    found = np.zeros(len(right))
    for _ in range(sweeps):
        before = found.copy()
        for place in range(len(found)):
            found[place] = max(found[place] + right[place] - matrix[place] @ found, 0.0)
        if np.abs(found - before).max() < 1e-12:
            break
    return found / size


def predicted(fit: Fit, steps: Steps) -> np.ndarray:
    """(steps), microseconds."""
    return features(steps, fit.tokens) @ np.array([*fit.times, fit.sequence, fit.pair])
