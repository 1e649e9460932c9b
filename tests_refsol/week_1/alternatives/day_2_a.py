"""Day 2 with complex numbers: a rotation is a product with e^(i angle)."""

# file: model/rope.py
import mlx.core as mx
import numpy as np


def rope_table(dims, max_positions, base):
    step = np.exp(1j * np.power(float(base), -2.0 * np.arange(dims // 2) / dims))
    turns = np.power(step[None, :], np.arange(max_positions)[:, None])
    return mx.array(np.ascontiguousarray(turns.real, np.float32)), mx.array(
        np.ascontiguousarray(turns.imag, np.float32)
    )


def rotate_pairs(x, cos, sin, traditional):
    values = np.array(x.astype(mx.float32))
    if not traditional:
        values = np.swapaxes(values.reshape(*values.shape[:-1], 2, -1), -1, -2).reshape(values.shape)
    points = np.ascontiguousarray(values).view(np.complex64) * (np.array(cos) + 1j * np.array(sin))
    turned = np.ascontiguousarray(points.astype(np.complex64)).view(np.float32)
    if not traditional:
        turned = np.concatenate([turned[..., 0::2], turned[..., 1::2]], axis=-1)
    return mx.array(turned).astype(x.dtype)


class RoPE:
    def __init__(self, dims, max_positions, base=10_000.0, traditional=False):
        self.max_positions, self.traditional = max_positions, traditional
        self.cos, self.sin = rope_table(dims, max_positions, base)

    def __call__(self, x, offset=0):
        B, L = x.shape[0], x.shape[-2]
        if isinstance(offset, slice):
            if offset.stop is None or (offset.step or 1) != 1:
                raise ValueError(f"{offset} must be spelled out for {L} tokens, without a step")
            rows = [list(range(offset.start, offset.stop))] * B
        elif isinstance(offset, int):
            rows = [[offset + i for i in range(L)]] * B
        else:
            rows = [[int(n) + i for i in range(L)] for n in offset]
        if len(rows) != B or any(len(row) != L for row in rows):
            raise ValueError(f"got {[len(row) for row in rows]} positions, expected {L} for each of {B} rows")
        for position in (p for row in rows for p in row):
            if not 0 <= position < self.max_positions:
                raise ValueError(f"position {position} is not below {self.max_positions}")
        out = [
            rotate_pairs(x[b], self.cos[mx.array(row)], self.sin[mx.array(row)], self.traditional)
            for b, row in enumerate(rows)
        ]
        return mx.stack(out)
