"""A comparison in sentences: what a learner wants to know of the own solution."""

from collections.abc import Sequence

from course.compared.comparison import CaseComparison

LIKE = 1.15
"""Times and counters within this factor are called alike."""
UNCLEAR = 1.5
"""The same for memory, which threads let go of sooner or later."""
SMALL = 16 * 2**10
"""Bytes: below this much memory tells nothing."""


def summary(cases: Sequence[CaseComparison], emulated: bool) -> tuple[str, ...]:
    """Values first; then time, memory and kernels, where there is something to say."""
    right = [case for case in cases if case.state == "passes"]  # how fast wrong code is tells nothing
    return tuple(filter(None, [_values(cases), _time(right, emulated), _memory(right), *_kernels(right)]))


def _values(cases: Sequence[CaseComparison]) -> str:
    if all(case.state == "to do" for case in cases):
        return f"not written yet: {cases[0].problem}; the numbers are the reference's"
    wrong = [case for case in cases if case.state != "passes"]
    if wrong:
        return f"{len(wrong)} of {len(cases)} cases {'does' if len(wrong) == 1 else 'do'} not pass"
    agreed = [case.agreement for case in cases if case.agreement]
    kinds = {one.kind for one in agreed}
    right = "your values are right"
    if kinds <= {"equal"}:
        return f"{right}, and equal to the reference's"
    if "different" not in kinds:
        largest = max(one.largest for one in agreed)
        return (
            f"{right}, and equal to the reference's within rounding (largest difference {largest:.1g} of the largest)"
        )
    where = next(one.where for one in agreed if one.where)
    return f"{right}; they differ from the reference's where both are allowed: {where}"


def _time(cases: Sequence[CaseComparison], emulated: bool) -> str:
    """Of the slowest case, where Python's own share is smallest, and of one that stands out."""
    timed = [case for case in cases if case.ratio and case.reference]
    if not timed:
        return ""
    long = max(timed, key=lambda case: case.reference.seconds.median)
    spread = f"neighbouring readings: {long.ratio.least:.2g} .. {long.ratio.most:.2g} times its time"
    said = f"it is {_factor(long.slower)} the reference in {long.name}, the reference's slowest case ({spread})"
    out = max(timed, key=lambda case: case.slower)
    if out is not long and out.slower > 2 * max(long.slower, 1.0):
        said += f", and {out.slower:.2g} times slower in {out.name}"
    return said + ("; on the emulator times say little, counters more" if emulated else "")


def _memory(cases: Sequence[CaseComparison]) -> str:
    pairs = [(case.learner, case.reference) for case in cases if case.learner and case.reference]
    held = [(learner.bytes, reference.bytes) for learner, reference in pairs if learner.bytes and reference.bytes]
    learner, reference = max(held, key=lambda pair: pair[1], default=(0, 0))
    if max(learner, reference) < SMALL:
        return ""
    factor = learner / reference
    if 1 / UNCLEAR < factor < UNCLEAR:
        return f"it allocates as much as the reference ({size(learner)} at most)"
    more = f"{factor:.2g} times as much" if factor > 1 else f"{factor:.0%} as much"
    return f"it allocates {more} as the reference ({size(learner)}, reference {size(reference)})"


def _kernels(cases: Sequence[CaseComparison]) -> list[str]:
    """A sentence for each kernel whose traffic differs, from the case that moves most."""
    told = []
    names = dict.fromkeys(name for case in cases if case.reference for name in case.reference.counters)
    for name in names:
        pairs = [(case.learner.moved(name), case.reference.moved(name)) for case in cases if case.learner]
        learner, reference = max(pairs, key=lambda pair: pair[1], default=(0, 0))
        if reference and learner:
            factor = learner / reference
            alike = 1 / LIKE < factor < LIKE
            share = "as many bytes" if alike else f"{factor:.2g} times as many bytes"
            told.append(
                f"kernel {name} moves {share} as the reference's ({size(learner)}, reference {size(reference)})"
            )
    return told


def _factor(slower: float) -> str:
    if 1 / LIKE < slower < LIKE:
        return "about as fast as"
    return f"{slower:.2g} times slower than" if slower > 1 else f"{1 / slower:.2g} times faster than"


def size(count: float) -> str:
    """Bytes for people."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"
