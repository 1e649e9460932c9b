"""How far two observations agree: equal, equal within the judge's tolerance, or different, and where.

Numbers are compared as `course.judge` does. What differs between two runs of the same code is left out."""

from collections.abc import Iterator
from typing import Literal

import mlx.core as mx
import msgspec
import numpy as np

from course.compare import short
from course.judge import Judge, common, difference, limit_for, name_of

Kind = Literal["equal", "close", "different"]
_ORDER = ("equal", "close", "different")


class Agreement(msgspec.Struct, frozen=True):
    """`largest`: difference of two numbers at most, as a share of the reference's largest; `where`: the first that
    differs beyond the tolerance, with both; `left_out`: places that differ from run to run."""

    kind: Kind
    largest: float = 0.0
    where: str = ""
    left_out: int = 0

    def joined(self, other: "Agreement") -> "Agreement":
        """Of both: the worse kind, and the place found first."""
        kind = max(self.kind, other.kind, key=_ORDER.index)
        where = self.where or other.where
        return Agreement(kind, max(self.largest, other.largest), where, self.left_out + other.left_out)


def agreement(learner: object, reference: object, again: object) -> Agreement:
    """Compare what two packages gave. again: what the reference gave in another run."""
    got, want, other = (dict(_leaves(value, "values")) for value in (learner, reference, again))
    unsteady = {
        path for path in want | other if path not in want or path not in other or _differs(other[path], want[path])
    }
    found = Agreement("equal", left_out=len(unsteady))
    for path in want:
        if path in unsteady:
            continue
        one = _missing(path) if path not in got else _leaf(path, got[path], want[path])
        found = found.joined(one)
    extra = next((path for path in got if path not in want and path not in unsteady), None)
    return found.joined(Agreement("different", where=f"{extra}: the reference has none")) if extra else found


def _missing(path: str) -> Agreement:
    return Agreement("different", where=f"{path}: missing")


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Everything that is no container, by its place; launches of kernels are counted elsewhere."""
    if isinstance(value, dict):
        if {"kernel", "counters"} <= value.keys():
            return
        for key, item in value.items():
            yield from _leaves(item, f"{path}[{key!r}]")
        yield f"keys of {path}", sorted(map(repr, value))
    elif isinstance(value, list | tuple) and not _is_plain(value):
        for i, item in enumerate(value):
            yield from _leaves(item, f"{path}[{i}]")
        yield f"length of {path}", len(value)
    else:
        yield path, list(value) if isinstance(value, tuple) else value


def _is_plain(values: list | tuple) -> bool:
    """Whether a list is compared as one: of numbers without fractions, or of texts."""
    return all(isinstance(value, int | str | None) for value in values)


def _differs(got: object, want: object) -> bool:
    """Between two runs of the same code; threads may round the numbers of an array in another order."""
    kinds = ("different",) if isinstance(want, mx.array | np.ndarray) else ("different", "close")
    return _leaf("", got, want).kind in kinds


def _leaf(path: str, got: object, want: object) -> Agreement:
    if _is_numeric(got) and _is_numeric(want):
        return _numbers(path, got, want)
    if type(got) is type(want) and got == want:
        return Agreement("equal")
    return Agreement("different", where=f"{path}: {short(got, 60)}, reference {short(want, 60)}")


def _is_numeric(value: object) -> bool:
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "iubfc"
    return isinstance(value, mx.array) or (isinstance(value, int | float) and not isinstance(value, bool))


def _numbers(path: str, got: object, want: object) -> Agreement:
    if _kind_of(got) != _kind_of(want):
        return Agreement("different", where=f"{path}: {_kind_of(got)}, reference {_kind_of(want)}")
    g, w = common(got, want)
    judge = Judge(limit_for(got, g, w, None))
    gaps = difference(g, w)
    if not gaps.any():
        return Agreement("equal")
    finite = gaps[np.isfinite(gaps)]
    largest = float(finite.max(initial=0.0)) / _scale(w)
    wrong = judge.wrong(g, w)
    if not wrong.any():
        return Agreement("close", largest)
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f"{path} at {list(first)}" if first else path
    count = f" ({int(wrong.sum())} of {wrong.size} values)" if first else ""
    return Agreement("different", largest, f"{place}: {g[first]:.6g}, reference {w[first]:.6g}{count}")


def _kind_of(value: object) -> str:
    """What must be the same: dtype and shape of an array, and nothing of a number."""
    if isinstance(value, mx.array | np.ndarray):
        return f"{name_of(value.dtype)} {tuple(value.shape)}"
    return "a number"


def _scale(want: np.ndarray) -> float:
    finite = np.abs(want[np.isfinite(want)])
    return (float(finite.max()) if finite.size else 0.0) or 1.0
