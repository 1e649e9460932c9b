"""The oracle of attention against MLX's own operator, the likely mistakes against it, and the measure of memory."""

from itertools import combinations

import mlx.core as mx
import numpy as np
import pytest

from course.attention_case import (
    VIEWS,
    attention64,
    dealt,
    online64,
    random_attention,
    steep_attention,
    suspects,
    view_of,
    walk,
)
from course.peak import resident_growth

SIZES = {"B": 2, "H": 6, "H_kv": 3, "L": 5, "S": 23, "D": 8}


def inputs(**sizes) -> tuple[mx.array, mx.array, mx.array]:
    made = random_attention(np.random.default_rng(0), **SIZES | sizes)
    return made["q"], made["k"], made["v"]


@pytest.mark.parametrize(("L", "scale"), [(1, None), (5, 0.7), (23, None)])
def test_oracle_computes_what_mlx_computes(L, scale):
    q, k, v = inputs(L=L)
    want = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale or 8**-0.5, mask="causal")
    assert np.abs(attention64(q, k, v, scale) - np.array(want)).max() < 1e-5


@pytest.mark.parametrize("parts", [walk(23, 1), walk(23, 4), walk(23, 100), dealt(23, 4), dealt(23, 40)])
@pytest.mark.parametrize("L", [1, 5, 30])
def test_walkers_with_an_online_softmax_compute_the_same(L, parts):
    q, k, v = inputs(L=L)
    assert np.abs(online64(q, k, v, None, parts) - attention64(q, k, v)).max() < 1e-12


def test_a_query_that_sees_nothing_gets_zeros():
    result = attention64(*inputs(L=30))
    assert not result[:, :, :7].any()
    assert result[:, :, 7:].all()


@pytest.mark.parametrize("slope", ["rising", "falling", "far above zero", "far below zero"])
def test_steep_scores_lie_where_they_should(slope):
    made = steep_attention(np.random.default_rng(1), slope, **SIZES)
    scores = np.array(made["q"]).reshape(2, 3, -1, 8) @ np.array(made["k"]).swapaxes(-1, -2)
    assert np.abs(scores).max() > 200
    assert (scores.mean() < 0) == (slope == "far below zero")


@pytest.mark.parametrize("parts", [walk(23, 4), dealt(23, 4)])
def test_mistakes_differ_from_the_right_answer_and_from_each_other(parts):
    q, k, v = inputs()
    found = {text: x() if callable(x) else x for text, x in suspects(q, k, v, 0.7, parts).items()}
    assert len(found) >= 16
    right = attention64(q, k, v, 0.7)
    for (one, a), (other, b) in combinations([("right", right), *found.items()], 2):
        assert np.abs(a - b).max() > 1e-3, f"{one} and {other} give the same"


@pytest.mark.parametrize("kind", VIEWS)
def test_views_hold_the_same_numbers_in_another_layout(kind):
    x = inputs()[1]
    assert mx.array_equal(view_of(x, kind), x)


def test_growth_of_memory_is_seen():
    def take(megabytes: int) -> None:
        np.ones(megabytes * 2**20, np.uint8).sum()

    take(200)  # an earlier peak does not hide a later one
    assert resident_growth(lambda: take(64)) > 60 * 2**20
    assert resident_growth(lambda: take(1)) < 20 * 2**20
