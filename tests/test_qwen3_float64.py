"""The oracle of the graded tests agrees with transformers, so that a mistake in it cannot pass as the truth."""

import numpy as np
import pytest

from course.golden import GOLDEN_SHAPES, load_golden
from course.qwen3_float64 import Qwen3Float64


@pytest.mark.parametrize("name", GOLDEN_SHAPES)
def test_matches_transformers(name):
    golden = load_golden(name)
    logits = Qwen3Float64(golden.shape, golden.weights).logits(golden.tokens)
    np.testing.assert_allclose(logits, golden.logits, atol=2e-5)


def test_is_float64():
    golden = load_golden(next(iter(GOLDEN_SHAPES)))
    assert Qwen3Float64(golden.shape, golden.weights).logits(golden.tokens).dtype == np.float64
