"""A grade on a terminal: one line for each task, what was noticed, and where the files are."""

from pathlib import Path

from rich.table import Table
from rich.text import Text

from course.console import console
from course.grading.formats import FORMATS
from course.grading.grade import Grade, TaskGrade, told

_COLOURS = {"done": "green", "failing": "red"}


def show(grade: Grade, output: Path) -> None:
    """Print it."""
    out = console()
    out.print(_table(grade))
    for note in grade.notes:
        out.print(f"note: {note}")
    if grade.ignored:
        out.print("extra_files in the course file names files that are graded too")
    for protection in grade.protections:
        if not protection.on:
            out.print(f"no protection: {protection.name} ({protection.detail})")
    for entry in grade.leaderboard:
        out.print(f"measured: {entry.name} {entry.value:g} {entry.unit} ({entry.hardware})")
    if grade.problem:
        out.print(f"not everything was graded: {grade.problem}", style="red")
    out.print(f"\nwritten to {output}: {', '.join(FORMATS)}", soft_wrap=True)


def _table(grade: Grade) -> Table:
    hidden = any(task.hidden for task in grade.tasks)
    table = Table(box=None, pad_edge=False)
    for title in ("task", "", "state", "cases", *(["hidden"] if hidden else []), "points"):
        table.add_column(title, justify="right" if title in ("cases", "hidden", "points") else "left")
    for task in grade.tasks:
        table.add_row(*_row(task, hidden))
    table.add_section()
    sums = Text(f"{told(grade.points)}/{told(grade.max_points)}", "bold")
    table.add_row("total", "", "", "", *([""] if hidden else []), sums)
    return table


def _row(task: TaskGrade, hidden: bool) -> list[Text]:
    part = f"{told(task.hidden.points)}/{told(task.hidden.max_points)}" if task.hidden else ""
    return [
        Text(task.label),
        Text(task.title),
        Text(task.state, _COLOURS.get(task.state, "yellow")),
        Text(f"{task.passed}/{task.total}"),
        *([Text(part)] if hidden else []),
        Text(f"{told(task.points)}/{told(task.max_points)}"),
    ]
