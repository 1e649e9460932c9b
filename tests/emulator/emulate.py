"""Runs a kernel body in the checked emulator, for tests."""

from collections.abc import Mapping, Sequence

import mlx.core as mx
import numpy as np

from course.emulator.metal_kernel import metal_kernel
from course.kernels import checked

THREAD = "uint t = thread_index_in_threadgroup;\nuint i = thread_position_in_grid.x;\n"
Findings = list[dict[str, str | int | bool]]


def run(
    body: str,
    inputs: Mapping[str, mx.array],
    output: tuple[Sequence[int], mx.Dtype],
    *,
    threads: int | tuple[int, int, int] = 64,
    threadgroup: int | tuple[int, int, int] = 64,
    init_value: float | None = None,
    atomic: bool = False,
    header: str = "",
) -> tuple[mx.array, Findings, dict[str, int]]:
    """The output `out` of one checked launch, its findings and its counters."""
    kernel = metal_kernel("test", list(inputs), ["out"], body, header, atomic_outputs=atomic)
    with checked() as checking:
        (out,) = kernel(
            inputs=list(inputs.values()),
            output_shapes=[output[0]],
            output_dtypes=[output[1]],
            grid=threads if isinstance(threads, tuple) else (threads, 1, 1),
            threadgroup=threadgroup if isinstance(threadgroup, tuple) else (threadgroup, 1, 1),
            init_value=init_value,
        )
        mx.eval(out)
    (launch,) = checking.launches
    return out, launch["findings"], launch["counters"]


def clean(*arguments: object, **options: object) -> np.ndarray:
    """As `run`, for a kernel in which nothing may be found: its output in NumPy, bfloat16 as float32."""
    out, findings, _ = run(*arguments, **options)
    assert not findings, findings[0]["message"]
    return np.array(out.astype(mx.float32) if out.dtype == mx.bfloat16 else out)
