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
    per_word = 32 // bits
    if levels.shape[-1] % per_word:
        raise ValueError(f"{levels.shape[-1]} levels of {bits} bits do not fill words of {per_word}")
    shifts = mx.arange(0, 32, bits, dtype=mx.uint32)
    return mx.sum(mx.unflatten(levels.astype(mx.uint32), -1, (-1, per_word)) << shifts, axis=-1)


def unpack(words: mx.array, bits: int = 4) -> mx.array:
    """The inverse of `pack`. words: uint32 (..., W). Returns uint32 (..., W * 32 / bits)."""
    shifts = mx.arange(0, 32, bits, dtype=mx.uint32)
    return ((words[..., None] >> shifts) & mx.array(2**bits - 1, mx.uint32)).flatten(-2)


def quantization_grid(groups: mx.array, bits: int = 4) -> tuple[mx.array, mx.array]:
    """Scale and bias of each group: its levels are bias, bias + scale, ..., bias + (2^bits - 1) * scale.

        edge  = the end of the range that is farther from zero, the maximum if they are equally far
        scale = max(range / (2^bits - 1), 1e-7), pointing from the edge into the range
        steps = round(edge / scale), half to even
        steps != 0:  scale = edge / steps, bias = edge, so zero is a level
        steps == 0:  bias = 0

    groups: float32 (..., group_size). Returns two float32 arrays (..., 1).
    """
    low = mx.min(groups, axis=-1, keepdims=True)
    high = mx.max(groups, axis=-1, keepdims=True)
    low_is_edge = mx.abs(low) > mx.abs(high)
    edge = mx.where(low_is_edge, low, high)
    step = mx.maximum((high - low) / (2**bits - 1), 1e-7)
    scale = mx.where(low_is_edge, step, -step)
    steps = mx.round(edge / scale)
    zero = steps == 0
    return mx.where(zero, scale, edge / steps), mx.where(zero, 0.0, edge)


def quantize(w: mx.array, group_size: int = 64, bits: int = 4) -> PackedMatrix:
    """Quantise each group of `group_size` neighbours in a row, bit for bit as `mx.quantize` does.

    The end of the group's range that is farther from zero (the maximum, if they are equally far) stays exact, and the
    scale is adjusted so that zero is a level; `quantization_grid` has the rule. All arithmetic is float32.
    w: float (..., I), finite. Returns scales and biases in the dtype of `w`.
    Raises ValueError for another dtype, unsupported sizes, or where I is not a multiple of `group_size`.
    """
    check_sizes(group_size, bits)
    if w.dtype not in FLOATS:
        raise ValueError(f"w is {w.dtype}: expected float32, float16 or bfloat16")
    if w.shape[-1] % group_size:
        raise ValueError(f"rows of {w.shape[-1]} numbers do not divide into groups of {group_size}")
    groups = mx.unflatten(w.astype(mx.float32), -1, (-1, group_size))
    scales, biases = quantization_grid(groups, bits)
    # The exact scale, not the rounded one that is stored: that is what MLX does.
    levels = mx.clip(mx.round((groups - biases) / scales), 0, 2**bits - 1)
    words = pack(levels.astype(mx.uint32).flatten(-2), bits)
    return PackedMatrix(words, scales.squeeze(-1).astype(w.dtype), biases.squeeze(-1).astype(w.dtype), group_size, bits)


def dequantize(packed: PackedMatrix, dtype: mx.Dtype | None = None) -> mx.array:
    """Unpack a matrix: scale * level + bias, computed in float32.

    dtype: of the result; None means that of the scales. Returns `packed.shape`.
    """
    levels = mx.unflatten(unpack(packed.words, packed.bits), -1, (-1, packed.group_size)).astype(mx.float32)
    scales, biases = (x[..., None].astype(mx.float32) for x in (packed.scales, packed.biases))
    return (levels * scales + biases).flatten(-2).astype(dtype or packed.scales.dtype)
