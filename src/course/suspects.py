"""Naming a likely mistake: a wrong result is compared with what well-known wrong solutions give.

Mistakes that give the same result here are all named, since nothing tells which one was made."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping

import mlx.core as mx
import numpy as np

from course.judge import Judge, common, difference

Array = mx.array | np.ndarray | np.generic | float | int | bool
Suspects = Mapping[str, Array | Callable[[], Array]]

_SAME = 1e-3
"""Suspects whose difference is below this share of the limit count as one result."""
_NAMED = re.compile(r"^ {2,}(?:likely mistake|or): (.+)$", re.MULTILINE)  # pytest indents what `assert` says
_LOG = logging.getLogger(__name__)


def likely(got: np.ndarray, want: np.ndarray, judge: Judge, suspects: Suspects) -> str:
    """A line that names the suspect nearest to `got`; one that equals the right answer explains nothing."""
    near = {}
    for text, variant in suspects.items():
        value = _computed(text, variant, want)
        if value is not None and judge.matches(got, value) and not judge.matches(value, want):
            near[text] = value
    if not near:
        return ""
    best = min(near.values(), key=lambda value: float(np.nanmax(difference(got, value), initial=0.0)))
    equal = Judge(judge.limit * _SAME)
    return named(text for text, value in near.items() if equal.matches(value, best))


def named(mistakes: Iterable[str]) -> str:
    """How a message names mistakes that explain a wrong result equally well; nothing for none."""
    texts = dict.fromkeys(text.strip() for text in mistakes)  # two ways to make one mistake are one mistake
    return "\n".join(("  likely mistake: " if i == 0 else "               or: ") + text for i, text in enumerate(texts))


def mistakes_in(message: str) -> tuple[str, ...]:
    """The mistakes that a message names, as `named` wrote them."""
    return tuple(dict.fromkeys(_NAMED.findall(message)))


def _computed(text: str, variant: Array | Callable[[], Array], want: np.ndarray) -> np.ndarray | None:
    """None where the mistake cannot be made with these inputs: a product of shapes that do not fit, for example."""
    try:
        with np.errstate(all="ignore"):
            return common(variant() if callable(variant) else variant, want)[0]
    except Exception as error:  # the learner is to read what is wrong with the result, not with a suspect
        _LOG.debug("suspect %r: %s: %s", text, type(error).__name__, error)
        return None
