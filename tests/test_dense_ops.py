"""The steps between plain products in C++: against float64, for dtypes, layouts and positions, and what they refuse."""

import mlx.core as mx
import numpy as np
import pytest

from course.kernels import extension
from course.paths import REFERENCE
from course.variant import build

TOLERANCE = {mx.float32: 1e-5, mx.bfloat16: 1e-2}


@pytest.fixture(scope="module")
def library():
    build(REFERENCE.name)
    return extension(REFERENCE.name)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def draw(rng: np.random.Generator, *shape: int, dtype: mx.Dtype = mx.float32) -> mx.array:
    return mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)


def wide(x: mx.array) -> np.ndarray:
    return np.array(x.astype(mx.float32)).astype(np.float64)


def assert_near(got: mx.array, want: np.ndarray, dtype: mx.Dtype) -> None:
    assert got.dtype == dtype
    assert got.shape == want.shape
    np.testing.assert_allclose(wide(got), want, atol=TOLERANCE[dtype] * np.abs(want).max())


def normed(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps) * weight


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(7,), (1, 1, 256), (3, 5, 33), (300, 1, 64)])
def test_normalise(library, rng, shape, dtype):
    x, weight = draw(rng, *shape, dtype=dtype), draw(rng, shape[-1], dtype=dtype)
    assert_near(library.normalise(x, weight, 1e-3), normed(wide(x), wide(weight), 1e-3), dtype)


def test_normalise_reads_any_layout(library, rng):
    x, weight = draw(rng, 6, 9), draw(rng, 6)
    assert_near(library.normalise(x.T, weight, 1e-6), normed(wide(x).T, wide(weight), 1e-6), mx.float32)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_gated(library, rng, dtype):
    gate, up = draw(rng, 40, 1, 500, dtype=dtype) * 4, draw(rng, 40, 1, 500, dtype=dtype)
    assert_near(library.gated(gate, up), wide(gate) / (1 + np.exp(-wide(gate))) * wide(up), dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("traditional", [False, True])
@pytest.mark.parametrize(("L", "offsets"), [(1, [4, 0, 9]), (3, [2]), (2, [0, 8, 3])])
def test_rotated_heads(library, rng, L, offsets, traditional, dtype):
    H, D = 2, 6
    y, norm = draw(rng, 3, L, H * D, dtype=dtype), draw(rng, D, dtype=dtype)
    angles = rng.uniform(0, 6, (12, D // 2)).astype(np.float32)
    cos, sin = mx.array(np.cos(angles)), mx.array(np.sin(angles))
    heads = normed(wide(y).reshape(3, L, H, D), wide(norm), 1e-6)
    at = np.broadcast_to(np.array(offsets)[:, None] + np.arange(L), (3, L))
    c, s = np.cos(angles.astype(np.float64))[at][:, :, None], np.sin(angles.astype(np.float64))[at][:, :, None]
    want = np.empty_like(heads)
    one, other = (np.s_[..., 0::2], np.s_[..., 1::2]) if traditional else (np.s_[..., : D // 2], np.s_[..., D // 2 :])
    want[one] = heads[one] * c - heads[other] * s
    want[other] = heads[one] * s + heads[other] * c
    got = library.rotated_heads(y, norm, cos, sin, 1e-6, offsets, traditional)
    assert_near(got, want.swapaxes(1, 2), dtype)


def test_what_does_not_fit_is_refused(library, rng):
    y, table = draw(rng, 2, 1, 12), mx.zeros((12, 3))
    with pytest.raises(ValueError, match=r"weight \(3,\) must be \(5,\)"):
        library.normalise(draw(rng, 2, 5), draw(rng, 3), 1e-6)
    with pytest.raises(ValueError, match="one shape and dtype"):
        library.gated(draw(rng, 2, 5), draw(rng, 5, 2))
    with pytest.raises(ValueError, match="does not consist of heads of 5"):
        library.rotated_heads(y, draw(rng, 5), table, table, 1e-6, [0], False)
    with pytest.raises(ValueError, match="3 positions for 2 rows"):
        library.rotated_heads(y, draw(rng, 6), table, table, 1e-6, [0, 1, 2], False)
    with pytest.raises(ValueError, match=r"positions 12 .. 12 are outside 0 .. 11"):
        library.rotated_heads(y, draw(rng, 6), table, table, 1e-6, [0, 12], False)
    with pytest.raises(ValueError, match=r"must be \(positions, 3\) float32"):
        library.rotated_heads(y, draw(rng, 6), table, mx.zeros((12, 4)), 1e-6, [0, 1], False)
    with pytest.raises(ValueError, match="float16"):
        library.normalise(draw(rng, 2, 5, dtype=mx.float16), draw(rng, 5), 1e-6)
