"""Rotary position embedding: turn each pair of features by an angle that grows with the position.

    angle(position, i) = position * base^(-2i / D)        (Su et al., 2021)

Two rotated vectors then meet in a dot product that depends on their distance alone.
Knows positions and feature pairs; nothing of attention.
"""

from collections.abc import Sequence

import mlx.core as mx
import numpy as np


def rope_table(dims: int, max_positions: int, base: float) -> tuple[mx.array, mx.array]:
    """The cosine and sine of every angle.

    dims: D, even. max_positions: number of rows. base: the slowest pair turns base^(-(D-2)/D) radians per position.
    Returns cos and sin, each (max_positions, D / 2) float32, within float32 rounding of the exact values.
    """
    frequencies = base ** (-np.arange(0, dims, 2, dtype=np.float64) / dims)
    angles = np.arange(max_positions, dtype=np.float64)[:, None] * frequencies
    return mx.array(np.cos(angles).astype(np.float32)), mx.array(np.sin(angles).astype(np.float32))


def rotate_pairs(x: mx.array, cos: mx.array, sin: mx.array, traditional: bool) -> mx.array:
    """Turn each pair (a, b) of features to (a cos - b sin, a sin + b cos).

    x: (..., L, D). cos, sin: broadcastable to (..., L, D / 2), float32.
    traditional: pairs are neighbours (2i, 2i + 1), as in the paper; otherwise (i, i + D / 2), as in Llama and Qwen.
    Returns the shape and dtype of `x`; the arithmetic is float32.
    """
    wide = x.astype(mx.float32)
    if traditional:
        a, b = wide[..., 0::2], wide[..., 1::2]
        turned = mx.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).flatten(-2)
    else:
        a, b = mx.split(wide, 2, axis=-1)
        turned = mx.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return turned.astype(x.dtype)


class RoPE:
    """Rotary position embedding for one head dimension.

    dims: D, even. max_positions: positions 0 .. max_positions - 1 exist. base: `rope_theta` in a checkpoint.
    traditional: how features pair up, see `rotate_pairs`. Raises ValueError for an odd D.
    """

    def __init__(self, dims: int, max_positions: int, base: float = 10_000.0, traditional: bool = False):
        if dims % 2:
            raise ValueError(f"dims {dims} is odd: RoPE turns pairs of features")
        self.max_positions = max_positions
        self.traditional = traditional
        self.cos, self.sin = rope_table(dims, max_positions, base)

    def __call__(self, x: mx.array, offset: int | slice | Sequence[int] | mx.array = 0) -> mx.array:
        """Rotate `x` according to the positions of its L tokens.

        x: (B, ..., L, D). offset, one of
        - int n: every row holds positions n .. n + L - 1;
        - slice(n, n + L): the same, spelled out, with both ends and no step;
        - sequence or (B,) array of ints: row b holds positions offset[b] .. offset[b] + L - 1.
        Returns the shape and dtype of `x`.
        Raises ValueError for a position outside the table, any other slice, or another number of rows.
        """
        L = x.shape[-2]
        if isinstance(offset, slice):
            start, stop = offset.start or 0, offset.stop
            if stop is None or offset.step not in (None, 1) or stop - start != L:
                raise ValueError(f"{offset} does not name {L} consecutive positions, one per token")
            offset = start
        if not isinstance(offset, int):
            return self._rotate_rows(x, offset)
        self._check(offset, offset + L)
        positions = slice(offset, offset + L)
        return rotate_pairs(x, self.cos[positions], self.sin[positions], self.traditional)

    def _rotate_rows(self, x: mx.array, offset: Sequence[int] | mx.array) -> mx.array:
        B, L = x.shape[0], x.shape[-2]
        offsets = mx.array(offset)
        if offsets.shape != (B,):
            raise ValueError(f"offsets have shape {offsets.shape}, expected one per row: ({B},)")
        # Numbers of the host are checked there: to read them back from the device would wait for all it has to do.
        known = offset.tolist() if isinstance(offset, mx.array) else offset
        self._check(min(known), max(known) + L)
        positions = (offsets[:, None] + mx.arange(L)).reshape(B, *(1,) * (x.ndim - 3), L)
        return rotate_pairs(x, self.cos[positions], self.sin[positions], self.traditional)

    def _check(self, first: int, end: int) -> None:
        if first < 0 or end > self.max_positions:
            raise ValueError(
                f"positions {first} .. {end - 1} are outside 0 .. {self.max_positions - 1}: raise max_positions"
            )
