"""Golden logits of transformers' Qwen3 on small random models, in float32.

The committed file holds tokens and logits only; the weights are drawn again from the seed. It is written by
`tests/golden/make_transformers_golden.py`, which needs PyTorch and runs in an environment of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from course.checkpoints import Shape, hf_config, random_weights
from course.errors import CourseError
from course.paths import TESTS

GOLDEN_FILE = TESTS / "week_1" / "golden" / "qwen3_logits.npz"

# Every way in which head counts, head size and the output head can relate.
GOLDEN_SHAPES = {
    "grouped-query": Shape(),
    "multi-query, untied head": Shape(kv_heads=1, tied=False, rope_theta=1e4),
    "multi-head": Shape(hidden=36, heads=3, kv_heads=3, head_dim=12, layers=3, rms_norm_eps=1e-5),
    "wide heads": Shape(hidden=32, heads=6, kv_heads=2, head_dim=32, intermediate=40, vocab=64),
}


@dataclass(frozen=True)
class Golden:
    """One model with what transformers computes for it: tokens [B, L] int32, logits [B, L, V] float32."""

    name: str
    shape: Shape
    weights: Mapping[str, np.ndarray]
    tokens: np.ndarray
    logits: np.ndarray

    @property
    def config(self) -> dict[str, object]:
        """The content of config.json."""
        return hf_config(self.shape)


def golden_weights(name: str) -> dict[str, np.ndarray]:
    """The weights of one golden model, float32, by Hugging Face name."""
    seed = list(GOLDEN_SHAPES).index(name)
    return dict(random_weights(np.random.default_rng(seed), GOLDEN_SHAPES[name]))


def fingerprint(weights: Mapping[str, np.ndarray]) -> float:
    """One number that tells whether two machines drew the same weights."""
    return float(sum(np.abs(w, dtype=np.float64).sum() for w in weights.values()))


def load_golden(name: str) -> Golden:
    """The golden model called `name`, a key of GOLDEN_SHAPES."""
    weights = golden_weights(name)
    with np.load(GOLDEN_FILE) as stored:
        want, got = float(stored[f"{name}/fingerprint"]), fingerprint(weights)
        if not np.isclose(want, got, rtol=1e-9):
            raise CourseError(
                f"NumPy {np.__version__} draws other random weights than {GOLDEN_FILE.name} was made with "
                f"(fingerprint {got}, not {want}): run tests/golden/make_transformers_golden.py again"
            )
        return Golden(name, GOLDEN_SHAPES[name], weights, stored[f"{name}/tokens"], stored[f"{name}/logits"])
