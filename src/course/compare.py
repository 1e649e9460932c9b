"""Comparing what a program returned with what is right, in words a learner can use.

Values are compared in float64; a tolerance is relative to the largest finite value expected. No message holds a
whole array."""

import mlx.core as mx
import numpy as np

from course.judge import Judge, common, difference, limit_for, name_of
from course.suspects import Array, Suspects, likely

_LONG = 40
_AROUND = 15


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
    g, w = common(got, want)
    judge = Judge(limit_for(got, g, w, tol))
    problems = []
    if dtype is not None and getattr(got, "dtype", None) != dtype:
        problems.append(
            f"{what}: the dtype is wrong\n  expected  {name_of(dtype)} {w.shape}\n  got       {_describe(got)}"
        )
    if g.shape != w.shape:
        problems.append(f"{what}: the shape is wrong\n  expected  {w.shape}\n  got       {g.shape}")
    elif not judge.matches(g, w):
        problems.append(_wrong_values(what, got, dtype, g, w, judge))
    if problems:
        problems.append(likely(g, w, judge, suspects or {}))
        raise AssertionError("\n".join(filter(None, problems)))


def refused(got: dict, what: str, *words: str) -> None:
    """Raise AssertionError unless `got`, from `error_of`, is a ValueError whose message holds `words`."""
    if got["type"] is None:
        raise AssertionError(f"{what} was accepted: raise ValueError")
    if got["type"] != "ValueError":
        raise AssertionError(f"{what} raised {got['type']}, not ValueError: {got['message']}")
    for word in words:
        if word not in got["message"]:
            raise AssertionError(f"the message about {what} should name {word!r}: {got['message']!r}")


def _is_array(got: object, want: Array) -> bool:
    if isinstance(got, mx.array):
        return True
    if isinstance(got, np.ndarray | np.generic):
        return got.dtype.kind in "iubfc"
    return isinstance(got, int | float) and isinstance(want, int | float | np.generic)


def _wrong_values(what: str, got: object, dtype: mx.Dtype | None, g: np.ndarray, w: np.ndarray, judge: Judge) -> str:
    wrong = judge.wrong(g, w)
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    count, gaps = int(wrong.sum()), difference(g, w)[wrong]
    finite = gaps[np.isfinite(gaps)]
    lines = [
        f"{what}: {count} of {wrong.size} values are wrong ({100 * count / wrong.size:.3g} %)",
        f"  expected  {name_of(dtype) + ' ' if dtype else ''}{w.shape}",
        f"  got       {_describe(got)}",
        f"  first wrong at {list(first)}: expected {_number(w[first])}, got {_number(g[first])}",
    ]
    if finite.size:
        which = "largest difference" if finite.size == count else "largest finite difference"
        lines.append(f"  {which} {finite.max():.3g}, allowed {judge.limit:.3g}")
    for test, text in ((np.isnan, "NaN"), (np.isinf, "inf")):
        if test(g).sum() != test(w).sum():
            lines.append(f"  {text}: expected {int(test(w).sum())}, got {int(test(g).sum())}")
    return "\n".join(lines)


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
    return f"{path}: expected {short(want)}, got {short(got)}{parting(got, want)}"


def parting(got: object, want: object) -> str:
    """A line that says where two long texts part; nothing for what one compares at a glance."""
    if not (isinstance(got, str) and isinstance(want, str)) or min(len(got), len(want)) < _LONG:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(got, want, strict=False)) if a != b), min(len(got), len(want)))
    before = max(at - _AROUND, 0)
    parts = [repr(text[before : at + _AROUND]) for text in (want, got)]
    return f"\n  the first {at} characters agree; around there: expected {parts[0]}, got {parts[1]}"


def short(value: object, limit: int = 200) -> str:
    """A value for a message: never a whole array or a long text."""
    if isinstance(value, mx.array | np.ndarray):
        return _describe(value)
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 4 :]} ({len(text)} characters)"


def _describe(value: object) -> str:
    if isinstance(value, mx.array | np.ndarray | np.generic):
        return f"{name_of(value.dtype)} {tuple(value.shape)}"
    return f"{type(value).__name__} {short(value, 60)}" if value is not None else "None"


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float | complex) else str(value)
