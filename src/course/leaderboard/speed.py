"""Speeds of the embedded model: every way that the submission has is tried, the best right one counts.

The grader's clock decides, so a submission cannot choose its time; loading is part of it. Prompts are new for each
reading, so no answer can be known before."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache

import mlx.core as mx
import numpy as np

from course.case import Case
from course.leaderboard.entry import DESCENDING, Entry
from course.leaderboard.hardware import machine
from course.leaderboard.place import NoEntry, Place
from course.leaderboard.ways import WAYS, Way, oracle
from course.leaderboard.workloads import Decode, Prefill

MARGIN = 1e-3
"""How far a logit may be from the best, or from the right one, as a share of the largest: rounding in any order."""
READINGS = 3
SECONDS = 30.0  # for one reading

Inputs = dict[str, object]


@dataclass(frozen=True)
class Workload:
    """A fixed amount of work, `tokens` of it; `draw` makes its inputs, `wrong` says what is wrong with its output."""

    name: str
    case: Case
    tokens: int
    draw: Callable[[np.random.Generator, int], Inputs]
    wrong: Callable[[Way, Inputs, object], str]


def fastest(place: Place, workload: Workload) -> Entry:
    """The best speed of any way. Raises NoEntry with the simplest way's reason where none is right."""
    found: dict[Way, float] = {}
    reasons: dict[Way, str] = {}
    build = cache(lambda: _build(place))
    for way in WAYS:
        if any(one.ops == way.ops for one in found):
            continue  # a cache only makes it faster
        try:
            if way.compiled and (unbuilt := build()):
                raise NoEntry(unbuilt)
            found[way] = _reading(place, workload, way, _patience(found.values()))
        except NoEntry as reason:
            reasons[way] = str(reason)
    if not found:
        way = next(one for one in reversed(WAYS) if one in reasons)
        raise NoEntry(f"{way}: {reasons[way]}")
    best = min(found, key=found.__getitem__)
    times = [found[best], *(_reading(place, workload, best, SECONDS) for _ in range(READINGS - 1))]
    return Entry(workload.name, float(f"{workload.tokens / min(times):.4g}"), DESCENDING, "tokens/s", machine())


def _patience(times: Collection[float]) -> float:
    """Seconds for a way: one that takes much longer than another cannot be the best."""
    return min(SECONDS, 1.0 + 2.0 * min(times, default=SECONDS))


def _build(place: Place) -> str:
    """Why C++ kernels cannot run; "" where they can."""
    if not any("library" in place.curriculum.built_for(day) for day in place.curriculum.days):
        return "the course has no C++ kernels"
    try:
        place.build("library")
    except NoEntry as reason:
        return str(reason)
    return ""


def _reading(place: Place, workload: Workload, way: Way, limit: float) -> float:
    """Seconds for the work, by the grader's clock. Raises NoEntry for a wrong output, or none within `limit`."""
    inputs = workload.draw(np.random.default_rng(), oracle(way.packed).shape.vocab) | way.plain()
    values, seconds = place.timed(workload.case, inputs, limit)
    try:
        wrong = workload.wrong(way, inputs, values)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        wrong = f"the output cannot be judged ({type(error).__name__})"
    if wrong:
        raise NoEntry(wrong)
    return seconds


PROMPT, ANSWER = 64, 128
PROMPTS, LENGTH = 4, 512


def _decode_inputs(rng: np.random.Generator, vocabulary: int) -> Inputs:
    return {"prompt": rng.integers(0, vocabulary, PROMPT).tolist(), "tokens": ANSWER}


def _decode_wrong(way: Way, inputs: Inputs, tokens: object) -> str:
    """Every token must be among the best that follow what was there before it."""
    if not isinstance(tokens, list) or len(tokens) != ANSWER:
        return f"{len(tokens) if isinstance(tokens, list) else 'no'} tokens instead of {ANSWER}"
    if not all(type(token) is int and 0 <= token < oracle(way.packed).shape.vocab for token in tokens):
        return "an answer that is no token of the vocabulary"
    row = np.array([inputs["prompt"] + tokens])
    logits = oracle(way.packed).logits(row)[0, PROMPT - 1 : -1]
    short = logits.max(axis=1) - logits[np.arange(ANSWER), tokens]
    late = np.flatnonzero(short > MARGIN * np.abs(logits).max(axis=1))
    return f"token {late[0] + 1} is not the most likely one" if late.size else ""


def _prefill_inputs(rng: np.random.Generator, vocabulary: int) -> Inputs:
    return {"prompts": rng.integers(0, vocabulary, (PROMPTS, LENGTH)).tolist()}


def _prefill_wrong(way: Way, inputs: Inputs, values: object) -> str:
    want = oracle(way.packed).logits(np.array(inputs["prompts"]))[:, -1]
    if not isinstance(values, list) or len(values) != PROMPTS:
        return f"{len(values) if isinstance(values, list) else 'no'} answers instead of {PROMPTS}"
    for number, (got, right) in enumerate(zip(values, want, strict=True), 1):
        if not isinstance(got, mx.array) or got.shape != (1, len(right)):
            return f"the logits of prompt {number} have another shape"
        gap = float(np.abs(np.array(got.astype(mx.float32), np.float64)[0] - right).max())
        if not (math.isfinite(gap) and gap <= MARGIN * np.abs(right).max()):
            return f"the logits of prompt {number} are wrong"
    return ""


DECODE = Workload("decode", Decode, ANSWER, _decode_inputs, _decode_wrong)
PREFILL = Workload("prefill", Prefill, PROMPTS * LENGTH, _prefill_inputs, _prefill_wrong)
