# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 3 in another style: NumPy throughout, packing through bytes, one group at a time, layers in float64."""

# file: kernels/quantize.py
import numpy as np


def pack(levels: mx.array, bits: int = 4) -> mx.array:
    """Fill bytes first; a little-endian machine word is four of them."""
    small = np.array(levels).astype(np.uint8)
    if small.shape[-1] * bits % 32:
        raise ValueError(f"a row of {small.shape[-1]} numbers of {bits} bits ends inside a word")
    filled = small if bits == 8 else small[..., 0::2] | small[..., 1::2] << 4
    return mx.array(np.ascontiguousarray(filled).view("<u4").astype(np.uint32))


def unpack(words: mx.array, bits: int = 4) -> mx.array:
    """Bytes, then their halves."""
    filled = np.ascontiguousarray(np.array(words)).astype("<u4").view(np.uint8)
    if bits == 4:
        filled = np.stack([filled & 15, filled >> 4], axis=-1).reshape(*filled.shape[:-1], -1)
    return mx.array(filled.astype(np.uint32))


def quantization_grid(groups: mx.array, bits: int = 4) -> tuple[mx.array, mx.array]:
    """One group after the other, as the formula reads."""
    table = np.array(groups)
    pairs = [_grid_of_one(group, bits) for group in table.reshape(-1, table.shape[-1])]
    scales, biases = np.array(pairs, dtype=np.float32).T.reshape(2, *table.shape[:-1], 1)
    return mx.array(scales), mx.array(biases)


def _grid_of_one(group: np.ndarray, bits: int) -> tuple[np.float32, np.float32]:
    low, high = group.min(), group.max()
    step = max((high - low) / np.float32(2**bits - 1), np.float32(1e-7))
    edge, scale = (high, -step) if abs(high) >= abs(low) else (low, step)
    steps = np.round(edge / scale)
    return (scale, np.float32(0)) if steps == 0 else (edge / steps, edge)


def quantize(w: mx.array, group_size: int = 64, bits: int = 4) -> PackedMatrix:
    """In NumPy's float32."""
    check_sizes(group_size, bits)
    if w.dtype not in (mx.bfloat16, mx.float16, mx.float32):
        raise ValueError(f"only floats can be quantised, not {w.dtype}")
    if w.shape[-1] % group_size != 0:
        raise ValueError(f"{w.shape[-1]} is not a multiple of {group_size}")
    groups = np.array(w.astype(mx.float32)).reshape(*w.shape[:-1], -1, group_size)
    scales, biases = (np.array(x) for x in quantization_grid(mx.array(groups), bits))
    levels = np.rint((groups - biases) / scales).clip(0, 2**bits - 1).astype(np.uint8)
    stored = [mx.array(x[..., 0]).astype(w.dtype) for x in (scales, biases)]
    return PackedMatrix(pack(mx.array(levels.reshape(w.shape)), bits), *stored, group_size, bits)


def dequantize(packed: PackedMatrix, dtype: mx.Dtype | None = None) -> mx.array:
    """In float64, rounded at the end."""
    levels = np.array(unpack(packed.words, packed.bits)).astype(np.float64)
    scales, biases = (np.array(x.astype(mx.float32)).astype(np.float64) for x in (packed.scales, packed.biases))
    per_number = [np.repeat(x, packed.group_size, axis=-1) for x in (scales, biases)]
    return mx.array((levels * per_number[0] + per_number[1]).astype(np.float32)).astype(dtype or packed.scales.dtype)


# file: kernels/packed.py
def _row(packed: PackedMatrix, row: int, dtype: mx.Dtype) -> mx.array:
    """One row, unpacked."""
    one = PackedMatrix(packed.words[row], packed.scales[row], packed.biases[row], packed.group_size, packed.bits)
    return dequantize(one, dtype)


def _product(packed: PackedMatrix, x: mx.array) -> mx.array:
    """In float32 whatever the dtype of x."""
    return (x.astype(mx.float32) @ dequantize(packed, mx.float32).swapaxes(0, 1)).astype(x.dtype)


class QuantizedLinear(QuantizedLinear):
    """One product."""

    def __call__(self, x: mx.array) -> mx.array:
        """Through the transposed matrix."""
        return _product(self.packed, x)


class QuantizedEmbedding(QuantizedEmbedding):
    """A row at a time."""

    def __call__(self, tokens: mx.array) -> mx.array:
        """Stack the rows of all tokens."""
        rows = [_row(self.packed, token, self.dtype) for token in tokens.flatten().tolist()]
        return mx.stack(rows).reshape(*tokens.shape, -1)

    def as_linear(self, x: mx.array) -> mx.array:
        """The same product as a layer's."""
        return _product(self.packed, x)


Packed = QuantizedLinear | QuantizedEmbedding
