"""The table at the end of a class, for a terminal: students by name, then mean, median and what is possible."""

from collections.abc import Callable, Iterator, Sequence
from statistics import mean, median
from typing import TYPE_CHECKING

from course.classroom.report import ClassReport, StudentLine
from course.grading.grade import told

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Groups = dict[str, list[str]]
"""The tasks' keys below the heading of a column."""

_COLOURS = {"graded": "", "no submission": "yellow", "incomplete": "yellow"}
_LONGEST_NAME = 24
_MOST_PAIRS = 5


def print_table(console: "Console", report: ClassReport) -> None:
    """Weeks as columns where there are several, else days, if the window is wide enough.

    Below it, why a submission earned less than it might have.
    """
    unlimited = console.options.update(max_width=10_000)
    tables = (_table(report, groups) for groups in _groups(report))
    fitting = (table for table in tables if console.measure(table, options=unlimited).maximum <= console.width)
    console.print(next(fitting, _table(report, {})))
    for line in report.students:
        if line.problem and line.ended != "no submission":
            console.print(f"{line.name}: {line.problem}", soft_wrap=True)
        if line.remarks:
            console.print(f"{line.name}: {line.remarks}", soft_wrap=True)
    if any(line.ignored for line in report.students):
        console.print("extra_files in the course file names files that are graded too", soft_wrap=True)
    for pair in report.similar[:_MOST_PAIRS]:
        what = f"{pair.share:.0%} of their own code, most in {', '.join(pair.files[:2])}"
        console.print(f"look at {pair.first} and {pair.second}: they share {what}", soft_wrap=True)
    if len(report.similar) > _MOST_PAIRS:
        console.print(f"{len(report.similar) - _MOST_PAIRS} more such pairs are in summary.md", soft_wrap=True)


def _groups(report: ClassReport) -> Iterator[Groups]:
    """The widest first."""
    weeks = {task.key.split(".")[0] for task in report.tasks}
    parts, title = (1, "week ") if len(weeks) > 1 else (2, "day ")
    for heading in (title, title[0]):
        groups: Groups = {}
        for task in report.tasks:
            groups.setdefault(heading + ".".join(task.key.split(".")[:parts]), []).append(task.key)
        yield groups


def _table(report: ClassReport, groups: Groups) -> "Table":
    from rich.table import Table
    from rich.text import Text

    late = any(line.days_late for line in report.students)
    table = Table(box=None, pad_edge=False)
    table.add_column("student", no_wrap=True)
    for name in (*groups, "points", *(["late", "final"] if late else [])):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for line in report.students:
        ends = [str(line.days_late or ""), told(line.final)] if late else []
        cells = (*(told(_sum(line, keys)) for keys in groups.values()), told(line.points), *ends)
        colour = "yellow" if line.ignored and line.ended == "graded" else _COLOURS.get(line.ended, "red")
        table.add_row(_cut(line.name), *cells, Text(_remark(line), colour))
    table.add_section()
    there = [line for line in report.students if line.submission]
    for name, how in (("mean", mean), ("median", median)) if there else ():
        table.add_row(f"{name} of {len(there)}", *_below(how, there, groups, late))
    table.add_row("possible", *_possible(report, groups, late))
    return table


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 4]} ..."


def _remark(line: StudentLine) -> str:
    parts = [] if line.listed else ["not in the roster"]
    parts += [line.ended] if line.ended != "graded" else []
    return ", ".join(parts + ([line.not_graded] if line.ignored else []))


def _sum(line: StudentLine, keys: Sequence[str]) -> float:
    return sum(line.tasks[key].points for key in keys if key in line.tasks)


def _below(
    how: Callable[[Sequence[float]], float], lines: Sequence[StudentLine], groups: Groups, late: bool
) -> Iterator[str]:
    for keys in groups.values():
        yield told(how([_sum(line, keys) for line in lines]))
    yield told(how([line.points for line in lines]))
    if late:
        yield from ("", told(how([line.final for line in lines])))


def _possible(report: ClassReport, groups: Groups, late: bool) -> Iterator[str]:
    points = {task.key: task.points for task in report.tasks}
    for keys in groups.values():
        yield told(sum(points[key] for key in keys))
    yield told(report.max_points)
    if late:
        yield from ("", told(report.max_points))
