"""Larger correct kernels, each in another style: right values, and nothing found, in any order of the threads."""

import mlx.core as mx
import numpy as np
import pytest
from emulator.emulate import run

from course.emulator import metal_kernel as front


@pytest.fixture(params=[0, -1, 11], autouse=True)
def order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = front.launch
    monkeypatch.setattr(front, "launch", lambda *args, **options: launch(*args, **(options | {"order": request.param})))


def _silent(*arguments: object, **options: object) -> np.ndarray:
    out, findings, _ = run(*arguments, **options)
    assert not findings, findings[0]["message"]
    return np.array(out)


TILED_MATMUL = """
template <typename T, int TILE>
struct Tile {
  threadgroup T (*data)[TILE + 1];
  void load(const device T* from, uint2 origin, uint2 size, uint2 at) {
    uint2 p = origin + at;
    data[at.y][at.x] = all(p < size) ? from[p.y * size.x + p.x] : T(0);
  }
};
"""
TILED_MATMUL_BODY = """
constexpr int TILE = 8;
threadgroup float a_data[TILE][TILE + 1];
threadgroup float b_data[TILE][TILE + 1];
Tile<float, TILE> ta = {a_data}, tb = {b_data};
uint M = a_shape[0], K = a_shape[1], N = b_shape[1];
uint2 at = thread_position_in_threadgroup.xy, origin = threadgroup_position_in_grid.xy * TILE;
float sum = 0;
for (uint k = 0; k < K; k += TILE) {
  ta.load(a, uint2(k, origin.y), uint2(K, M), at);
  tb.load(b, uint2(origin.x, k), uint2(N, K), at);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int j = 0; j < TILE; j++) sum = fma(a_data[at.y][j], b_data[j][at.x], sum);
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
uint2 p = origin + at;
if (p.y < M && p.x < N) out[p.y * N + p.x] = sum;
"""


def test_tiled_matmul_with_structs_and_pointers_to_tiles():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((29, 37)).astype(np.float32), rng.standard_normal((37, 19)).astype(np.float32)
    inputs = {"a": mx.array(a), "b": mx.array(b)}
    out = _silent(
        TILED_MATMUL_BODY,
        inputs,
        ((29, 19), mx.float32),
        threads=(24, 32, 1),
        threadgroup=(8, 8, 1),
        header=TILED_MATMUL,
    )
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)


SOFTMAX = """
uint row = threadgroup_position_in_grid.x, t = thread_index_in_threadgroup;
uint lane = thread_index_in_simdgroup, sg = simdgroup_index_in_threadgroup, groups = simdgroups_per_threadgroup;
uint width = x_shape[1], threads = threads_per_threadgroup.x;
threadgroup float greatest[32], total[32];
float m = -INFINITY, s = 0;
for (uint c = t; c < width; c += threads) {
  float v = x[row * width + c], next = max(m, v);
  s = s * exp(m - next) + exp(v - next);
  m = next;
}
float all_m = simd_max(m);
s = simd_sum(m == -INFINITY ? 0.0f : s * exp(m - all_m));
if (simd_is_first()) { greatest[sg] = all_m; total[sg] = s; }
threadgroup_barrier(mem_flags::mem_threadgroup);
float group_m = lane < groups ? greatest[lane] : -INFINITY;
float row_m = simd_max(group_m);
float row_s = simd_sum(lane < groups ? total[lane] * exp(group_m - row_m) : 0.0f);
for (uint c = t; c < width; c += threads) out[row * width + c] = exp(x[row * width + c] - row_m) / row_s;
"""


def test_online_softmax_with_two_levels_of_simd_reductions():
    x = np.random.default_rng(1).standard_normal((5, 300)).astype(np.float32) * 4
    out = _silent(SOFTMAX, {"x": mx.array(x)}, ((5, 300), mx.float32), threads=5 * 128, threadgroup=128)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=2e-6)


SCAN = """
constexpr uint BLOCK = 256;
uint t = thread_index_in_threadgroup, first = threadgroup_position_in_grid.x * BLOCK;
threadgroup int buffers[2][BLOCK];
threadgroup int* from = buffers[0];
threadgroup int* to = buffers[1];
from[t] = x[first + t];
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint step = 1; step < BLOCK; step *= 2) {
  to[t] = from[t] + (t >= step ? from[t - step] : 0);
  threadgroup int* swap = from; from = to; to = swap;
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
out[first + t] = from[t];
"""


