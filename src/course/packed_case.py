"""What cases about packed matrices share: random ones as plain values, what they stand for, and likely misreadings.

A packed matrix is a dict here: "words", "scales", "biases", "group_size", "bits".
"""

from collections.abc import Callable, Mapping

import mlx.core as mx
import numpy as np

from course.affine import levels_of
from course.affine_mistakes import ORDERS
from course.checkpoint_files import wide
from course.compare import close
from course.judge import name_of
from course.solution import Solution
from course.suspects import Suspects

Matrix = Mapping[str, object]
UNIT = {mx.float32: 2.0**-24, mx.float16: 2.0**-11, mx.bfloat16: 2.0**-8}
"""The largest error of one rounding, as a share of the number."""


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: mx.Dtype = mx.float32, scale=1.0) -> mx.array:
    """Normal numbers."""
    return mx.array((rng.standard_normal(shape) * scale).astype(np.float32)).astype(dtype)


def random_words(rng: np.random.Generator, shape: tuple[int, ...]) -> mx.array:
    """Words of all kinds, the top bit set in half of them."""
    return mx.array(rng.integers(0, 2**32, shape, dtype=np.uint32))


def packed_inputs(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    group_size: int = 32,
    bits: int = 4,
    scales: mx.Dtype = mx.float32,
) -> dict[str, object]:
    """A packed matrix that nobody quantised: any words, scales and biases of both signs."""
    groups = (*shape[:-1], shape[-1] // group_size)
    signs = rng.choice([-1, 1], groups)
    return {
        "words": random_words(rng, (*shape[:-1], shape[-1] * bits // 32)),
        "scales": mx.array((signs * rng.uniform(0.5, 1.5, groups)).astype(np.float32)).astype(scales),
        "biases": normal(rng, groups, scales, 2**bits / 3),
        "group_size": group_size,
        "bits": bits,
    }


def packed_of(solution: Solution, matrix: Matrix):
    """The solution's PackedMatrix of it."""
    parts = (matrix[name] for name in ("words", "scales", "biases", "group_size", "bits"))
    return solution.module("kernels.quantize").PackedMatrix(*parts)


def dense64(matrix: Matrix, order: Callable = lambda levels, bits: levels) -> np.ndarray:
    """The matrix in float64; `order` may disturb its levels."""
    levels = order(levels_of(np.array(matrix["words"]), matrix["bits"]), matrix["bits"])
    scales, biases = (wide(matrix[name]).repeat(matrix["group_size"], axis=-1) for name in ("scales", "biases"))
    return levels * scales + biases


def likely_dense(matrix: Matrix) -> dict[str, np.ndarray | Callable[[], np.ndarray]]:
    """What well-known wrong ways to unpack give, by the mistake."""
    bits, size = matrix["bits"], matrix["group_size"]
    levels = levels_of(np.array(matrix["words"]), bits).astype(np.float64)
    scales, biases = (wide(matrix[name]) for name in ("scales", "biases"))
    scale, bias = scales.repeat(size, axis=-1), biases.repeat(size, axis=-1)
    dealt = np.tile(np.arange(scales.shape[-1]), size)
    signed = np.where(levels < 2 ** (bits - 1), levels, levels - 2**bits)
    halves = mx.array(levels).astype(mx.bfloat16)
    halves = halves * mx.array(scale).astype(mx.bfloat16) + mx.array(bias).astype(mx.bfloat16)
    return {
        "the bias was subtracted": levels * scale - bias,
        "the bias was left out": levels * scale,
        "scale and bias changed places": levels * bias + scale,
        "the bias was added before the scale": (levels + bias) * scale,
        "groups were dealt out: a group is a run of neighbours": levels * scales[..., dealt] + biases[..., dealt],
        "the first group's scale was used for the whole row": levels * scales[..., :1] + bias,
        "the levels were taken as signed": signed * scale + bias,
        "the mask has one bit too few": levels % 2 ** (bits - 1) * scale + bias,
        "the arithmetic was done in bfloat16": lambda: wide(halves),
    } | {text.replace("went into", "was read from"): dense64(matrix, order) for text, order in ORDERS.items()}


def kept_sums(x: np.ndarray, matrix: Matrix) -> np.ndarray:
    """x times the matrix (O, I), where the sum over a group goes on from the group before."""
    groups = wide(matrix["scales"]).shape[-1]
    levels = levels_of(np.array(matrix["words"]), matrix["bits"]).astype(np.float64)
    levels, parts = levels.reshape(len(levels), groups, -1), x.reshape(*x.shape[:-1], groups, -1)
    sums = np.einsum("ogk,...gk->...og", levels, parts).cumsum(-1)
    return (sums * wide(matrix["scales"])).sum(-1) + parts.sum(-1) @ wide(matrix["biases"]).T


def rounding(x: np.ndarray, matrix: Matrix) -> float:
    """The largest error that float32 sums of x times the matrix (O, I) may have, whatever their order.

    4 (1 + sqrt(I)) roundings of the sum of magnitudes |x| (|scale| level + |bias|): errors of both signs mostly cancel,
    so the worst case, I roundings, does not happen, but a number read wrongly or left out is found.
    """
    sizes = dense64({**matrix, "scales": mx.abs(matrix["scales"]), "biases": mx.abs(matrix["biases"])})
    sums = np.abs(x) @ sizes.T
    return 4 * (1 + x.shape[-1] ** 0.5) * UNIT[mx.float32] * float(sums.max(initial=0.0))


def product_suspects(x: np.ndarray, matrix: Matrix) -> dict[str, Callable[[], np.ndarray]]:
    """What well-known mistakes make of x times the matrix."""
    dense, group_size = dense64(matrix), matrix["group_size"]

    def without(columns: slice) -> np.ndarray:
        kept = dense.copy()
        kept[:, columns] = 0
        return x @ kept.T

    groups = x.reshape(*x.shape[:-1], x.shape[-1] // group_size, group_size).sum(-1)
    biases = wide(matrix["biases"])
    scaled = x @ dense64({**matrix, "biases": mx.zeros_like(matrix["biases"])}).T
    misread = {text: lambda w=w: x @ (w() if callable(w) else w).T for text, w in likely_dense(matrix).items()}
    return misread | {
        "the last group of each row is missing": lambda: without(slice(-group_size, None)),
        "the first group of each row is missing": lambda: without(slice(group_size)),
        "the last word of each row is missing": lambda: without(slice(-8, None)),
        "the sum over a group went on from the group before: begin each at zero": lambda: kept_sums(x, matrix),
        "the biases were added as they are, not times the sum of x": lambda: scaled + biases.sum(-1),
        "every group got the bias times the first group's sum of x": lambda: scaled + groups[..., :1] * biases.sum(-1),
        "every token got the first token's sums of x": lambda: (
            scaled + groups.reshape(-1, groups.shape[-1])[:1] @ biases.T
        ),
        "every token got the results of the first one": lambda: np.broadcast_to(
            x.reshape(-1, x.shape[-1])[:1] @ dense.T, (*x.shape[:-1], len(dense))
        ),
        "the scale of the group before was used": lambda: x @ dense64({**matrix, "scales": _turned(matrix, 1)}).T,
        "the scale of the group behind was used": lambda: x @ dense64({**matrix, "scales": _turned(matrix, -1)}).T,
    }


def _turned(matrix: Matrix, by: int) -> mx.array:
    return mx.roll(matrix["scales"], by, axis=-1)


def close_product(
    got: object, x: mx.array, matrix: Matrix, *, suspects: Suspects | None = None, what: str = "result"
) -> None:
    """Raise AssertionError unless `got` is x (..., I) times the transposed matrix, in the dtype of x.

    Allowed are the errors of float32 sums, and one rounding to the nearest number of that dtype. A failure also says
    which rows of the matrix and which tokens, rows of x, are concerned.
    """
    x64 = wide(x)
    want, sums = x64 @ dense64(matrix).T, rounding(x64, matrix)
    allowed = sums + _half_steps(want, x.dtype)
    largest = float(np.abs(want).max(initial=0.0)) or 1.0
    limits = {"tol": float(allowed.max(initial=0.0)) / largest, "dtype": x.dtype, "what": what}
    try:
        close(got, want, **limits)
    except AssertionError:  # only now look for the cause
        try:
            close(got, want, **limits, suspects=product_suspects(x64, matrix) | dict(suspects or {}))
        except AssertionError as error:
            raise AssertionError("\n".join(filter(None, [str(error), places(got, want, allowed)]))) from None
    far = np.abs(wide(got) - want) > allowed
    if far.any():
        raise AssertionError(
            f"{what}: {int(far.sum())} of {far.size} values are near, but not the nearest {name_of(x.dtype)}: "
            f"round once, at the end, and to the nearest; the first: {want[far][0]:.7g} became {wide(got)[far][0]:.7g}"
        )


def _half_steps(x: np.ndarray, dtype: mx.Dtype) -> np.ndarray:
    """Half the distance to the next number of a 16-bit dtype; 0 for float32, whose rounding is that of the sums."""
    return np.exp2(np.floor(np.log2(np.abs(x) + 1e-300))) * (0.0 if dtype == mx.float32 else UNIT[dtype])


def places(got: object, want: np.ndarray, allowed: np.ndarray | float) -> str:
    """A line that says which rows of the matrix and which tokens are wrong; "" for another shape or right values."""
    if not isinstance(got, mx.array) or got.shape != want.shape or not want.size:
        return ""
    wrong = ~(np.abs(wide(got) - want) <= allowed).reshape(-1, want.shape[-1])
    if not wrong.any():  # then it is the dtype
        return ""
    return f"  wrong in {_range(wrong.any(0), 'row')} of the matrix, in {_range(wrong.any(1), 'token')} of x"


def _range(wrong: np.ndarray, what: str) -> str:
    at = np.flatnonzero(wrong)
    if at.size == wrong.size:
        return f"all {what}s"
    if at.size == 1:
        return f"{what} {at[0]} of 0 .. {wrong.size - 1}"
    some = "" if at.size == at[-1] - at[0] + 1 else f"{at.size} of "
    return f"{some}{what}s {at[0]} .. {at[-1]} of 0 .. {wrong.size - 1}"
