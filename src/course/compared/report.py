"""A comparison for a terminal: a table of cases, one of kernels where there are any, and the sentences."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from course.compared.comparison import CaseComparison, Comparison, Measured
from course.compared.words import size
from course.console import console

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN = (
    "device_read_bytes",
    "device_write_bytes",
    "device_read_lines",
    "device_write_lines",
    "threadgroup_read_bytes",
    "threadgroup_write_bytes",
    "barriers",
    "simd_operations",
    "bank_conflicts",
    "atomics",
)
"""Counters that are shown; --json has all."""
_COLOURS = {"passes": "green", "fails": "red", "stops": "red", "to do": "yellow"}


def show(comparison: Comparison) -> None:
    """Print all of it."""
    out = console()
    out.print(
        f"{comparison.task} {comparison.title}: {comparison.learner} beside {comparison.reference}\n", soft_wrap=True
    )
    out.print(_cases(comparison))
    if any(case.reference and case.reference.calls for case in comparison.cases):
        out.print()
        out.print(_kernels(comparison))
    out.print()
    for case in comparison.cases:
        if case.state in ("fails", "stops"):
            out.print(f"{case.name} ({case.passed} of {case.inputs} pass): {case.problem}", style="red")
    for sentence in comparison.summary:
        out.print(f"- {sentence}")


def _cases(comparison: Comparison) -> "Table":
    table = _table(("case", "left"), ("state", "left"), ("values", "left"), ("time", "right"), ("ref.", "right"))
    for title in ("ratio", "memory", "ref."):
        table.add_column(title, justify="right", no_wrap=True)
    for case in comparison.cases:
        table.add_row(*_row(case))
    return table


def _row(case: CaseComparison) -> list[object]:
    from rich.text import Text

    state = case.state if case.state != "fails" else f"fails {case.inputs - case.passed}/{case.inputs}"
    values = case.agreement.kind if case.agreement else ""
    times = [_time(case.learner), _time(case.reference)]
    ratio = f"{case.ratio.median:.2f}x" if case.ratio else ""
    memory = [size(side.bytes) if side else "" for side in (case.learner, case.reference)]
    return [case.name, Text(state, _COLOURS[case.state]), values, *times, ratio, *memory]


def _kernels(comparison: Comparison) -> "Table":
    """Calls and counters that are not zero, each with both numbers."""
    table = _table(("case", "left"), ("kernel", "left"), ("what", "left"))
    for title in ("yours", "ref.", "ratio"):
        table.add_column(title, justify="right", no_wrap=True)
    for case in comparison.cases:
        for number, (kernel, what, learner, reference) in enumerate(counts(case)):
            ratio = f"{learner / reference:.2f}x" if learner is not None and reference else ""
            name = case.name if number == 0 else ""
            table.add_row(name, kernel, what, "" if learner is None else f"{learner:,}", f"{reference:,}", ratio)
    return table


def counts(case: CaseComparison) -> list[tuple[str, str, int | None, int]]:
    """Kernel, what is counted, the learner's count (None: nothing was measured), the reference's."""
    if not case.reference:
        return []
    rows = []
    for kernel in dict.fromkeys([*case.reference.calls, *(case.learner.calls if case.learner else ())]):
        rows.append((kernel, "calls", *_both(case, lambda side, k=kernel: side.calls.get(k, 0))))
    for kernel in dict.fromkeys([*case.reference.counters, *(case.learner.counters if case.learner else ())]):
        for name in _SHOWN:
            rows.append((kernel, name, *_both(case, lambda side, k=kernel, n=name: side.counters.get(k, {}).get(n, 0))))
    return [row for row in rows if row[2] or row[3]]


def _both(case: CaseComparison, count: Callable[[Measured], int]) -> tuple[int | None, int]:
    return (count(case.learner) if case.learner else None), count(case.reference)


def _table(*columns: tuple[str, str]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title, justify in columns:
        table.add_column(title, justify=justify, overflow="fold" if title == "case" else "ellipsis")
    return table


def _time(side: Measured | None) -> str:
    """The median, in the unit that suits it."""
    if side is None:
        return ""
    seconds = side.seconds.median
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} us"