def test_prefix_scan_between_two_buffers():
    x = np.random.default_rng(2).integers(-99, 99, 1024).astype(np.int32)
    out = _silent(SCAN, {"x": mx.array(x)}, ((1024,), mx.int32), threads=1024, threadgroup=256)
    np.testing.assert_array_equal(out, np.cumsum(x.reshape(4, 256), 1).ravel())


HISTOGRAM = """
threadgroup atomic_uint local[16];
uint t = thread_index_in_threadgroup;
if (t < 16) atomic_store_explicit(&local[t], 0u, memory_order_relaxed);
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint i = thread_position_in_grid.x; i < uint(x_shape[0]); i += threads_per_grid.x)
  atomic_fetch_add_explicit(&local[x[i] & 15u], 1u, memory_order_relaxed);
threadgroup_barrier(mem_flags::mem_threadgroup);
if (t < 16) {
  uint count = atomic_load_explicit(&local[t], memory_order_relaxed);
  atomic_fetch_add_explicit(&out[t], count, memory_order_relaxed);
}
"""


def test_histogram_with_atomics_in_both_memories():
    x = np.random.default_rng(3).integers(0, 1 << 30, 5000).astype(np.uint32)
    out = _silent(
        HISTOGRAM,
        {"x": mx.array(x)},
        ((16,), mx.uint32),
        threads=4 * 96,
        threadgroup=96,
        init_value=0,
        atomic=True,
    )
    np.testing.assert_array_equal(out, np.bincount(x & 15, minlength=16))


SORT = """
threadgroup float s[512];
uint t = thread_index_in_threadgroup;
s[t] = x[t]; s[t + 256] = x[t + 256];
for (uint size = 2; size <= 512; size *= 2) {
  for (uint gap = size / 2; gap > 0; gap /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint low = 2 * gap * (t / gap) + t % gap;
    bool up = (low & size) == 0;
    float a = s[low], b = s[low + gap];
    if ((a > b) == up) { s[low] = b; s[low + gap] = a; }
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);
out[t] = s[t]; out[t + 256] = s[t + 256];
"""


def test_bitonic_sort():
    x = np.random.default_rng(4).standard_normal(512).astype(np.float32)
    out = _silent(SORT, {"x": mx.array(x)}, ((512,), mx.float32), threads=256, threadgroup=256)
    np.testing.assert_array_equal(out, np.sort(x))


ATTENTION = """
// One simdgroup per query head: scores of 32 keys at a time, kept in registers; heads share keys (GQA).
constexpr int D = 64;
uint head = threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup;
uint lane = thread_index_in_simdgroup;
uint heads = q_shape[0], kv_heads = k_shape[0], length = k_shape[1];
if (head >= heads) return;
const device half* keys = k + head / (heads / kv_heads) * length * D;
const device half* values = v + head / (heads / kv_heads) * length * D;
float2 query = float2(((const device half2*)(q + head * D))[lane]) * rsqrt(float(D));
float m = -INFINITY, s = 0;
float2 sum = 0;
for (uint first = 0; first < length; first += 32) {
  float score = -INFINITY;
  for (uint j = 0; j < 32 && first + j < length; j++) {
    float dots = simd_sum(dot(query, float2(((const device half2*)(keys + (first + j) * D))[lane])));
    if (lane == j) score = dots;
  }
  float next = max(m, simd_max(score)), p = exp(score - next), scale = exp(m - next);
  s = s * scale + simd_sum(p);
  sum *= scale;
  for (uint j = 0; j < 32 && first + j < length; j++)
    sum += simd_broadcast(p, j) * float2(((const device half2*)(values + (first + j) * D))[lane]);
  m = next;
}
((device half2*)(out + head * D))[lane] = half2(sum / s);
"""


def test_attention_with_vectors_of_half():
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for shape in ((6, 64), (2, 45, 64), (2, 45, 64)))
    inputs = {"q": mx.array(q), "k": mx.array(k), "v": mx.array(v)}
    out = _silent(ATTENTION, inputs, ((6, 64), mx.float16), threads=2 * 128, threadgroup=128)
    kk, vv = (np.repeat(x.astype(np.float64), 3, 0) for x in (k, v))
    scores = np.einsum("hd,hld->hl", q.astype(np.float64), kk) / 8
    p = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, np.einsum("hl,hld->hd", p / p.sum(1, keepdims=True), vv), rtol=2e-3, atol=2e-3)
