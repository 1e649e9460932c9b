"""Python faces of the first Metal kernels: element-wise sum, RMSNorm, RoPE and SwiGLU.

Each checks its arguments, states inputs, outputs, grid and threadgroup, and launches one kernel of `metal/NAME.metal`,
where the kernel's own contract stands. Knows no models.
"""

import math
from collections.abc import Callable, Sequence

import mlx.core as mx
import numpy as np

from course.kernels import metal_kernel

FLOATS = (mx.float32, mx.float16, mx.bfloat16)

_ADD = metal_kernel(__package__, "add", inputs=["x", "y", "size"], outputs=["out"])
_RMS_NORM = metal_kernel(__package__, "rms_norm", inputs=["x", "weight", "eps", "length"], outputs=["out"])
_ROPE = metal_kernel(
    __package__, "rope", inputs=["x", "cosines", "sines", "offsets"], outputs=["out"], ensure_row_contiguous=False
)
_SWIGLU = metal_kernel(__package__, "swiglu", inputs=["gate", "up", "size"], outputs=["out"])

Kernel = Callable[..., list[mx.array]]


def add(x: mx.array, y: mx.array, threads: int = 256) -> mx.array:
    """x + y in one kernel.

    x, y: the same shape and dtype: float32, float16 or bfloat16. threads: per threadgroup, 1 to 1024.
    Returns that shape and dtype. Raises ValueError where shapes, dtypes or `threads` do not fit.
    """
    return _element_wise(_ADD, x, y, threads)


def swiglu(gate: mx.array, up: mx.array, threads: int = 256) -> mx.array:
    """silu(gate) * up in one kernel (Shazeer, 2020). Arguments, result and errors as for `add`."""
    return _element_wise(_SWIGLU, gate, up, threads)


def rms_norm(x: mx.array, weight: mx.array, eps: float, threads: int = 256) -> mx.array:
    """Scale each row to unit root mean square, then by `weight` (Zhang and Sennrich, 2019).

    x: (..., E), float32, float16 or bfloat16. weight: (E,), any of these. eps: added to the mean square.
    threads: per threadgroup, a multiple of 32 up to 1024; one threadgroup works on a row of any length.
    Returns the shape and dtype of `x`. Raises ValueError where shapes, dtypes or `threads` do not fit.
    """
    check_float(x=x, weight=weight)
    check_threads(threads, 32)
    if x.ndim == 0 or weight.shape != x.shape[-1:]:
        raise ValueError(f"weight has shape {weight.shape}, expected one number per feature of x {x.shape}")
    if x.size == 0:
        return x
    length = x.shape[-1]
    # ANCHOR: rms_norm_launch
    return _RMS_NORM(
        inputs=[in_device_memory(x), in_device_memory(weight), float(eps), length],
        template=[("T", x.dtype)],
        grid=(threads, x.size // length, 1),
        threadgroup=(threads, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )[0]
    # ANCHOR_END: rms_norm_launch


def rope(
    x: mx.array,
    cosines: mx.array,
    sines: mx.array,
    offset: int | Sequence[int] | mx.array = 0,
    traditional: bool = False,
    threadgroup: tuple[int, int, int] = (32, 4, 1),
) -> mx.array:
    """Turn each pair of features by the angle of its token's position (Su et al., 2021).

    x: (B, H, L, D), float32, float16 or bfloat16, in any layout: a transposed view is not copied. D even.
    cosines, sines: (P, D / 2) float32, of position 0 .. P - 1: `rope_table` of Week 1, or `RoPE.cos` and `RoPE.sin`.
    offset: position of the first token, one for all rows or B of them (an array of MLX is evaluated).
    traditional: pairs (2i, 2i + 1), otherwise (i, i + D / 2). threadgroup: any shape of up to 1024 threads.
    Returns the shape and dtype of `x`. Raises ValueError where shapes, dtypes or positions do not fit.
    """
    check_float(x=x)
    if x.ndim != 4 or x.shape[-1] % 2:
        raise ValueError(f"x has shape {x.shape}, expected (B, H, L, D) with an even D")
    B, H, L, D = x.shape
    P = cosines.shape[0]
    if cosines.shape != (P, D // 2) or sines.shape != (P, D // 2) or {cosines.dtype, sines.dtype} != {mx.float32}:
        raise ValueError(
            f"tables {cosines.shape} {cosines.dtype} and {sines.shape} {sines.dtype} do not fit x {x.shape}: "
            f"expected (P, {D // 2}) float32 twice"
        )
    offsets = np.full(B, offset) if isinstance(offset, int) else np.array(offset)
    if offsets.shape != (B,):
        raise ValueError(f"offset has shape {offsets.shape}, expected one per row of x: ({B},)")
    if x.size == 0:
        return x
    first, last = offsets.min(), offsets.max()
    if first < 0 or last + L > P:
        raise ValueError(f"positions {first} .. {last + L - 1} are outside the table's 0 .. {P - 1}")
    check_threads(math.prod(threadgroup), 1)
    return _ROPE(
        inputs=[x, mx.contiguous(cosines), mx.contiguous(sines), mx.array(offsets.astype(np.int32))],
        template=[("T", x.dtype), ("TRADITIONAL", traditional)],
        grid=(D // 2, L, B * -(-H // 4)),
        threadgroup=threadgroup,
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )[0]


def check_float(**arrays: mx.array) -> None:
    """Raise ValueError, naming the first array that is not float32, float16 or bfloat16."""
    for name, array in arrays.items():
        if array.dtype not in FLOATS:
            raise ValueError(f"{name} is {array.dtype}, expected float32, float16 or bfloat16")


def check_threads(threads: int, multiple: int, most: int = 1024) -> None:
    """Raise ValueError where `threads` is no multiple of `multiple` from `multiple` to `most`."""
    if not 1 <= threads <= most or threads % multiple:
        raise ValueError(f"threads {threads}: expected a multiple of {multiple} from {multiple} to {most}")


def _element_wise(kernel: Kernel, x: mx.array, y: mx.array, threads: int) -> mx.array:
    check_float(x=x, y=y)
    check_threads(threads, 1)
    if x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError(f"{x.shape} {x.dtype} and {y.shape} {y.dtype} differ: expected one shape and dtype")
    if x.size == 0:
        return x
    return kernel(
        inputs=[in_device_memory(x), in_device_memory(y), x.size],
        template=[("T", x.dtype)],
        grid=(-(-x.size // 4), 1, 1),
        threadgroup=(threads, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )[0]


def in_device_memory(x: mx.array) -> mx.array:
    """MLX passes fewer than 8 numbers in the constant address space, which these kernels do not point to."""
    return x if x.size >= 8 else mx.pad(x.flatten(), (0, 8 - x.size))


EXAMPLES: dict[str, Callable[[], list[mx.array]]] = {
    "add": lambda: [add(mx.arange(10.0), mx.ones(10))],
    "rms_norm": lambda: [rms_norm(mx.arange(200.0).reshape(2, 100), mx.ones(100), 1e-6, threads=64)],
    "rope": lambda: [rope(mx.ones((1, 2, 3, 8)), *_angles(16, 8), offset=5)],
    "swiglu": lambda: [swiglu(mx.arange(-5.0, 5.0), mx.ones(10))],
}


def _angles(positions: int, dims: int) -> tuple[mx.array, mx.array]:
    angles = mx.arange(positions)[:, None] * 10_000.0 ** (-mx.arange(0, dims, 2) / dims)
    return mx.cos(angles), mx.sin(angles)
