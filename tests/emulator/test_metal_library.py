"""The Metal library in C++: numbers, vectors, integers, atomics, as the Metal Shading Language defines them."""

import mlx.core as mx
import numpy as np
import pytest
from emulator.emulate import THREAD, clean, run

FLOAT_FUNCTIONS = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: 10.0**x,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": lambda x: np.arcsin(x / 4),
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "atan": np.arctan,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "fabs": np.abs,
    "abs": np.abs,
    "fract": lambda x: x - np.floor(x),
    "sign": np.sign,
    "saturate": lambda x: np.clip(x, 0, 1),
    "fast::exp": np.exp,
    "precise::log": np.log,
    "metal::sqrt": np.sqrt,
}
TYPES = {"float": (mx.float32, 3e-7), "half": (mx.float16, 2e-3), "bfloat": (mx.bfloat16, 1e-2)}


@pytest.mark.parametrize("kind", TYPES)
def test_functions_of_one_number(kind: str):
    dtype, tolerance = TYPES[kind]
    x = mx.array(np.random.default_rng(0).uniform(0.25, 3.5, 64).astype(np.float32)).astype(dtype)
    exact = np.array(x.astype(mx.float32)).astype(np.float64)
    calls = [f"{name}({'x[t] / ' + kind + '(4)' if name == 'asin' else 'x[t]'})" for name in FLOAT_FUNCTIONS]
    rows = "\n".join(f"out[{k} * 64 + t] = {call};" for k, call in enumerate(calls))
    got = clean(THREAD + rows, {"x": x}, ((len(calls), 64), dtype))
    for row, (name, function) in zip(got, FLOAT_FUNCTIONS.items(), strict=True):
        np.testing.assert_allclose(row, function(exact), rtol=tolerance, atol=tolerance, err_msg=f"{name}({kind})")


def test_functions_of_two_and_three_numbers():
    rng = np.random.default_rng(1)
    x, y, z = (rng.uniform(0.5, 2.0, 64).astype(np.float32) for _ in range(3))
    functions = {
        "pow(a, b)": x**y,
        "powr(a, 2)": x**2,
        "atan2(a, b)": np.arctan2(x, y),
        "fmod(a, b)": np.fmod(x, y),
        "fmin(a, b)": np.minimum(x, y),
        "fmax(a, b)": np.maximum(x, y),
        "copysign(a, -b)": -x,
        "step(a, b)": (y >= x).astype(np.float32),
        "fma(a, b, c)": x * y + z,
        "mix(a, b, c)": x + (y - x) * z,
        "clamp(a, 0.8, 1.2)": np.clip(x, 0.8, 1.2),
        "smoothstep(0.5, 2.0, a)": (s := (x - 0.5) / 1.5) * s * (3 - 2 * s),
        "max3(a, b, c)": np.maximum(x, np.maximum(y, z)),
        "select(a, b, c > 1)": np.where(z > 1, y, x),
        "ldexp(a, 3)": x * 8,
        "as_type<float>(as_type<uint>(a))": x,
    }
    rows = "\n".join(f"out[{k} * 64 + t] = {call};" for k, call in enumerate(functions))
    inputs = {"x": mx.array(x), "y": mx.array(y), "z": mx.array(z)}
    body = f"{THREAD}float a = x[t], b = y[t], c = z[t];\n{rows}"
    got = clean(body, inputs, ((len(functions), 64), mx.float32))
    for row, (call, want) in zip(got, functions.items(), strict=True):
        np.testing.assert_allclose(row, want, rtol=1e-6, atol=1e-6, err_msg=call)


def test_limits_and_special_values():
    values = {
        "INFINITY": np.inf,
        "-INFINITY": -np.inf,
        "numeric_limits<float>::max()": np.finfo(np.float32).max,
        "float(numeric_limits<half>::max())": 65504.0,
        "float(numeric_limits<bfloat>::max())": 3.3895314e38,
        "float(HALF_MAX)": 65504.0,
        "FLT_EPSILON": np.finfo(np.float32).eps,
        "Limits<float>::min": -np.inf,
        "float(Limits<half>::finite_min)": -65504.0,
        "M_PI_F": np.float32(np.pi),
        "float(isnan(NAN))": 1.0,
        "float(isinf(INFINITY) && !isfinite(INFINITY))": 1.0,
        "float(bfloat(1.00390625f))": 1.0,
        "float(bfloat(1.01171875f))": 1.015625,
        "float(half(65520.0f))": np.inf,
        "float(ceildiv(10, 4))": 3.0,
    }
    rows = "\n".join(f"out[{k}] = {text};" for k, text in enumerate(values))
    got = clean(rows, {}, ((len(values),), mx.float32), threads=1, threadgroup=1)
    np.testing.assert_array_equal(got, np.array(list(values.values()), np.float32))


