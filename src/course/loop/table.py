"""Tasks as lines of a table: state, cases, points, what their kernels ran on, hints seen."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from course.curriculum import Task
from course.loop.progress import GIVEN, Progress, TaskProgress

if TYPE_CHECKING:
    from rich.table import Table

COLOURS = {"done": "green", "changed": "yellow", "failing": "red", "missing": "red", GIVEN: "blue"}
_WORDS = {"changed": "changed since its last run", "not run": "not run yet", GIVEN: "from the reference"}


def state_text(task: Task, seen: TaskProgress) -> str:
    """The state in words: why, and how much is left."""
    if seen.state == "to do" and seen.left > 1:
        return f"to do ({seen.left} stubs)"
    if seen.state == "changed" and seen.passed:
        return "done, changed since"
    if seen.state == "blocked":
        return f"blocked by {seen.by}"
    return _WORDS.get(seen.state, seen.state)


def points(task: Task, seen: TaskProgress) -> int:
    """What a task has earned."""
    return task.points if seen.passed else 0


def earned(tasks: Iterable[Task], found: Progress) -> tuple[int, int]:
    """Points earned and to be had."""
    tasks = list(tasks)
    return sum(points(task, found[task]) for task in tasks), sum(task.points for task in tasks)


def task_table(
    tasks: Iterable[Task], found: Progress, hints: Callable[[Task], int], current: Task | None = None
) -> "Table":
    """A line for each task; `current` is marked."""
    from rich.table import Table
    from rich.text import Text

    tasks = list(tasks)
    ran_on = any(found[task].ran_on for task in tasks)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for justify in ("left", "left", "left", "right", "right"):
        table.add_column(justify=justify, overflow="fold")
    for task in tasks:
        seen = found[task]
        mark = "> " if task is current else "  "
        shown = hints(task)
        cells = [
            Text(f"{mark}{task.number}  {task.title}"),
            Text(state_text(task, seen), COLOURS.get(seen.state, "yellow")),
            Text(seen.ran_on if ran_on else ""),
            Text(f"{shown} hint{'s' if shown > 1 else ''}" if shown else ""),
            Text(f"{points(task, seen)}/{task.points}"),
        ]
        table.add_row(*cells)
    return table
