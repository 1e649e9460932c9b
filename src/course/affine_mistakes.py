"""What well-known wrong solutions of group quantisation compute: the rule with one wrong step, by the mistake."""

from collections.abc import Callable

import mlx.core as mx
import numpy as np

from course.affine import Rule


def mistaken(**steps: Callable) -> type[Rule]:
    """A rule that takes some step wrongly."""
    return type("Mistaken", (Rule,), steps)


def away(x: mx.array) -> mx.array:
    """Rounded, half away from zero."""
    return mx.sign(x) * mx.floor(mx.abs(x) + 0.5)


def min_max(self, groups: mx.array, bits: int) -> tuple[mx.array, mx.array]:
    """What the definition says at first sight."""
    low, high = mx.min(groups, axis=-1, keepdims=True), mx.max(groups, axis=-1, keepdims=True)
    return self.step(low, high, bits), low


GRID_MISTAKES = {
    "this is plain min-max: zero is not a level, and the bias is always the low end": mistaken(grid=min_max),
    "the scale has the wrong sign: it points from the edge into the range": mistaken(
        sign=lambda self, low_is_edge, step: mx.where(low_is_edge, -step, step)
    ),
    "the scale is always positive: from the high end it points down": mistaken(
        sign=lambda self, low_is_edge, step: step
    ),
    "the low end was always the edge: it is the end farther from zero": mistaken(
        low_is_edge=lambda self, low, high: low <= high
    ),
    "the high end was always the edge: it is the end farther from zero": mistaken(
        low_is_edge=lambda self, low, high: low > high
    ),
    "the end nearer to zero was the edge": mistaken(low_is_edge=lambda self, low, high: mx.abs(low) < mx.abs(high)),
    "of two equally far ends the low one was the edge: it is the high one": mistaken(
        low_is_edge=lambda self, low, high: mx.abs(low) >= mx.abs(high)
    ),
    "the range was divided by 2^bits: there are 2^bits - 1 steps between 2^bits levels": mistaken(
        step=lambda self, low, high, bits: mx.maximum((high - low) / 2**bits, 1e-7)
    ),
    "the scale is not at least 1e-7": mistaken(step=lambda self, low, high, bits: (high - low) / (2**bits - 1)),
    "the range was taken to be symmetric about zero": mistaken(
        step=lambda self, low, high, bits: mx.maximum(2 * mx.maximum(-low, high) / (2**bits - 1), 1e-7)
    ),
    "the scale was not corrected: it is edge / steps": mistaken(
        corrected=lambda self, edge, scale, steps: (scale, mx.where(steps == 0, 0.0, edge))
    ),
    "the bias was rounded to a step: the edge stays exact and the scale gives way": mistaken(
        corrected=lambda self, edge, scale, steps: (scale, steps * scale)
    ),
    "the bias must be exactly 0 where the edge is 0 steps from zero": mistaken(
        corrected=lambda self, edge, scale, steps: (mx.where(steps == 0, scale, edge / steps), edge)
    ),
    "edge / scale was rounded down, not to the nearest": mistaken(
        steps=lambda self, edge, scale: mx.floor(edge / scale)
    ),
    "edge / scale was rounded towards zero, not to the nearest": mistaken(
        steps=lambda self, edge, scale: mx.sign(edge / scale) * mx.floor(mx.abs(edge / scale))
    ),
    "edge / scale was rounded half away from zero, not half to even": mistaken(
        steps=lambda self, edge, scale: away(edge / scale)
    ),
}
LEVEL_MISTAKES = GRID_MISTAKES | {
    "levels were rounded down, not to the nearest": mistaken(nearest=lambda self, x: mx.floor(x)),
    "levels were rounded half away from zero, not half to even": mistaken(nearest=lambda self, x: away(x)),
    "levels above 2^bits - 1 were not clipped: they spill into the neighbour": mistaken(
        clipped=lambda self, levels, bits: levels
    ),
    "levels above 2^bits - 1 wrapped round to 0: clip them": mistaken(
        clipped=lambda self, levels, bits: levels - 2**bits * mx.floor(levels / 2**bits)
    ),
    "the largest level is 2^bits - 1": mistaken(clipped=lambda self, levels, bits: mx.clip(levels, 0, 2**bits - 2)),
    "groups were dealt out: a group is a run of neighbours": mistaken(
        groups=lambda self, w, group_size: mx.unflatten(self.wide(w), -1, (group_size, -1)).swapaxes(-1, -2)
    ),
    "the arithmetic was done in 16 bits, not in float32": mistaken(wide=lambda self, w: w),
    "levels were computed from the rounded scale and bias that are stored, not from the exact ones": mistaken(
        grid_for_levels=lambda self, scale, bias, dtype: tuple(x.astype(dtype).astype(x.dtype) for x in (scale, bias))
    ),
}


def high_first(levels: np.ndarray, bits: int) -> np.ndarray:
    """The order of levels that a word read from its highest bits has."""
    return levels.reshape(*levels.shape[:-1], -1, 32 // bits)[..., ::-1].reshape(levels.shape)


def bytes_swapped(levels: np.ndarray, bits: int) -> np.ndarray:
    """The order where the bytes of a word are reversed, but not the levels in a byte."""
    return levels.reshape(*levels.shape[:-1], -1, 4, 8 // bits)[..., ::-1, :].reshape(levels.shape)


def nibbles_swapped(levels: np.ndarray, bits: int) -> np.ndarray:
    """The order where the two levels of a byte have changed places."""
    return levels.reshape(*levels.shape[:-1], -1, 8 // bits)[..., ::-1].reshape(levels.shape)


def strided(levels: np.ndarray, bits: int) -> np.ndarray:
    """The order where the levels of a word lie a row's number of words apart."""
    return levels.reshape(*levels.shape[:-1], 32 // bits, -1).swapaxes(-1, -2).reshape(levels.shape)


def gathered(levels: np.ndarray, bits: int) -> np.ndarray:
    """The inverse of `strided`."""
    return levels.reshape(*levels.shape[:-1], -1, 32 // bits).swapaxes(-1, -2).reshape(levels.shape)


ORDERS = {
    "the first level went into the highest bits: it belongs into the lowest": high_first,
    "the bytes of a word are in the wrong order": bytes_swapped,
    "the two levels of a byte changed places: the first one is in its low half": nibbles_swapped,
    "the levels of a word lie a stride apart in the row: they are neighbours": strided,
    "the levels of a row were dealt out to its words one by one: a word holds neighbours": gathered,
}