def test_vectors():
    body = f"""{THREAD}
    float4 v = ((const device float4*)x)[t];
    float3 u = v.zyx;
    v.xy = v.yx;
    v.w *= 2;
    v.rg += float2(1, 2);
    half2 h = half2(v.xy);
    float4 joined = float4(u.xy, float2(h)) + float4(1, v.zw, 0) - 1;
    uint2 bits = as_type<uint2>(float2(1, -1)) >> 31;
    bool4 mask = joined > float4(0);
    ((device float4*)out)[t * 4] = v;
    ((device float4*)out)[t * 4 + 1] = joined;
    ((device float4*)out)[t * 4 + 2] = float4(bits.x, bits.y, any(mask), all(mask));
    ((device float4*)out)[t * 4 + 3] = float4(dot(u, u), length(float2(3, 4)), max(v, 0.0f).x, u[1]);
    """
    x = np.random.default_rng(2).integers(-9, 9, (16, 4)).astype(np.float32)
    got = clean(body, {"x": mx.array(x)}, ((16, 4, 4), mx.float32), threads=16, threadgroup=16)
    v = x[:, [1, 0, 2, 3]] * [1, 1, 1, 2] + [1, 2, 0, 0]
    u = x[:, [2, 1, 0]]
    joined = np.stack([u[:, 0], u[:, 1] + v[:, 2] - 1, v[:, 0] + v[:, 3] - 1, v[:, 1] - 1], 1)
    positive = joined > 0
    bits = np.stack([np.zeros(16), np.ones(16), positive.any(1), positive.all(1)], 1)
    rest = np.stack([(u * u).sum(1), np.full(16, 5), np.maximum(v[:, 0], 0), u[:, 1]], 1)
    np.testing.assert_array_equal(got, np.stack([v, joined, bits, rest], 1).astype(np.float32))


def test_packed_vectors_take_no_padding():
    x = np.arange(12, dtype=np.float32)
    body = f"{THREAD}float3 v = ((const device packed_float3*)x)[t]; out[t] = v.x + v.y + v.z;"
    got = clean(body, {"x": mx.array(x)}, ((4,), mx.float32), threads=4, threadgroup=4)
    np.testing.assert_array_equal(got, x.reshape(4, 3).sum(1))


def test_integer_functions():
    x = np.random.default_rng(3).integers(0, 2**32, 64, dtype=np.uint32)
    wide = x.astype(np.uint64)
    functions = {
        "popcount(a)": np.array([int(k).bit_count() for k in x]),
        "clz(a)": np.array([32 - int(k).bit_length() for k in x]),
        "ctz(a | 256u)": np.array([((int(k) | 256) & -(int(k) | 256)).bit_length() - 1 for k in x]),
        "reverse_bits(a)": np.array([int(f"{int(k):032b}"[::-1], 2) for k in x]),
        "rotate(a, 5u)": (wide << 5 | wide >> 27) & 0xFFFFFFFF,
        "extract_bits(a, 7, 9)": x >> 7 & 511,
        "insert_bits(a, 5u, 3, 4)": wide & 0xFFFFFF87 | 5 << 3,
        "mulhi(a, 0x87654321u)": wide * 0x87654321 >> 32,
        "addsat(a, 0x80000000u)": np.minimum(wide + 0x80000000, 0xFFFFFFFF),
        "subsat(a, 0x80000000u)": np.maximum(wide.astype(np.int64) - 0x80000000, 0),
        "hadd(a, 3u)": (wide + 3) >> 1,
        "absdiff(a, 0x80000000u)": np.abs(wide.astype(np.int64) - 0x80000000),
        "max(a, 77u) - min(a, 77u)": np.abs(wide.astype(np.int64) - 77),
        "uint(abs(int(a)))": np.abs(x.view(np.int32).astype(np.int64)),
        "uint(extract_bits(int(a), 28, 4))": (x.view(np.int32) >> 28).view(np.uint32),
    }
    rows = "\n".join(f"out[{k} * 64 + t] = {call};" for k, call in enumerate(functions))
    got = clean(f"{THREAD}uint a = x[t];\n{rows}", {"x": mx.array(x)}, ((len(functions), 64), mx.uint32))
    for row, (call, want) in zip(got, functions.items(), strict=True):
        np.testing.assert_array_equal(row, np.asarray(want).astype(np.uint32), err_msg=call)


