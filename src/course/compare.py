"""Comparing what a program returned with what is right, in words a learner can use.

Values are compared in float64; a tolerance is relative to the largest finite value expected. No message holds a
whole array."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

Array = mx.array | np.ndarray | np.generic | float | int | bool
Suspects = Mapping[str, Array | Callable[[], Array]]

_TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "complex64": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


@dataclass(frozen=True)
class _Judge:
    """What counts as equal: `limit` is the largest difference allowed."""

    limit: float

    def wrong(self, got: np.ndarray, want: np.ndarray) -> np.ndarray:
        """Mask of the elements that differ."""
        return ~(_difference(got, want) <= self.limit)

    def matches(self, got: np.ndarray, want: np.ndarray) -> bool:
        return got.shape == want.shape and not self.wrong(got, want).any()


def close(
    got: object,
    want: Array,
    *,
    tol: float | None = None,
    dtype: mx.Dtype | None = None,
    suspects: Suspects | None = None,
    what: str = "result",
) -> None:
    """Raise AssertionError unless `got` has the shape of `want`, the given dtype, and its values.

    tol: largest difference allowed, as a share of max |want| (of 1 where `want` is all zeros); by default it
    follows the dtype of `got`; integers and booleans are compared exactly.
    suspects: values (or functions that make them) that a likely mistake would give, by a text that names the mistake.
    """
    __tracebackhide__ = True
    if not _is_array(got, want):
        raise AssertionError(f"{what}: expected an array of shape {np.shape(want)}, got {_describe(got)}")
    g, w = _common(got, want)
    judge = _Judge(_limit(got, g, w, tol))
    problems = []
    if dtype is not None and getattr(got, "dtype", None) != dtype:
        problems.append(
            f"{what}: the dtype is wrong\n  expected  {_name(dtype)} {w.shape}\n  got       {_describe(got)}"
        )
    if g.shape != w.shape:
        problems.append(f"{what}: the shape is wrong\n  expected  {w.shape}\n  got       {g.shape}")
    elif not judge.matches(g, w):
        problems.append(_wrong_values(what, got, dtype, g, w, judge))
    if problems:
        raise AssertionError("\n".join([*problems, *_likely(g, w, judge, suspects or {})]))


def _difference(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Absolute differences; 0 for equals (NaN equals NaN, inf equals inf of its sign), NaN where one is special."""
    equal = (got == want) | (np.isnan(got) & np.isnan(want))
    special = ~(np.isfinite(got) & np.isfinite(want))
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(got.astype(wide) - want.astype(wide))
    # Two different integers above 2**53 can look equal as floats, hence the floor.
    return np.where(equal, 0.0, np.where(special, np.nan, np.maximum(difference, np.finfo(np.float64).tiny)))


def _is_array(got: object, want: Array) -> bool:
    if isinstance(got, mx.array):
        return True
    if isinstance(got, np.ndarray | np.generic):
        return got.dtype.kind in "iubfc"
    return isinstance(got, int | float) and isinstance(want, int | float | np.generic)


def _common(got: object, want: object) -> tuple[np.ndarray, np.ndarray]:
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


def _limit(got: object, g: np.ndarray, w: np.ndarray, tol: float | None) -> float:
    if g.dtype.kind in "iu":
        return 0.0 if tol is None else tol * _scale(w)
    if tol is None:
        tol = _TOLERANCE.get(_name(getattr(got, "dtype", "float64")), _TOLERANCE["float32"])
    return tol * _scale(w)


def _scale(want: np.ndarray) -> float:
    finite = np.abs(want[np.isfinite(want)].astype(np.complex128 if want.dtype.kind == "c" else np.float64))
    largest = float(finite.max()) if finite.size else 0.0
    return largest or 1.0


def _wrong_values(what: str, got: object, dtype: mx.Dtype | None, g: np.ndarray, w: np.ndarray, judge: _Judge) -> str:
    wrong = judge.wrong(g, w)
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    count, difference = int(wrong.sum()), _difference(g, w)
    finite = difference[np.isfinite(difference)]
    largest = f"{finite.max():.3g}" if finite.size else "none finite"
    lines = [
        f"{what}: {count} of {wrong.size} values are wrong ({100 * count / wrong.size:.3g} %)",
        f"  expected  {_name(dtype) + ' ' if dtype else ''}{w.shape}",
        f"  got       {_describe(got)}",
        f"  first wrong at {list(first)}: expected {_number(w[first])}, got {_number(g[first])}",
        f"  largest difference {largest}, allowed {judge.limit:.3g}",
    ]
    for test, text in ((np.isnan, "NaN"), (np.isinf, "inf")):
        if test(g).sum() != test(w).sum():
            lines.append(f"  {text}: expected {int(test(w).sum())}, got {int(test(g).sum())}")
    return "\n".join(lines)


def _likely(g: np.ndarray, w: np.ndarray, judge: _Judge, suspects: Suspects) -> list[str]:
    """The suspect nearest to `g`; one that equals the right answer explains nothing and is never named."""
    best: tuple[float, str] | None = None
    broken = []
    for text, variant in suspects.items():
        try:
            v = _common(variant() if callable(variant) else variant, w)[0]
        except Exception as error:  # the learner is to read what is wrong with the result, not with a suspect
            broken.append(f"  (the suspect {text!r} could not be computed: {type(error).__name__}: {error})")
            continue
        if judge.matches(g, v) and not judge.matches(v, w):
            distance = float(np.nanmax(_difference(g, v), initial=0.0))
            if best is None or distance < best[0]:
                best = (distance, text)
    return [f"  likely mistake: {best[1]}", *broken] if best else broken


def same(got: object, want: object, what: str = "result") -> None:
    """Raise AssertionError unless `got` equals `want` exactly: plain values, token lists, texts."""
    __tracebackhide__ = True
    if text := _unequal(got, want, what):
        raise AssertionError(text)


def _unequal(got: object, want: object, path: str) -> str | None:
    if isinstance(want, mx.array | np.ndarray):
        try:
            close(got, want, tol=0.0, what=path)
        except AssertionError as error:
            return str(error)
        return None
    if isinstance(want, dict) and isinstance(got, dict) and got.keys() == want.keys():
        return next((d for key in want if (d := _unequal(got[key], want[key], f"{path}[{key!r}]"))), None)
    if isinstance(want, list | tuple) and type(got) is type(want):
        for i, (a, b) in enumerate(zip(got, want, strict=False)):
            if text := _unequal(a, b, f"{path}[{i}]"):
                return text
        if len(got) != len(want):
            return f"{path}: expected {len(want)} items, got {len(got)} (the first {min(len(got), len(want))} agree)"
        return None
    if type(got) is type(want) and (got == want or (got != got and want != want)):
        return None
    return f"{path}: expected {short(want)}, got {short(got)}"


def short(value: object, limit: int = 200) -> str:
    """A value for a message: never a whole array or a long text."""
    if isinstance(value, mx.array | np.ndarray):
        return _describe(value)
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 4 :]} ({len(text)} characters)"


def _describe(value: object) -> str:
    if isinstance(value, mx.array | np.ndarray | np.generic):
        return f"{_name(value.dtype)} {tuple(value.shape)}"
    return f"{type(value).__name__} {short(value, 60)}" if value is not None else "None"


def _name(dtype: object) -> str:
    return str(dtype).removeprefix("mlx.core.")


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float | complex) else str(value)
