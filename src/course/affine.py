"""Affine group quantisation by MLX's rule, step by step, so that a test can take one step wrongly.

Right results come from MLX itself in the tests; this rule only puts a name to wrong ones.
"""

import mlx.core as mx
import numpy as np


class Rule:
    """The rule. Arithmetic is in the dtype of the groups (..., group_size), or in float32 for `quantize`."""

    def low_is_edge(self, low: mx.array, high: mx.array) -> mx.array:
        return mx.abs(low) > mx.abs(high)

    def step(self, low: mx.array, high: mx.array, bits: int) -> mx.array:
        return mx.maximum((high - low) / (2**bits - 1), 1e-7)

    def sign(self, low_is_edge: mx.array, step: mx.array) -> mx.array:
        return mx.where(low_is_edge, step, -step)

    def steps(self, edge: mx.array, scale: mx.array) -> mx.array:
        return mx.round(edge / scale)

    def corrected(self, edge: mx.array, scale: mx.array, steps: mx.array) -> tuple[mx.array, mx.array]:
        return mx.where(steps == 0, scale, edge / steps), mx.where(steps == 0, 0.0, edge)

    def grid(self, groups: mx.array, bits: int) -> tuple[mx.array, mx.array]:
        """Scale and bias of each group: (..., 1)."""
        low, high = mx.min(groups, axis=-1, keepdims=True), mx.max(groups, axis=-1, keepdims=True)
        low_is_edge = self.low_is_edge(low, high)
        edge = mx.where(low_is_edge, low, high)
        scale = self.sign(low_is_edge, self.step(low, high, bits))
        return self.corrected(edge, scale, self.steps(edge, scale))

    def nearest(self, x: mx.array) -> mx.array:
        return mx.round(x)

    def clipped(self, levels: mx.array, bits: int) -> mx.array:
        return mx.clip(levels, 0, 2**bits - 1)

    def wide(self, w: mx.array) -> mx.array:
        return w.astype(mx.float32)

    def groups(self, w: mx.array, group_size: int) -> mx.array:
        return mx.unflatten(self.wide(w), -1, (-1, group_size))

    def grid_for_levels(self, scale: mx.array, bias: mx.array, dtype: mx.Dtype) -> tuple[mx.array, mx.array]:
        return scale, bias

    def quantize(self, w: mx.array, group_size: int, bits: int) -> tuple[np.ndarray, mx.array, mx.array]:
        """Words, scales and biases."""
        groups = self.groups(w, group_size)
        scale, bias = self.grid(groups, bits)
        by, start = self.grid_for_levels(scale, bias, w.dtype)
        levels = self.clipped(self.nearest((groups - start) / by), bits)
        words = words_of(np.array(levels.astype(mx.float32)).reshape(w.shape), bits)
        return words, scale.squeeze(-1).astype(w.dtype), bias.squeeze(-1).astype(w.dtype)


def words_of(levels: np.ndarray, bits: int) -> np.ndarray:
    """Packed: the first level of a word stands in its lowest bits. A level that is too large spills upwards."""
    words = levels.astype(np.int64).reshape(*levels.shape[:-1], -1, 32 // bits)
    return ((words << np.arange(0, 32, bits)).sum(-1) % 2**32).astype(np.uint32)


def levels_of(words: np.ndarray, bits: int) -> np.ndarray:
    """The inverse of `words_of`."""
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    return (words[..., None] >> shifts & np.uint32(2**bits - 1)).reshape(*words.shape[:-1], -1)
