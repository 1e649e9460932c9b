"""Compares two packages on the graded cases of a task."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course.case import Case
from course.codec import pack
from course.compared.agreement import Agreement, agreement
from course.compared.comparison import CaseComparison, Measured, Spread, State
from course.compared.experiment import samples, verdict
from course.compared.side import Failed, Side
from course.failure import Failure
from course.timing import in_turn, ratio

READING = 0.02  # s: shorter calls are repeated within one reading
MOST_CALLS = 50
LONGEST = 0.3  # s: of a reading of several calls, however much slower one package is
MEMORY_RUNS = 3
BUDGET = 2.0  # s of readings per case and package: slow cases get fewer of them


@dataclass(frozen=True)
class Pair:
    """The two packages of a comparison. compiled: whether kernels may run in these cases."""

    learner: Side
    reference: Side
    repeat: int
    compiled: bool


@dataclass(frozen=True)
class _Sample:
    """One set of inputs and what became of it. size: their bytes; seconds: of the reference's call."""

    index: int
    inputs: object
    size: int
    seconds: float
    problem: str
    failure: Failure | None
    agreement: Agreement | None
    learner_seconds: float = 0.0


def compare_case(pair: Pair, case: Case) -> CaseComparison:
    """Values on all inputs, then times, memory and kernels on the largest. Raises Failed where the reference fails."""
    found = [_sample(pair, case, index, inputs) for index, inputs in samples(case, _observe(pair.reference, case))]
    both = [sample for sample in found if sample.agreement]
    passed = sum(not sample.problem for sample in found)
    first = next((sample.problem for sample in found if sample.problem), "")
    chosen = _largest(both or found)
    learner, reference, quotient = _measure(pair, case, chosen)
    agreed = None
    for sample in both:
        agreed = sample.agreement if agreed is None else agreed.joined(sample.agreement)
    return CaseComparison(
        name=case.name,
        property=case.property,
        state=_state(found),
        passed=passed,
        inputs=len(found),
        problem=first,
        agreement=agreed,
        measured_on=chosen.index,
        learner=learner,
        reference=reference,
        ratio=quotient,
        quickest=learner.seconds.least / reference.seconds.least if learner else None,
    )


def _largest(samples: Sequence[_Sample]) -> _Sample:
    """The slowest of the large ones: sizes are the same in every run, times are not."""
    most = max(sample.size for sample in samples)
    return max((sample for sample in samples if 2 * sample.size >= most), key=lambda sample: sample.seconds)


def _sample(pair: Pair, case: Case, index: int, inputs: object) -> _Sample:
    want, seconds = pair.reference.values(case, inputs)
    size = len(pack(inputs))
    try:
        got, own = pair.learner.values(case, inputs)
        problem = verdict(case, index, got, _observe(pair.learner, case))
    except Failed as failed:
        problem = str(failed).splitlines()[0]
        return _Sample(index, inputs, size, seconds, problem, failed.failure, None)
    again, least = pair.reference.values(case, inputs)
    return _Sample(index, inputs, size, min(seconds, least), problem, None, agreement(got, want, again), own)


def _observe(side: Side, case: Case) -> Callable[[object], object]:
    return lambda inputs: side.values(case, inputs)[0]


def _state(found: Sequence[_Sample]) -> State:
    """What a learner has to know first decides."""
    kinds = {sample.failure.kind for sample in found if sample.failure}
    if "todo" in kinds:
        return "to do"
    if kinds:
        return "stops"
    return "fails" if any(sample.problem for sample in found) else "passes"


def _measure(pair: Pair, case: Case, sample: _Sample) -> tuple[Measured | None, Measured, Spread | None]:
    """Learner, reference and the ratio of their times; the reference alone where the learner's code stops."""
    quick, slow = sorted([max(sample.seconds, 1e-6), max(sample.learner_seconds, 1e-6)])
    calls = max(1, min(MOST_CALLS, math.ceil(READING / quick), int(LONGEST / slow)))
    rounds = max(1, min(pair.repeat, int(BUDGET / (slow * calls))))
    sides = {"reference": pair.reference} | ({"learner": pair.learner} if sample.agreement else {})
    try:
        return _both(pair, case, sample, sides, calls, rounds)
    except Failed:
        if "learner" not in sides:
            raise
    del sides["learner"]  # it gave values once, but not again
    return _both(pair, case, sample, sides, calls, rounds)


def _both(
    pair: Pair, case: Case, sample: _Sample, sides: dict[str, Side], calls: int, rounds: int
) -> tuple[Measured | None, Measured, Spread | None]:
    readers = {name: _reader(side, case, sample.inputs, calls) for name, side in sides.items()}
    readings = in_turn(readers, rounds)
    found = {name: _measured(pair, side, case, sample.inputs, readings[name]) for name, side in sides.items()}
    quotient = None
    if "learner" in found:
        spread = ratio(readings["reference"], readings["learner"])
        quotient = Spread(spread.median, spread.least, spread.most)
    return found.get("learner"), found["reference"], quotient


def _reader(side: Side, case: Case, inputs: object, calls: int) -> Callable[[], float]:
    return lambda: side.seconds(case, inputs, calls)


def _measured(pair: Pair, side: Side, case: Case, inputs: object, readings: list[float]) -> Measured:
    runs = [side.memory(case, inputs) for _ in range(min(MEMORY_RUNS, len(readings)))]
    held = {kind: min(run[kind] for run in runs) for kind in runs[0]}  # threads free their arrays sooner or later
    kernels = side.kernels(case, inputs) if pair.compiled else {"calls": {}, "counters": {}}
    return Measured(Spread.of(readings), held["mlx"], held["python"], kernels["calls"], kernels["counters"])
