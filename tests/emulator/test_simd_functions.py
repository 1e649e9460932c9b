"""Every simd_* and quad_* function against NumPy, for each element type and for partial simdgroups."""

import mlx.core as mx
import numpy as np
import pytest
from emulator.emulate import THREAD, clean

LANES = 32

# name -> (expression over `v` (own value) and `w` (another), result from the simdgroup's v and w)
Rows = np.ndarray


def _down(v: Rows, delta: int) -> Rows:
    """Lane i gets v[i + delta]; lanes that would read beyond the last keep their own."""
    return np.concatenate([v[delta:], v[len(v) - delta :]])


def _up(v: Rows, delta: int) -> Rows:
    return np.concatenate([v[:delta], v[: len(v) - delta]])


def _tree(v: Rows) -> float:
    """The sum in the order of xor-shuffles, rounded to the type at every step."""
    while len(v) > 1:
        v = v[: len(v) // 2] + v[len(v) // 2 :]
    return v[0]


def _quads(v: Rows) -> Rows:
    return v.reshape(-1, 4)


ARITHMETIC = {
    "simd_sum": ("simd_sum(v)", lambda v, w: np.full_like(v, _tree(v))),
    "simd_product": ("simd_product(v)", lambda v, w: np.full_like(v, v.astype(np.float64).prod())),
    "simd_max": ("simd_max(v)", lambda v, w: np.full_like(v, v.max())),
    "simd_min": ("simd_min(v)", lambda v, w: np.full_like(v, v.min())),
    "simd_broadcast": ("simd_broadcast(v, 7)", lambda v, w: np.full_like(v, v[7])),
    "simd_broadcast_first": ("simd_broadcast_first(v)", lambda v, w: np.full_like(v, v[0])),
    "simd_shuffle": ("simd_shuffle(v, (lane * 5 + 3) % 32)", lambda v, w: v[(np.arange(LANES) * 5 + 3) % 32]),
    "simd_shuffle_xor": ("simd_shuffle_xor(v, 5)", lambda v, w: v[np.arange(LANES) ^ 5]),
    "simd_shuffle_up": ("simd_shuffle_up(v, 3)", lambda v, w: _up(v, 3)),
    "simd_shuffle_down": ("simd_shuffle_down(v, 9)", lambda v, w: _down(v, 9)),
    "simd_shuffle_rotate_up": ("simd_shuffle_rotate_up(v, 4)", lambda v, w: np.roll(v, 4)),
    "simd_shuffle_rotate_down": ("simd_shuffle_rotate_down(v, 6)", lambda v, w: np.roll(v, -6)),
    "simd_shuffle_and_fill_up": (
        "simd_shuffle_and_fill_up(v, w, 3)",
        lambda v, w: np.concatenate([w[-3:], v[:-3]]),
    ),
    "simd_shuffle_and_fill_down": (
        "simd_shuffle_and_fill_down(v, w, 3)",
        lambda v, w: np.concatenate([v[3:], w[:3]]),
    ),
    "simd_prefix_inclusive_sum": ("simd_prefix_inclusive_sum(v)", lambda v, w: np.cumsum(v, dtype=v.dtype)),
    "simd_prefix_exclusive_sum": (
        "simd_prefix_exclusive_sum(v)",
        lambda v, w: np.concatenate([[0], np.cumsum(v, dtype=v.dtype)[:-1]]),
    ),
    "simd_prefix_inclusive_product": (
        "simd_prefix_inclusive_product(v)",
        lambda v, w: np.cumprod(v, dtype=v.dtype),
    ),
    "simd_prefix_exclusive_product": (
        "simd_prefix_exclusive_product(v)",
        lambda v, w: np.concatenate([[1], np.cumprod(v, dtype=v.dtype)[:-1]]),
    ),
    "quad_sum": ("quad_sum(v)", lambda v, w: np.repeat([_tree(q) for q in _quads(v)], 4)),
    "quad_max": ("quad_max(v)", lambda v, w: np.repeat(_quads(v).max(1), 4)),
    "quad_min": ("quad_min(v)", lambda v, w: np.repeat(_quads(v).min(1), 4)),
    "quad_broadcast": ("quad_broadcast(v, 2)", lambda v, w: np.repeat(_quads(v)[:, 2], 4)),
    "quad_shuffle_xor": ("quad_shuffle_xor(v, 1)", lambda v, w: _quads(v)[:, [1, 0, 3, 2]].ravel()),
    "quad_shuffle_down": ("quad_shuffle_down(v, 1)", lambda v, w: _quads(v)[:, [1, 2, 3, 3]].ravel()),
    "quad_shuffle_up": ("quad_shuffle_up(v, 1)", lambda v, w: _quads(v)[:, [0, 0, 1, 2]].ravel()),
}
BITS = {
    "simd_and": ("simd_and(v)", lambda v, w: np.full_like(v, np.bitwise_and.reduce(v))),
    "simd_or": ("simd_or(v)", lambda v, w: np.full_like(v, np.bitwise_or.reduce(v))),
    "simd_xor": ("simd_xor(v)", lambda v, w: np.full_like(v, np.bitwise_xor.reduce(v))),
    "quad_or": ("quad_or(v)", lambda v, w: np.repeat(np.bitwise_or.reduce(_quads(v), axis=1), 4)),
}
TYPES = {
    "float": (mx.float32, np.float32, ARITHMETIC),
    "half": (mx.float16, np.float16, ARITHMETIC),
    "int": (mx.int32, np.int32, ARITHMETIC | BITS),
    "uint": (mx.uint32, np.uint32, ARITHMETIC | BITS),
    "short": (mx.int16, np.int16, ARITHMETIC | BITS),
    "uchar": (mx.uint8, np.uint8, ARITHMETIC | BITS),
}


def _body(expressions: list[str], kind: str) -> str:
    """All expressions in one kernel, which is quicker to compile: row k of `out` is the k-th one."""
    rows = "\n".join(f"out[{k} * 64 + t] = {text};" for k, text in enumerate(expressions))
    return f"{THREAD}uint lane = thread_index_in_simdgroup;\n{kind} v = x[t], w = y[t];\n{rows}"


@pytest.mark.parametrize("kind", TYPES)
def test_function_of_a_whole_simdgroup(kind: str):
    dtype, numpy_dtype, functions = TYPES[kind]
    rng = np.random.default_rng(1)
    # Small integers and powers of two: sums and products are exact, so the order of operations does not show.
    x = rng.choice([1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 64).astype(numpy_dtype)
    y = rng.integers(0, 9, 64).astype(numpy_dtype)
    inputs = {"x": mx.array(x), "y": mx.array(y)}
    got = clean(_body([text for text, _ in functions.values()], kind), inputs, ((len(functions), 64), dtype))
    for row, (name, (_, expected)) in zip(got, functions.items(), strict=True):
        want = np.concatenate([expected(x[:32], y[:32]), expected(x[32:], y[32:])]).astype(numpy_dtype)
        np.testing.assert_array_equal(row, want, err_msg=f"{name}({kind})")


def test_bfloat_functions():
    x = np.random.default_rng(2).integers(-8, 8, 64).astype(np.float32)
    texts = ["simd_sum(v)", "simd_max(v)", "simd_shuffle_down(v, 1)", "simd_prefix_inclusive_sum(v)"]
    inputs = {"x": mx.array(x).astype(mx.bfloat16), "y": mx.zeros(64, mx.bfloat16)}
    got = clean(_body(texts, "bfloat"), inputs, ((4, 64), mx.bfloat16))
    for first in (0, 32):
        v, of = x[first : first + 32], slice(first, first + 32)
        np.testing.assert_array_equal(got[0, of], np.full(32, v.sum()))
        np.testing.assert_array_equal(got[1, of], np.full(32, v.max()))
        np.testing.assert_array_equal(got[2, of], _down(v, 1))
        np.testing.assert_array_equal(got[3, of], np.cumsum(v))


def test_vectors_are_reduced_by_component():
    x = np.random.default_rng(3).integers(-8, 8, (32, 4)).astype(np.float32)
    body = f"{THREAD}float4 v = simd_sum(((const device float4*)x)[t]);\nout[t * 2] = v.x; out[t * 2 + 1] = v.w;"
    got = clean(body, {"x": mx.array(x)}, ((32, 2), mx.float32), threads=32, threadgroup=32)
    np.testing.assert_array_equal(got, np.tile(x.sum(0)[[0, 3]], (32, 1)))


def test_votes():
    body = f"""{THREAD}
    bool p = t % 3 == 0;
    ulong votes = (ulong)simd_ballot(p);
    ulong active = (ulong)simd_active_threads_mask();
    out[t * 6] = uint(votes);
    out[t * 6 + 1] = uint(active);
    out[t * 6 + 2] = simd_any(t == 40);
    out[t * 6 + 3] = simd_all(t < 40);
    out[t * 6 + 4] = simd_is_first();
    out[t * 6 + 5] = simd_ballot(true).all();
    """
    got = clean(body, {}, ((64, 6), mx.uint32))
    t = np.arange(64)
    for first in (0, 32):
        lanes = t[first : first + 32]
        mask = sum(1 << k for k, lane in enumerate(lanes) if lane % 3 == 0)
        want = [np.full(32, mask), np.full(32, 0xFFFFFFFF), np.full(32, first == 32), np.full(32, first == 0)]
        want += [lanes == first, np.full(32, 1)]
        np.testing.assert_array_equal(got[first : first + 32], np.stack(want, 1).astype(np.uint32))


@pytest.mark.parametrize("threads", [1, 7, 31, 33, 50])
def test_a_short_last_simdgroup_reduces_what_it_has(threads: int):
    """No finding either: all lanes that exist are there."""
    x = np.arange(1, threads + 1, dtype=np.float32)
    body = f"{THREAD}out[t * 3] = simd_sum(x[t]); out[t * 3 + 1] = simd_max(x[t]); out[t * 3 + 2] = simd_min(x[t]);"
    got = clean(body, {"x": mx.array(x)}, ((threads, 3), mx.float32), threads=threads, threadgroup=threads)
    for first in range(0, threads, 32):
        part = x[first : first + 32]
        np.testing.assert_array_equal(
            got[first : first + 32], np.tile([part.sum(), part.max(), part.min()], (len(part), 1))
        )


def test_different_simdgroups_may_call_different_functions():
    body = f"""{THREAD}
    float v = 1;
    if (simdgroup_index_in_threadgroup == 0) v = simd_sum(v);
    else v = simd_product(v) + simd_sum(v);
    out[t] = v;
    """
    got = clean(body, {}, ((64,), mx.float32))
    np.testing.assert_array_equal(got, [32.0] * 32 + [33.0] * 32)
