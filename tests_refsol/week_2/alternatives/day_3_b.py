# ruff: noqa: E402, F811, F821 - the other names are those of the reference file that a section is appended to
"""Day 3 in another style: arithmetic for shifts, sorted groups, layers that never form the matrix in one piece."""


# file: kernels/quantize.py
def pack(levels: mx.array, bits: int = 4) -> mx.array:
    """A word is a number whose digits are the levels, in base 2^bits: Horner's rule from the last digit."""
    per_word = 32 // bits
    if levels.shape[-1] % per_word != 0:
        raise ValueError(f"{levels.shape[-1]} is not a multiple of {per_word}")
    digits = levels.astype(mx.uint32).reshape(*levels.shape[:-1], -1, per_word)
    words = mx.zeros(digits.shape[:-1], mx.uint32)
    for i in reversed(range(per_word)):
        words = words * 2**bits + digits[..., i]
    return words


def unpack(words: mx.array, bits: int = 4) -> mx.array:
    """The digits, by repeated division."""
    digits = []
    for _ in range(32 // bits):
        digits.append(words % 2**bits)
        words = words // 2**bits
    return mx.stack(digits, axis=-1).reshape(*words.shape[:-1], -1)


def quantization_grid(groups: mx.array, bits: int = 4) -> tuple[mx.array, mx.array]:
    """Both ends from the sorted group; the far one by arg max of the magnitudes."""
    ordered = mx.sort(groups, axis=-1)
    ends = mx.concatenate([ordered[..., -1:], ordered[..., :1]], axis=-1)  # of equals, the first one wins: the high end
    far = mx.argmax(mx.abs(ends), axis=-1, keepdims=True)
    edge = mx.take_along_axis(ends, far, axis=-1)
    step = mx.maximum((ends[..., :1] - ends[..., 1:]) / (2**bits - 1), 1e-7)
    towards = mx.where(far == 0, -1.0, 1.0)
    steps = mx.round(mx.divide(edge, step * towards))
    safe = mx.where(steps == 0, 1.0, steps)
    return mx.where(steps == 0, step * towards, edge / safe), mx.where(steps == 0, mx.zeros_like(edge), edge)


def quantize(w: mx.array, group_size: int = 64, bits: int = 4) -> PackedMatrix:
    """One column of groups at a time."""
    check_sizes(group_size, bits)
    if not mx.issubdtype(w.dtype, mx.floating) or w.shape[-1] % group_size:
        raise ValueError(f"cannot cut {w.dtype} {w.shape} into groups of {group_size}")
    words, scales, biases = [], [], []
    for start in range(0, w.shape[-1], group_size):
        group = w[..., start : start + group_size].astype(mx.float32)
        scale, bias = quantization_grid(group, bits)
        levels = mx.minimum(mx.round((group - bias) / scale), 2**bits - 1)
        words.append(pack(levels, bits))
        scales.append(scale)
        biases.append(bias)
    parts = [mx.concatenate(x, axis=-1) for x in (words, scales, biases)]
    return PackedMatrix(parts[0], parts[1].astype(w.dtype), parts[2].astype(w.dtype), group_size, bits)


def dequantize(packed: PackedMatrix, dtype: mx.Dtype | None = None) -> mx.array:
    """Scale and bias stretched to the length of a row."""
    stretched = [mx.repeat(x.astype(mx.float32), packed.group_size, axis=-1) for x in (packed.scales, packed.biases)]
    values = unpack(packed.words, packed.bits) * stretched[0] + stretched[1]
    return values.astype(packed.scales.dtype if dtype is None else dtype)


# file: kernels/packed.py
from .quantize import unpack


def _factored(packed: PackedMatrix, x: mx.array) -> mx.array:
    """Per group scale * sum(level * x) + bias * sum(x), as a kernel does it."""
    groups = mx.unflatten(x.astype(mx.float32), -1, (-1, packed.group_size))
    levels = mx.unflatten(unpack(packed.words, packed.bits), -1, (-1, packed.group_size)).astype(mx.float32)
    dots = mx.einsum("...gi,ogi->...og", groups, levels)
    sums = groups.sum(-1)[..., None, :]
    return (dots * packed.scales + sums * packed.biases).sum(-1).astype(x.dtype)


def _look_up(self: QuantizedEmbedding, tokens: mx.array) -> mx.array:
    """Each different row once."""
    packed, flat = self.packed, tokens.reshape(-1)
    rows = sorted(set(flat.tolist()))
    chosen = mx.array(rows)
    parts = [mx.take(x, chosen, axis=0) for x in (packed.words, packed.scales, packed.biases)]
    few = dequantize(PackedMatrix(*parts, packed.group_size, packed.bits), self.dtype)
    places = mx.array([rows.index(token) for token in flat.tolist()])
    return few[places].reshape(*tokens.shape, -1)


QuantizedLinear.__call__ = lambda self, x: _factored(self.packed, x)
QuantizedEmbedding.as_linear = lambda self, x: _factored(self.packed, x)
QuantizedEmbedding.__call__ = _look_up
