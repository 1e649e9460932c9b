"""simdgroup_matrix against NumPy: load, store, fill, multiply, elements of a lane."""

import mlx.core as mx
import numpy as np
import pytest
from emulator.emulate import THREAD, clean

TYPES = {"float": mx.float32, "half": mx.float16, "bfloat": mx.bfloat16}


def _matrix(seed: int, shape: tuple[int, int]) -> np.ndarray:
    """Small integers: exact in every type, and so are their products' sums."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def _run(body: str, inputs: dict[str, np.ndarray], shape: tuple[int, ...], kind: str) -> np.ndarray:
    arrays = {name: mx.array(x).astype(TYPES[kind]) for name, x in inputs.items()}
    return clean(f"{THREAD}{body}", arrays, (shape, TYPES[kind]), threads=32, threadgroup=32)


@pytest.mark.parametrize("kind", TYPES)
def test_multiply_and_accumulate(kind: str):
    a, b, c = (_matrix(seed, (8, 8)) for seed in range(3))
    body = f"""
    simdgroup_{kind}8x8 ma, mb, mc, md, me;
    simdgroup_load(ma, a);
    simdgroup_load(mb, b);
    simdgroup_load(mc, c);
    simdgroup_multiply(md, ma, mb);
    simdgroup_multiply_accumulate(me, ma, mb, mc);
    simdgroup_store(md, out);
    simdgroup_store(me, out + 64);
    """
    got = _run(body, {"a": a, "b": b, "c": c}, (2, 8, 8), kind)
    np.testing.assert_array_equal(got, [a @ b, a @ b + c])


def test_accumulator_in_float_of_half_matrices():
    a, b = (np.random.default_rng(seed).standard_normal((8, 8)).astype(np.float16) for seed in range(2))
    body = f"""{THREAD}
    simdgroup_half8x8 ma, mb;
    simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    simdgroup_load(ma, a);
    simdgroup_load(mb, b);
    for (int n = 0; n < 100; n++) simdgroup_multiply_accumulate(sum, ma, mb, sum);
    simdgroup_store(sum, out);
    """
    arrays = {"a": mx.array(a), "b": mx.array(b)}
    got = clean(body, arrays, ((8, 8), mx.float32), threads=32, threadgroup=32)
    np.testing.assert_allclose(got, 100 * (a.astype(np.float64) @ b.astype(np.float64)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("transpose", [False, True])
def test_load_with_stride_origin_and_transpose(kind: str, transpose: bool):
    x = _matrix(4, (20, 30))
    body = f"""
    simdgroup_{kind}8x8 m;
    simdgroup_load(m, x, 30, ulong2(5, 3), {str(transpose).lower()});
    simdgroup_store(m, out);
    """
    got = _run(body, {"x": x}, (8, 8), kind)
    tile = x[3:11, 5:13]
    np.testing.assert_array_equal(got, tile.T if transpose else tile)


def test_store_with_stride_origin_and_transpose():
    x = _matrix(5, (8, 8))
    body = """
    for (uint k = t; k < 400; k += 32) out[k] = 0;
    simdgroup_barrier(mem_flags::mem_device);
    simdgroup_float8x8 m;
    simdgroup_load(m, x);
    simdgroup_store(m, out, 20, ulong2(2, 1));
    simdgroup_store(m, out, 20, ulong2(11, 10), true);
    """
    want = np.zeros((20, 20), np.float32)
    want[1:9, 2:10] = x
    want[10:18, 11:19] = x.T
    np.testing.assert_array_equal(_run(body, {"x": x}, (20, 20), "float"), want)


def test_fill_diagonal_and_elements_of_a_lane():
    body = """
    simdgroup_float8x8 filled = make_filled_simdgroup_matrix<float, 8, 8>(2.5f), diagonal(3.0f), lanes;
    lanes.thread_elements() = float2(2 * t, 2 * t + 1);
    simdgroup_store(filled, out);
    simdgroup_store(diagonal, out + 64);
    simdgroup_store(lanes, out + 128);
    """
    got = _run(body, {}, (3, 8, 8), "float")
    np.testing.assert_array_equal(got[0], np.full((8, 8), 2.5))
    np.testing.assert_array_equal(got[1], 3 * np.eye(8))
    assert sorted(got[2].ravel()) == list(range(64)), "every lane holds two elements, every element has one lane"
    assert all(row[k + 1] == row[k] + 1 for row in got[2] for k in (0, 2, 4, 6)), "a lane's two are neighbours in a row"


def test_tiles_in_threadgroup_memory():
    a, b = _matrix(6, (8, 8)), _matrix(7, (8, 8))
    body = """
    threadgroup float sa[8][9];
    threadgroup float sb[8][9];
    for (uint k = t; k < 64; k += 32) { sa[k / 8][k % 8] = a[k]; sb[k / 8][k % 8] = b[k]; }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 ma, mb, mc;
    simdgroup_load(ma, &sa[0][0], 9);
    simdgroup_load(mb, &sb[0][0], 9, ulong2(0), true);
    simdgroup_multiply(mc, ma, mb);
    simdgroup_store(mc, out);
    """
    np.testing.assert_array_equal(_run(body, {"a": a, "b": b}, (8, 8), "float"), a @ b.T)
