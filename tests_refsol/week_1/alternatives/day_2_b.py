"""Day 2 in plain Python loops, with tables of full width and one array of positions for every form of offset."""

# file: model/rope.py
import math

import mlx.core as mx


def rope_table(dims, max_positions, base):
    frequencies = [math.exp(-2 * i * math.log(base) / dims) for i in range(dims // 2)]
    rows = [[p * f for f in frequencies] for p in range(max_positions)]
    cos = mx.array([[math.cos(a) for a in row] for row in rows])
    return cos, mx.array([[math.sin(a) for a in row] for row in rows])


def rotate_pairs(x, cos, sin, traditional):
    D = x.shape[-1]
    if traditional:
        cos, sin = mx.repeat(cos, 2, axis=-1), mx.repeat(sin, 2, axis=-1)
        partner = mx.array([i ^ 1 for i in range(D)])
        sign = mx.array([-1.0, 1.0] * (D // 2))
    else:
        cos, sin = mx.concatenate([cos, cos], axis=-1), mx.concatenate([sin, sin], axis=-1)
        partner = mx.array([(i + D // 2) % D for i in range(D)])
        sign = mx.array([-1.0] * (D // 2) + [1.0] * (D // 2))
    wide = x.astype(mx.float32)
    return (wide * cos + mx.take(wide, partner, axis=-1) * sign * sin).astype(x.dtype)


def _first_positions(offset, B, L):
    if isinstance(offset, slice):
        if offset not in (slice(offset.start, offset.start + L), slice(offset.start, offset.start + L, 1)):
            raise ValueError(f"{offset} is not the {L} positions of {L} tokens")
        offset = offset.start
    if isinstance(offset, int):
        return mx.full((B,), offset, dtype=mx.int32)
    if len(offset) != B:
        raise ValueError(f"{len(offset)} offsets for a batch of {B}")
    return mx.array(offset)


def _call(self, x, offset=0):
    B, L = x.shape[0], x.shape[-2]
    first = _first_positions(offset, B, L)
    for n in first.tolist():
        if n < 0:
            raise ValueError(f"offset {n} is negative")
        if n + L > len(self.cos):
            raise ValueError(f"offset {n} and {L} tokens need {n + L} positions, but there are {len(self.cos)}")
    positions = first.reshape(B, *[1] * (x.ndim - 2)) + mx.arange(L)
    return rotate_pairs(x, mx.take(self.cos, positions, axis=0), mx.take(self.sin, positions, axis=0), self.traditional)


RoPE.__call__ = _call  # noqa: F821
