"""Runs malformed kernels in a process of its own: `python -m emulator.fuzz_child FIRST COUNT`.

Prints one line per kernel before it runs and one after, so that a crash or a hang names its seed."""

import sys

import mlx.core as mx
from emulator.mutate import mutate

from course.emulator.errors import KernelError
from course.emulator.metal_kernel import metal_kernel
from course.kernels.checked import checked

SOURCES = [
    """threadgroup float part[32];
uint t = thread_index_in_threadgroup;
float sum = 0.0;
for (uint i = t; i < x_shape[0]; i += threads_per_threadgroup.x) { sum += x[i] * x[i]; }
sum = simd_sum(sum);
if (thread_index_in_simdgroup == 0) { part[simdgroup_index_in_threadgroup] = sum; }
threadgroup_barrier(mem_flags::mem_threadgroup);
float total = simd_sum(t % 32 < simdgroups_per_threadgroup ? part[t % 32] : 0.0f);
for (uint i = t; i < x_shape[0]; i += threads_per_threadgroup.x) { out[i] = T(x[i] * rsqrt(total)); }
""",
    """uint i = thread_position_in_grid.x;
float4 v = float4(x[i], 1, 2, 3);
v.xy = v.zw * 2;
switch (i % 3) { case 0: out[i] = v.x; break; case 1: out[i] = v.y; break; default: out[i] = helper<3>(v.z); }
""",
    """threadgroup T tile[8][8 + 1];
uint2 p = thread_position_in_threadgroup.xy;
for (int j = 0; j < 8; j++) { tile[j][p.x % 8] = x[(j * 8 + p.x) % 64]; }
threadgroup_barrier(mem_flags::mem_threadgroup);
device T* row = out + p.x;
*row = tile[p.x % 8][p.x / 8];
""",
]
HEADER = """#define TWICE(a) ((a) * 2)
struct Pair { float a; float b; float sum() const thread { return a + b; } };
template <int N> float helper(float z) { Pair p; p.a = z; p.b = N; return TWICE(p.sum()); }
constant float table[3] = {1.0, 2.5e-1, 3};
"""


def call(header: str, body: str) -> list[mx.array]:
    """The outputs of a kernel on 64 ones, lazily."""
    return metal_kernel("fuzz", ["x"], ["out"], body, header)(
        inputs=[mx.ones(64)],
        template=[("T", mx.float32)],
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(64,)],
        output_dtypes=[mx.float32],
    )


def run(seed: int) -> str:
    """What became of the kernel: an error's first line, or how it ran."""
    text = f"{HEADER}// body\n{SOURCES[seed % len(SOURCES)]}"
    header, _, body = mutate(text, seed).partition("// body\n")
    header, body = f'#line 1 "fuzz.metal"\n{header}', f'#line {header.count(chr(10)) + 2} "fuzz.metal"\n{body}'
    try:
        with checked() as launches:
            mx.eval(call(header, body))
    except KernelError as error:
        placed = all(problem.file and problem.line > 0 for problem in error.problems) and error.problems
        return f"{'error' if placed else 'PLACELESS'} {str(error).splitlines()[0]}"
    return f"ran with {len(launches.findings())} findings"


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        print(seed, end=" ", flush=True)
        print(run(seed), flush=True)
