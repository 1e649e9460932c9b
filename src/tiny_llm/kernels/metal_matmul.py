"""Python faces of the Metal kernels that multiply with a 4-bit matrix.

Each checks its arguments, states inputs, outputs, grid and threadgroup, and launches kernels of `metal/NAME.metal`,
where their own contracts stand. The packed format is `quantize`'s business.
"""

from collections.abc import Callable

import mlx.core as mx

from course.kernels import metal_kernel

from .metal import check_float, check_threads, in_device_memory
from .quantize import PackedMatrix, quantize

MAX_TOKENS = 8
"""Rows of x that the matrix-vector kernels keep in registers."""
MAX_THREADS = 256
"""Threads in a threadgroup of the matrix-vector kernels: more might not find room for their registers."""
MAX_ROWS = 2**20
"""Rows of x that one product takes: a grid of 2**15 tiles."""
ROWS = 4
"""Rows of w that a simdgroup of the matrix-vector kernels takes."""
TILE = 32
"""Rows and columns of the results that a threadgroup of `quantized_matmul` makes."""

_INPUTS = ["x", "words", "scales", "biases"]
_MATVEC = metal_kernel(__package__, "quantized_matvec", inputs=[*_INPUTS, "rows", "columns"], outputs=["out"])
_MATMUL = metal_kernel(__package__, "quantized_matmul", inputs=[*_INPUTS, "tokens", "rows", "columns"], outputs=["out"])
_SPLIT_K = metal_kernel(__package__, "split_k_matvec", inputs=[*_INPUTS, "rows", "columns"], outputs=["out"])
_REDUCE = metal_kernel(__package__, "split_k_reduce", inputs=["partial", "splits", "size"], outputs=["out"])


def quantized_matvec(x: mx.array, packed: PackedMatrix, threads: int = 64) -> mx.array:
    """x W^T for a few tokens, W packed: each simdgroup takes 4 rows of W, all threads of it walk along them together.

    x: (..., K) with 1 to 8 rows, float32, float16 or bfloat16. packed: (N, K) in 4 bits.
    threads: per threadgroup, a multiple of 32 up to 256.
    Returns (..., N) in the dtype of `x`, summed in float32. Raises ValueError where shapes, dtypes or `threads` do not
    fit.
    """
    tokens, N, K = _check(x, packed, MAX_TOKENS)
    check_threads(threads, 32, MAX_THREADS)
    return _MATVEC(
        inputs=[x, *_parts(packed), N, K],
        template=[("T", x.dtype), ("TOKENS", tokens), ("GROUP", packed.group_size)],
        grid=(_threads_for_rows(N, threads), 1, 1),
        threadgroup=(threads, 1, 1),
        output_shapes=[(*x.shape[:-1], N)],
        output_dtypes=[x.dtype],
    )[0]


def split_k_matvec(x: mx.array, packed: PackedMatrix, splits: int, threads: int = 64) -> mx.array:
    """`quantized_matvec` with K cut into `splits` parts that run side by side, and a second kernel that adds them.

    splits: from 1 to the K / 8 words of a row. Other arguments, result and errors as for `quantized_matvec`.
    """
    tokens, N, K = _check(x, packed, MAX_TOKENS)
    check_threads(threads, 32, MAX_THREADS)
    if not 1 <= splits <= K // 8:
        raise ValueError(f"splits {splits}: expected 1 to {K // 8}, the words in a row of {K} numbers")
    (partial,) = _SPLIT_K(
        inputs=[x, *_parts(packed), N, K],
        template=[("T", x.dtype), ("TOKENS", tokens), ("GROUP", packed.group_size)],
        grid=(_threads_for_rows(N, threads), splits, 1),
        threadgroup=(threads, 1, 1),
        output_shapes=[(splits, tokens, N)],
        output_dtypes=[mx.float32],
    )
    return _REDUCE(
        inputs=[in_device_memory(partial), splits, tokens * N],
        template=[("T", x.dtype)],
        grid=(tokens * N, 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes=[(*x.shape[:-1], N)],
        output_dtypes=[x.dtype],
    )[0]


def quantized_matmul(x: mx.array, packed: PackedMatrix) -> mx.array:
    """x W^T for many tokens, W packed: tiles of 32 x 32 results, multiplied as 8 x 8 matrices by simdgroups.

    x: (..., K) with any number of rows, float32, float16 or bfloat16. packed: (N, K) in 4 bits.
    Returns (..., N) in the dtype of `x`, summed in float32. Raises ValueError where shapes or dtypes do not fit.
    """
    M, N, K = _check(x, packed, MAX_ROWS)
    return _MATMUL(
        inputs=[x, *_parts(packed), M, N, K],
        template=[("T", x.dtype), ("GROUP", packed.group_size)],
        grid=(128 * -(-N // TILE), -(-M // TILE), 1),
        threadgroup=(128, 1, 1),
        output_shapes=[(*x.shape[:-1], N)],
        output_dtypes=[x.dtype],
    )[0]


def _parts(packed: PackedMatrix) -> list[mx.array]:
    return [in_device_memory(part) for part in (packed.words, packed.scales, packed.biases)]


def _threads_for_rows(N: int, threads: int) -> int:
    rows_per_threadgroup = ROWS * threads // 32
    return threads * -(-N // rows_per_threadgroup)


def _check(x: mx.array, packed: PackedMatrix, limit: int) -> tuple[int, int, int]:
    """The sizes (M, N, K) of a product, or ValueError."""
    check_float(x=x)
    if packed.bits != 4 or packed.words.ndim != 2:
        raise ValueError(f"packed holds {packed.bits} bits, words {packed.words.shape}: expected a 4-bit matrix")
    N, K = packed.words.shape[0], packed.words.shape[1] * 8
    if x.ndim == 0 or x.shape[-1] != K:
        raise ValueError(f"x has shape {x.shape}, expected (..., {K}) for a packed matrix of shape ({N}, {K})")
    M = x.size // K
    if not 1 <= M <= limit:
        raise ValueError(f"x has {M} rows, expected 1 to {limit}")
    return M, N, K


EXAMPLES: dict[str, Callable[[], list[mx.array]]] = {
    "quantized_matvec": lambda: [quantized_matvec(mx.ones((1, 256)), _example())],
    "quantized_matmul": lambda: [quantized_matmul(mx.ones((9, 256)), _example())],
    "split_k_matvec": lambda: [split_k_matvec(mx.ones((1, 256)), _example(), splits=4)],
    "split_k_reduce": lambda: [split_k_matvec(mx.ones((1, 256)), _example(), splits=4)],
}


def _example() -> PackedMatrix:
    return quantize(mx.arange(10 * 256.0).reshape(10, 256) / 2560)
