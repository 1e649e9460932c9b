"""When numbers count as equal: values in float64, a tolerance relative to the largest finite value expected."""

from dataclasses import dataclass

import mlx.core as mx
import numpy as np

_TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "complex64": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


@dataclass(frozen=True)
class Judge:
    """What counts as equal: `limit` is the largest difference allowed."""

    limit: float

    def wrong(self, got: np.ndarray, want: np.ndarray) -> np.ndarray:
        """Mask of the elements that differ."""
        return ~(difference(got, want) <= self.limit)

    def matches(self, got: np.ndarray, want: np.ndarray) -> bool:
        return got.shape == want.shape and not self.wrong(got, want).any()


def difference(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Absolute differences; 0 for equals (NaN equals NaN, inf equals inf of its sign), NaN where one is special."""
    equal = (got == want) | (np.isnan(got) & np.isnan(want))
    special = ~(np.isfinite(got) & np.isfinite(want))
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(got.astype(wide) - want.astype(wide))
    # Two different integers above 2**53 can look equal as floats, hence the floor.
    return np.where(equal, 0.0, np.where(special, np.nan, np.maximum(gap, np.finfo(np.float64).tiny)))


def common(got: object, want: object) -> tuple[np.ndarray, np.ndarray]:
    """Both as NumPy arrays of one wide dtype."""
    g, w = _numpy(got), _numpy(want)
    if g.dtype.kind in "iub" and w.dtype.kind in "iub":
        wide = np.uint64 if np.uint64 in (g.dtype, w.dtype) and not (g < 0).any() and not (w < 0).any() else np.int64
        return g.astype(wide), w.astype(wide)
    wide = np.complex128 if "c" in (g.dtype.kind, w.dtype.kind) else np.float64
    return g.astype(wide), w.astype(wide)


def _numpy(value: object) -> np.ndarray:
    if isinstance(value, mx.array) and value.dtype == mx.bfloat16:
        return np.array(value.astype(mx.float32))
    return np.asarray(value)


def limit_for(got: object, g: np.ndarray, w: np.ndarray, tol: float | None) -> float:
    """The largest difference allowed; without `tol` it follows the dtype of `got`."""
    if g.dtype.kind in "iu":
        return 0.0 if tol is None else tol * _scale(w)
    if tol is None:
        tol = _TOLERANCE.get(name_of(getattr(got, "dtype", "float64")), _TOLERANCE["float32"])
    return tol * _scale(w)


def _scale(want: np.ndarray) -> float:
    finite = np.abs(want[np.isfinite(want)].astype(np.complex128 if want.dtype.kind == "c" else np.float64))
    largest = float(finite.max()) if finite.size else 0.0
    return largest or 1.0


def name_of(dtype: object) -> str:
    """A dtype of MLX or NumPy as one writes it."""
    return str(dtype).removeprefix("mlx.core.")
