"""Positions, sizes and indices of threads: 1 to 1,024 threads, odd grids in one to three dimensions."""

import mlx.core as mx
import numpy as np
import pytest
from emulator.emulate import clean, run

from course.emulator.metal_kernel import metal_kernel

_FIELDS = """
uint3 size = threads_per_grid, p = thread_position_in_grid;
uint at = ((p.z * size.y + p.y) * size.x + p.x) * 16;
uint3 q = thread_position_in_threadgroup, g = threadgroup_position_in_grid, n = threads_per_threadgroup;
uint3 m = dispatch_threads_per_threadgroup, groups = threadgroups_per_grid;
uint row[16] = {q.x, q.y, q.z, g.x, g.y, g.z, n.x, n.y, n.z, m.x * m.y * m.z, thread_index_in_threadgroup,
                thread_index_in_simdgroup, simdgroup_index_in_threadgroup, simdgroups_per_threadgroup,
                threads_per_simdgroup, groups.x * groups.y * groups.z};
for (uint k = 0; k < 16; k++) out[at + k] = row[k];
"""


def _expected(grid: tuple[int, int, int], threadgroup: tuple[int, int, int]) -> np.ndarray:
    """The same fields from Metal's definitions; axes z, y, x."""
    z, y, x = np.meshgrid(*(np.arange(n) for n in reversed(grid)), indexing="ij")
    position = np.stack([x, y, z], -1)
    group = position // threadgroup
    inside = position % threadgroup
    size = np.minimum(threadgroup, np.array(grid) - group * threadgroup)
    index = (inside[..., 2] * size[..., 1] + inside[..., 1]) * size[..., 0] + inside[..., 0]
    simdgroups = -(-size.prod(-1) // 32)
    constant = np.ones_like(index)
    groups = np.prod([-(-g // t) for g, t in zip(grid, threadgroup, strict=True)])
    rest = [
        np.prod(threadgroup) * constant,
        index,
        index % 32,
        index // 32,
        simdgroups,
        32 * constant,
        groups * constant,
    ]
    return np.concatenate([inside, group, size, np.stack(rest, -1)], -1)


@pytest.mark.parametrize(
    ("grid", "threadgroup"),
    [
        ((1, 1, 1), (1, 1, 1)),
        ((1000, 1, 1), (256, 1, 1)),
        ((1, 37, 1), (1, 5, 1)),
        ((13, 9, 1), (4, 4, 1)),
        ((7, 5, 3), (3, 2, 2)),
        ((33, 2, 17), (16, 2, 8)),
        ((5, 5, 5), (1, 1, 1)),
        ((1030, 1, 1), (1024, 1, 1)),
    ],
)
def test_positions_and_sizes(grid: tuple[int, int, int], threadgroup: tuple[int, int, int]):
    shape = (*reversed(grid), 16)
    got = clean(_FIELDS, {}, (shape, mx.uint32), threads=grid, threadgroup=threadgroup)
    np.testing.assert_array_equal(got, _expected(grid, threadgroup))


_SUM = """
threadgroup float part[1024];
uint t = thread_index_in_threadgroup, n = threads_per_threadgroup.x;
part[t] = x[thread_position_in_grid.x];
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint width = n; width > 1; width = (width + 1) / 2) {
  if (t < width / 2) part[t] += part[t + (width + 1) / 2];
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
if (t == 0) out[threadgroup_position_in_grid.x] = part[0];
"""


@pytest.mark.parametrize("threads", [1, 2, 3, 17, 31, 32, 33, 63, 64, 65, 100, 255, 256, 511, 777, 1023, 1024])
def test_tree_of_barriers_with_any_number_of_threads(threads: int):
    x = np.random.default_rng(threads).integers(-9, 9, 2 * threads + threads // 2).astype(np.float32)
    groups = -(-len(x) // threads)
    got = clean(_SUM, {"x": mx.array(x)}, ((groups,), mx.float32), threads=len(x), threadgroup=threads)
    want = [x[k * threads : (k + 1) * threads].sum() for k in range(groups)]
    np.testing.assert_array_equal(got, np.array(want, np.float32))


@pytest.mark.parametrize(
    ("grid", "threadgroup", "words"),
    [
        ((64, 1, 1), (1025, 1, 1), "threadgroup"),
        ((64, 1, 1), (64, 32, 1), "1024"),
        ((64, 1, 1), (0, 1, 1), "threadgroup"),
        ((0, 1, 1), (1, 1, 1), "grid"),
        ((64, 1), (1, 1, 1), "three"),
    ],
)
def test_impossible_sizes_are_told_at_the_call(grid: tuple[int, ...], threadgroup: tuple[int, ...], words: str):
    kernel = metal_kernel("sizes", [], ["out"], "out[thread_position_in_grid.x] = 1;")
    with pytest.raises(ValueError, match=words):
        kernel(inputs=[], output_shapes=[(64,)], output_dtypes=[mx.float32], grid=grid, threadgroup=threadgroup)


def test_counters_of_barriers_and_threadgroups():
    _, findings, counters = run(
        "threadgroup_barrier(mem_flags::mem_none); out[thread_position_in_grid.x] = 1;",
        {},
        ((100,), mx.float32),
        threads=100,
        threadgroup=32,
    )
    assert not findings
    assert (counters["threadgroups"], counters["barriers"], counters["dispatches"]) == (4, 4, 1)
