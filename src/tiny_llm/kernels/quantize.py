# This file is yours to edit. Read book/src/week2-03-quantise.md.
"""Group-wise affine quantisation: each group of neighbours in a row shares a scale and a bias.

    weight ~ scale * level + bias,    level in 0 .. 2^bits - 1

The layout is MLX's: level `i` of a word stands in its bits `bits * i` and up. Knows matrices, nothing of layers.
"""

from dataclasses import dataclass

import mlx.core as mx

BITS = (4, 8)
GROUP_SIZES = (32, 64, 128)
FLOATS = (mx.float32, mx.float16, mx.bfloat16)


# ANCHOR: packed
@dataclass(frozen=True)
class PackedMatrix:
    """A matrix (O, I) in `bits` per number, plus a scale and a bias per `group_size` numbers of a row.

    words: uint32 (O, I * bits / 32). scales, biases: (O, I / group_size), one float dtype. There may be other leading
    axes than one of O.
    Raises ValueError, naming the value, for shapes and dtypes that do not fit together.
    """

    words: mx.array
    scales: mx.array
    biases: mx.array
    group_size: int = 64
    bits: int = 4
    # ANCHOR_END: packed

    def __post_init__(self) -> None:
        check_sizes(self.group_size, self.bits)
        if self.words.dtype != mx.uint32:
            raise ValueError(f"words are {self.words.dtype}, expected uint32")
        if self.scales.dtype not in FLOATS or self.biases.dtype != self.scales.dtype:
            raise ValueError(f"scales are {self.scales.dtype} and biases {self.biases.dtype}: expected one float dtype")
        groups = (*self.shape[:-1], self.shape[-1] // self.group_size)
        if self.shape[-1] % self.group_size or self.scales.shape != groups or self.biases.shape != groups:
            raise ValueError(
                f"words {self.words.shape}, scales {self.scales.shape} and biases {self.biases.shape} do not fit "
                f"together with {self.bits} bits and groups of {self.group_size}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix, unpacked."""
        return (*self.words.shape[:-1], self.words.shape[-1] * 32 // self.bits)

    @property
    def nbytes(self) -> int:
        """Bytes of words, scales and biases."""
        return self.words.nbytes + self.scales.nbytes + self.biases.nbytes


def check_sizes(group_size: int, bits: int) -> None:
    """Raise ValueError, naming the value, for bits or a group size that MLX's layout does not have."""
    if bits not in BITS:
        raise ValueError(f"bits {bits} is not supported: choose one of {BITS}")
    if group_size not in GROUP_SIZES:
        raise ValueError(f"group_size {group_size} is not supported: choose one of {GROUP_SIZES}")


def pack(levels: mx.array, bits: int = 4) -> mx.array:
    """Pack small numbers into words, the first into the lowest bits.

    levels: integers of any dtype in 0 .. 2^bits - 1, (..., N). Returns uint32 (..., N * bits / 32).
    Raises ValueError where N is not a multiple of 32 / bits.
    """
    raise NotImplementedError("Week 2 Day 3 Task 1: pack - see book/src/week2-03-quantise.md#task-1")


def unpack(words: mx.array, bits: int = 4) -> mx.array:
    """The inverse of `pack`. words: uint32 (..., W). Returns uint32 (..., W * 32 / bits)."""
    raise NotImplementedError("Week 2 Day 3 Task 1: unpack - see book/src/week2-03-quantise.md#task-1")


def quantization_grid(groups: mx.array, bits: int = 4) -> tuple[mx.array, mx.array]:
    """Scale and bias of each group: its levels are bias, bias + scale, ..., bias + (2^bits - 1) * scale.

        edge  = the end of the range that is farther from zero, the maximum if they are equally far
        scale = max(range / (2^bits - 1), 1e-7), pointing from the edge into the range
        steps = round(edge / scale), half to even
        steps != 0:  scale = edge / steps, bias = edge, so zero is a level
        steps == 0:  bias = 0

    groups: float32 (..., group_size). Returns two float32 arrays (..., 1).
    """
    raise NotImplementedError("Week 2 Day 3 Task 2: quantization_grid - see book/src/week2-03-quantise.md#task-2")


def quantize(w: mx.array, group_size: int = 64, bits: int = 4) -> PackedMatrix:
    """Quantise each group of `group_size` neighbours in a row, bit for bit as `mx.quantize` does.

    The end of the group's range that is farther from zero (the maximum, if they are equally far) stays exact, and the
    scale is adjusted so that zero is a level; `quantization_grid` has the rule. All arithmetic is float32.
    w: float (..., I), finite. Returns scales and biases in the dtype of `w`.
    Raises ValueError for another dtype, unsupported sizes, or where I is not a multiple of `group_size`.
    """
    raise NotImplementedError("Week 2 Day 3 Task 2: quantize - see book/src/week2-03-quantise.md#task-2")


def dequantize(packed: PackedMatrix, dtype: mx.Dtype | None = None) -> mx.array:
    """Unpack a matrix: scale * level + bias, computed in float32.

    dtype: of the result; None means that of the scales. Returns `packed.shape`.
    """
    raise NotImplementedError("Week 2 Day 3 Task 2: dequantize - see book/src/week2-03-quantise.md#task-2")
