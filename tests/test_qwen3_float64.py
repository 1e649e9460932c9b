"""The oracle of the graded tests agrees with transformers, so that a mistake in it cannot pass as the truth."""

import numpy as np
import pytest

from course.checkpoints import Shape, random_weights
from course.golden import GOLDEN_SHAPES, load_golden
from course.qwen3_float64 import Qwen3Float64
from course.qwen3_mistakes import ATTEND_MISTAKES, MODEL_MISTAKES, OUTPUT_MISTAKES, QKV_MISTAKES


@pytest.mark.parametrize("name", GOLDEN_SHAPES)
def test_matches_transformers(name):
    golden = load_golden(name)
    logits = Qwen3Float64(golden.shape, golden.weights).logits(golden.tokens)
    np.testing.assert_allclose(logits, golden.logits, atol=2e-5)


def test_is_float64():
    golden = load_golden(next(iter(GOLDEN_SHAPES)))
    assert Qwen3Float64(golden.shape, golden.weights).logits(golden.tokens).dtype == np.float64


TINY = Shape(hidden=12, layers=2, intermediate=10, heads=4, kv_heads=2, head_dim=6, vocab=11, rope_theta=50.0)


def tiny(kind: type = Qwen3Float64) -> Qwen3Float64:
    return kind(TINY, dict(random_weights(np.random.default_rng(0), TINY)))


@pytest.mark.parametrize("mistake", MODEL_MISTAKES)
def test_mistakes_of_the_model_change_the_logits(mistake):
    tokens = np.arange(10).reshape(2, 5)
    got, want = tiny(MODEL_MISTAKES[mistake]).logits(tokens), tiny().logits(tokens)
    assert got.shape != want.shape or np.abs(got - want).max() > 1e-2


@pytest.mark.parametrize("mistake", [*QKV_MISTAKES, *OUTPUT_MISTAKES, *ATTEND_MISTAKES])
def test_mistakes_of_attention_change_some_step(mistake):
    kind = (QKV_MISTAKES | OUTPUT_MISTAKES | ATTEND_MISTAKES)[mistake]
    rng = np.random.default_rng(1)
    x, heads = rng.standard_normal((2, 5, 12)), rng.standard_normal((2, 4, 5, 6))

    def steps(model: Qwen3Float64) -> list[np.ndarray]:
        q, k, v = heads[:, :, -2:], heads[:, :2], heads[:, 1:3]
        return [*model.qkv(0, x, 3), model.attend(q, k, v), model.output(0, heads)]

    try:
        got = steps(tiny(kind))
    except ValueError:
        return  # with these shapes the mistake cannot even be computed
    assert any(a.shape != b.shape or np.abs(a - b).max() > 1e-2 for a, b in zip(got, steps(tiny()), strict=True))
