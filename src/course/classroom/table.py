"""The table at the end of a class, for a terminal: students by name, and below them totals, mean and median."""

from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import TYPE_CHECKING

from course.classroom.report import ClassReport, StudentLine
from course.grading.grade import told

if TYPE_CHECKING:
    from rich.console import Console

_COLOURS = {"graded": "", "no submission": "yellow", "incomplete": "yellow"}


def print_table(console: "Console", report: ClassReport) -> None:
    """Weeks as columns where there are several, else days, as far as the window is wide enough.

    Below it, why a submission earned less than it might have.
    """
    from rich.table import Table
    from rich.text import Text

    groups = _groups(report, console.width)
    table = Table(box=None, pad_edge=False)
    table.add_column("student", overflow="ellipsis", no_wrap=True, min_width=12, max_width=28)
    for name in (*groups, "points", *(["late", "final"] if _is_late(report) else [])):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for line in report.students:
        table.add_row(
            Text(line.name),
            *(told(_sum(line, keys)) for keys in groups.values()),
            told(line.points),
            *([str(line.days_late or ""), told(line.final)] if _is_late(report) else []),
            Text(_remark(line), _COLOURS.get(line.ended, "red")),
        )
    table.add_section()
    there = [line for line in report.students if line.submission]
    for name, how in (("mean", mean), ("median", median)) if there else ():
        table.add_row(*_below(name, how, there, groups, _is_late(report)))
    table.add_row(*_most(report, groups))
    console.print(table)
    for line in report.students:
        if line.problem and line.ended != "no submission":
            console.print(f"{line.name}: {line.problem}", soft_wrap=True)


def _groups(report: ClassReport, width: int) -> dict[str, list[str]]:
    """The tasks' keys under the heading of their week, or of their day, as far as the window is wide enough."""
    weeks = {task.key.split(".")[0] for task in report.tasks}
    parts, title = (1, "week") if len(weeks) > 1 else (2, "day")
    groups: dict[str, list[str]] = {}
    for task in report.tasks:
        name = ".".join(task.key.split(".")[:parts])
        groups.setdefault(f"{title} {name}", []).append(task.key)
    if sum(len(name) + 2 for name in groups) > width - 56:
        groups = {name.removeprefix(f"{title} "): keys for name, keys in groups.items()}
    return groups if sum(max(len(name), 4) + 2 for name in groups) <= width - 42 else {}


def _remark(line: StudentLine) -> str:
    parts = [] if line.listed else ["not in the roster"]
    return ", ".join(parts + ([line.ended] if line.ended != "graded" else []))


def _sum(line: StudentLine, keys: Sequence[str]) -> float:
    return sum(line.tasks[key].points for key in keys if key in line.tasks)


def _is_late(report: ClassReport) -> bool:
    return any(line.days_late for line in report.students)


def _below(
    name: str,
    how: Callable[[Sequence[float]], float],
    lines: Sequence[StudentLine],
    groups: dict[str, list[str]],
    late: bool,
) -> list[str]:
    cells = [told(how([_sum(line, keys) for line in lines])) for keys in groups.values()]
    cells.append(told(how([line.points for line in lines])))
    if late:
        cells += ["", told(how([line.final for line in lines]))]
    return [f"{name} of {len(lines)}", *cells]


def _most(report: ClassReport, groups: dict[str, list[str]]) -> list[str]:
    points = {task.key: task.points for task in report.tasks}
    cells = [told(sum(points[key] for key in keys)) for keys in groups.values()]
    return ["possible", *cells, told(report.max_points), *(["", told(report.max_points)] if _is_late(report) else [])]
