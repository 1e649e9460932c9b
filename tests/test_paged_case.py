"""The oracle of paged attention against MLX's own operator on dense keys, and the likely mistakes against it."""

from itertools import combinations, pairwise

import mlx.core as mx
import numpy as np
import pytest

from course.paged_case import paged64, paged_suspects, poisoned, random_batch

SIZES = {"rows": [1, 5, 1, 2], "lengths": [20, 31, 3, 2], "H": 4, "H_kv": 2, "page_size": 5}


def batch(**sizes):
    return random_batch(np.random.default_rng(0), **SIZES | sizes)


def dense(inputs, i):
    """Keys and values of request i, looked up position by position: (1, H_kv, S, D)."""
    table, size = np.array(inputs["table"]), inputs["keys"].shape[2]
    at = [(int(table[i, s // size]), s % size) for s in range(int(inputs["lengths"][i]))]
    return [mx.stack([inputs[name][page, :, row] for page, row in at], axis=1)[None] for name in ("keys", "values")]


@pytest.mark.parametrize("unused", ["numbers", "nan"])
def test_oracle_computes_what_mlx_computes(unused):
    inputs = batch(unused=unused)
    want = []
    for i, (start, end) in enumerate(pairwise(np.array(inputs["bounds"]).tolist())):
        q = inputs["q"][start:end].swapaxes(0, 2)
        attended = mx.fast.scaled_dot_product_attention(q, *dense(inputs, i), scale=8**-0.5, mask="causal")
        want.append(np.array(attended.swapaxes(0, 2)))
    assert np.abs(paged64(inputs) - np.concatenate(want)).max() < 1e-5


def test_mistakes_differ_from_the_right_answer_and_from_each_other():
    inputs = batch()
    wrong = {text: make() for text, make in paged_suspects(inputs).items()}
    right = paged64(inputs)
    for text, result in wrong.items():
        assert np.abs(result - right).max() > 1e-3, text
    same = [(a, b) for a, b in combinations(wrong, 2) if np.abs(wrong[a] - wrong[b]).max() < 1e-3]
    assert all("positions" in a and "positions" in b for a, b in same), same


def test_slots_that_nobody_owns_can_be_poison():
    inputs = batch(unused="nan")
    assert np.isfinite(paged64(inputs)).all()
    assert np.isnan(np.array(inputs["keys"])).any()
    with pytest.raises(AssertionError, match="row 1, of request 1 with 31 keys in pages of 5"):
        poisoned(mx.array([0.0, np.nan]).reshape(2, 1, 1, 1), inputs)