@pytest.mark.parametrize(
    ("call", "kind", "start", "expected"),
    [
        ("atomic_fetch_add_explicit(&out[0], 3, memory_order_relaxed)", "int32", -5, -5 + 3 * 200),
        ("atomic_fetch_sub_explicit(&out[0], 1u, memory_order_relaxed)", "uint32", 500, 300),
        ("atomic_fetch_max_explicit(&out[0], int(i), memory_order_relaxed)", "int32", 7, 199),
        ("atomic_fetch_min_explicit(&out[0], int(i) - 50, memory_order_relaxed)", "int32", 7, -50),
        ("atomic_fetch_or_explicit(&out[0], 1u << (i % 20), memory_order_relaxed)", "uint32", 0, (1 << 20) - 1),
        ("atomic_fetch_and_explicit(&out[0], ~(1u << (i % 4)), memory_order_relaxed)", "uint32", 255, 240),
        ("atomic_fetch_xor_explicit(&out[0], 1u, memory_order_relaxed)", "uint32", 6, 6),
        ("atomic_fetch_add_explicit(&out[0], 0.5f, memory_order_relaxed)", "float32", 1, 101),
        ("atomic_store_explicit(&out[0], 9, memory_order_relaxed)", "int32", 1, 9),
        (
            "uint old = atomic_load_explicit(&out[0], memory_order_relaxed);\n"
            "while (!atomic_compare_exchange_weak_explicit(&out[0], &old, old + 2, memory_order_relaxed, "
            "memory_order_relaxed)) {}",
            "uint32",
            10,
            410,
        ),
    ],
)
def test_atomics_in_device_memory(call: str, kind: str, start: int, expected: int):
    body = f"{THREAD}{call};"
    output = ((1,), getattr(mx, kind))
    got = clean(body, {}, output, threads=200, threadgroup=40, init_value=start, atomic=True)
    assert got.tolist() == [expected]


def test_atomics_in_threadgroup_memory_and_their_results():
    body = f"""{THREAD}
    threadgroup atomic_uint next;
    if (t == 0) atomic_store_explicit(&next, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint place = atomic_fetch_add_explicit(&next, 1u, memory_order_relaxed);
    out[threadgroup_position_in_grid.x * 64 + place] = t;
    """
    got = clean(body, {}, ((128,), mx.uint32), threads=128)
    assert sorted(got[:64]) == sorted(got[64:]) == list(range(64)), "every thread draws another place"


def test_index_helpers_of_mlx():
    x = mx.array(np.arange(24, dtype=np.float32).reshape(4, 6))
    body = "uint e = thread_position_in_grid.x; out[e] = x[elem_to_loc(e, x_shape, x_strides, x_ndim)] * 2;"
    got = clean(body, {"x": x}, ((4, 6), mx.float32), threads=24, threadgroup=8)
    np.testing.assert_array_equal(got, np.array(x) * 2)


def test_a_fast_and_a_checked_build_compute_the_same_bits():
    from course.emulator.metal_kernel import metal_kernel

    body = f"{THREAD}out[i] = simd_sum(exp(x[i]) * 0.1f) / (1.0f + x[i] * x[i]);"
    x = mx.array(np.random.default_rng(5).standard_normal(256).astype(np.float32))
    shape = {"output_shapes": [(256,)], "output_dtypes": [mx.float32]}
    (fast,) = metal_kernel("same", ["x"], ["out"], body)(inputs=[x], grid=(256, 1, 1), threadgroup=(64, 1, 1), **shape)
    slow, findings, _ = run(body, {"x": x}, ((256,), mx.float32), threads=256)
    assert not findings
    assert np.array_equal(np.array(fast), np.array(slow))
