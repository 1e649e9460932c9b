# This file is yours to edit. Read book/src/week1-02-positions.md.
"""Rotary position embedding: turn each pair of features by an angle that grows with the position.

    angle(position, i) = position * base^(-2i / D)        (Su et al., 2021)

Two rotated vectors then meet in a dot product that depends on their distance alone.
Knows positions and feature pairs; nothing of attention.
"""

from collections.abc import Sequence

import mlx.core as mx


def rope_table(dims: int, max_positions: int, base: float) -> tuple[mx.array, mx.array]:
    """The cosine and sine of every angle.

    dims: D, even. max_positions: number of rows. base: the slowest pair turns base^(-(D-2)/D) radians per position.
    Returns cos and sin, each (max_positions, D / 2) float32, within float32 rounding of the exact values.
    """
    raise NotImplementedError("Week 1 Day 2 Task 1: rope_table - see book/src/week1-02-positions.md#task-1")


def rotate_pairs(x: mx.array, cos: mx.array, sin: mx.array, traditional: bool) -> mx.array:
    """Turn each pair (a, b) of features to (a cos - b sin, a sin + b cos).

    x: (..., L, D). cos, sin: broadcastable to (..., L, D / 2), float32.
    traditional: pairs are neighbours (2i, 2i + 1), as in the paper; otherwise (i, i + D / 2), as in Llama and Qwen.
    Returns the shape and dtype of `x`; the arithmetic is float32.
    """
    raise NotImplementedError("Week 1 Day 2 Task 2: rotate_pairs - see book/src/week1-02-positions.md#task-2")


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
        raise NotImplementedError("Week 1 Day 2 Task 3: RoPE.__call__ - see book/src/week1-02-positions.md#task-3")
