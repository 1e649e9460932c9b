"""What the reference's kernels for ragged batches refuse, and that each row of a batch has its own position."""

import mlx.core as mx
import numpy as np
import pytest

from course.paged_case import random_batch
from course.variant import build
from tiny_llm_ref.kernels.cpu import fused_qkv
from tiny_llm_ref.kernels.metal import rope
from tiny_llm_ref.kernels.metal_paged import metal_paged_attention
from tiny_llm_ref.kernels.paged import paged_attention, paged_write
from tiny_llm_ref.kernels.quantize import quantize
from tiny_llm_ref.model.norm import RMSNorm
from tiny_llm_ref.model.rope import RoPE


@pytest.fixture(autouse=True, scope="module")
def built():
    build("tiny_llm_ref")
    mx.set_default_device(mx.cpu)


def batch(**changes: mx.array):
    return random_batch(np.random.default_rng(0), rows=[1, 3], lengths=[20, 9], H=4, H_kv=2, page_size=4) | changes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"table": mx.array([[0, 1, 2, 3, 99, 0], [4, 5, 6, 0, 0, 0]])},
            "request 0 of the batch: page 99 is outside 0 .. ",
        ),
        ({"table": mx.array([[0, 1, 2, 3, 4, 0], [-1, 5, 6, 0, 0, 0]])}, "request 1 of the batch: page -1 is outside"),
        ({"lengths": mx.array([25, 9])}, "request 0 of the batch: 25 keys, but 1 rows and 6 pages of 4"),
        ({"lengths": mx.array([20, 2])}, "request 1 of the batch: 2 keys, but 3 rows"),
        ({"bounds": mx.array([0, 1, 5])}, "bounds must rise from 0 to the 4 rows"),
        ({"bounds": mx.array([0, 5, 4])}, "bounds must rise from 0 to the 4 rows"),
    ],
)
def test_numbers_that_do_not_fit_are_refused_before_anything_is_read(changes, words):
    if "lengths" in changes and int(changes["lengths"][0]) == 25:
        changes = changes | {"table": mx.zeros((2, 6), mx.int32)}
    with pytest.raises(RuntimeError, match=words):
        mx.eval(paged_attention(**batch(**changes)))


@pytest.mark.parametrize("attention", [paged_attention, metal_paged_attention])
@pytest.mark.parametrize(
    "changes",
    [
        {"q": mx.zeros((4, 3, 1, 8))},
        {"q": mx.zeros((4, 4, 2, 8))},
        {"q": mx.zeros((4, 4, 1, 8), mx.bfloat16)},
        {"values": mx.zeros((3, 2, 4, 8))},
        {"bounds": mx.array([0, 4])},
        {"table": mx.zeros((2, 6))},
    ],
)
def test_shapes_and_dtypes_that_do_not_fit_are_refused_at_the_call(attention, changes):
    with pytest.raises(ValueError, match=r"expected|dtype|multiple"):
        attention(**batch(**changes))


def test_a_write_shares_the_memory_of_its_argument():
    inputs = batch()
    del inputs["q"]
    old, new = inputs["keys"], mx.ones((4, 2, 1, 8))
    mx.eval(inputs)
    keys, values = paged_write(new, new, **inputs)
    mx.eval(keys, values)
    assert mx.array_equal(keys, old)
    assert int((keys == 1).all(axis=-1).sum()) == 4 * 2


@pytest.mark.parametrize("positions", [[3, 0, 99, 7, 7], np.array([3, 0, 99, 7, 7])])
def test_each_row_of_a_batch_has_its_own_position(positions):
    rng = np.random.default_rng(0)
    E, H, H_kv, D = 64, 4, 2, 32
    w = [quantize(mx.array(rng.standard_normal((n * D, E)).astype(np.float32)), 32, 4) for n in (H, H_kv, H_kv)]
    norms = [RMSNorm(mx.array(rng.standard_normal(n).astype(np.float32)), 1e-6) for n in (E, D, D)]
    turn = RoPE(D, 100)
    x = mx.array(rng.standard_normal((5, 1, E)).astype(np.float32))
    got = fused_qkv(x, norms[0], *w, *norms[1:], turn, positions)
    for i, position in enumerate(positions):
        want = fused_qkv(x[i : i + 1], norms[0], *w, *norms[1:], turn, int(position))
        for a, b in zip(got, want, strict=True):
            assert mx.allclose(a[i : i + 1], b, rtol=1e-4, atol=1e-3)
    turned = rope(got[0], turn.cos, turn.sin, positions)
    assert mx.allclose(turned, turn(got[0], [int(position) for position in positions]), atol=1e-3)


def test_wrong_positions_are_refused():
    E, D = 64, 32
    w = quantize(mx.ones((D, E)), 32, 4)
    norm, head = RMSNorm(mx.ones(E), 1e-6), RMSNorm(mx.ones(D), 1e-6)
    for positions, words in (([1, 2, 3], "3 positions for 2 rows"), ([0, 100], "positions 100 .. 100 are outside")):
        with pytest.raises(ValueError, match=words):
            fused_qkv(mx.ones((2, 1, E)), norm, w, w, w, head, head, RoPE(D, 100), positions)
