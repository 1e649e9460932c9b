"""A comparison for a terminal: a table of cases, one of kernels where there are any, and the sentences."""

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

from course.compared.comparison import CaseComparison, Comparison, Measured
from course.compared.words import size
from course.console import console

if TYPE_CHECKING:
    from rich.console import Console
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
_LEAST, _SHORTEST = 40, 12
"""Columns of text, and of the name of a case, that even the narrowest terminal gets."""
_ANY = 1000
_COLOURS = {"passes": "green", "fails": "red", "stops": "red", "to do": "yellow"}


def show(comparison: Comparison) -> None:
    """Print all of it."""
    out = console()
    packages = f"{comparison.learner} beside {comparison.reference}"
    _say(out, f"{comparison.task} {comparison.title}: {packages}")
    out.print()
    out.print(_fitting(out, comparison, _cases))
    if any(case.reference and case.reference.calls for case in comparison.cases):
        out.print()
        out.print(_fitting(out, comparison, _kernels))
    out.print()
    for problem, cases in _problems(comparison).items():
        more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
        first = f"{cases[0].name} ({cases[0].passed} of {cases[0].inputs} pass){more}"
        _say(out, f"{first}: {problem}", "red")
    for sentence in comparison.summary:
        _say(out, f"- {sentence}")


def _say(out: "Console", text: str, style: str | None = None) -> None:
    """A paragraph of the terminal's width; its later lines are indented, and no word is broken."""
    width = max(out.width, _LEAST)
    lines = textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    out.print("\n".join(lines), style=style, soft_wrap=True)


def _fitting(out: "Console", comparison: Comparison, table: Callable[[Comparison, int], "Table"]) -> "Table":
    """The table with names of cases as long as the terminal has room for them."""
    longest = max(len(case.name) for case in comparison.cases)
    whole = table(comparison, longest)
    missing = out.measure(whole, options=out.options.update(max_width=_ANY)).maximum - out.width
    return table(comparison, max(longest - missing, _SHORTEST)) if missing > 0 else whole


def _cut(name: str, room: int) -> str:
    return name if len(name) <= room else f"{name[: room - 3]}..."


def _problems(comparison: Comparison) -> dict[str, list[CaseComparison]]:
    """What is wrong, each with the cases of which it was said."""
    found: dict[str, list[CaseComparison]] = {}
    for case in comparison.cases:
        if case.state in ("fails", "stops"):
            found.setdefault(case.problem, []).append(case)
    return found


def _cases(comparison: Comparison, room: int) -> "Table":
    """Your numbers, each with what it is of the reference's; the reference's own where there are none of yours."""
    table = _table(("case", "left"), ("values", "left"))
    for title in ("time", "of ref.", "memory", "of ref."):
        table.add_column(title, justify="right", no_wrap=True)
    for case in comparison.cases:
        table.add_row(*_row(case, room))
    if all(case.learner is None for case in comparison.cases):
        table.columns[2].header, table.columns[4].header = "ref. time", "ref. memory"
    return table


def _row(case: CaseComparison, room: int) -> list[object]:
    from rich.text import Text

    words = {
        "passes": case.agreement.kind if case.agreement else "",
        "fails": f"fails {case.inputs - case.passed}/{case.inputs}",
    }
    state = Text(words.get(case.state, case.state), _COLOURS[case.state])
    shown = case.learner or case.reference
    if shown is None:
        return [_cut(case.name, room), state]
    held = case.learner.bytes / case.reference.bytes if case.learner and case.reference.bytes else None
    ratios = [f"{ratio:.2f}x" if ratio else "" for ratio in (case.slower if case.ratio else None, held)]
    return [_cut(case.name, room), state, _time(shown), ratios[0], size(shown.bytes), ratios[1]]


def _kernels(comparison: Comparison, room: int) -> "Table":
    """Calls and counters that are not zero, each with both numbers."""
    table = _table(("case", "left"), ("kernel", "left"), ("what", "left"))
    for title in ("yours", "ref.", "ratio"):
        table.add_column(title, justify="right", no_wrap=True)
    for case in comparison.cases:
        for number, (kernel, what, learner, reference) in enumerate(counts(case)):
            ratio = f"{learner / reference:.2f}x" if learner is not None and reference else ""
            name = _cut(case.name, room) if number == 0 else ""
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
        table.add_column(title, justify=justify, no_wrap=True)
    return table


def _time(side: Measured) -> str:
    """The median, in the unit that suits it."""
    seconds = side.seconds.median
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} us"
