"""A hint on the terminal."""

from typing import TYPE_CHECKING

from course.curriculum import Task
from course.hints import LEVELS, NAMES, command
from course.loop.wrapping import cut

if TYPE_CHECKING:
    from rich.console import Console


def print_hint(console: "Console", task: Task, level: int, seen: int) -> None:
    """One hint of a task; `seen` is how many levels have been shown, this one included."""
    from rich.panel import Panel
    from rich.text import Text

    before = f"  (seen: {', '.join(NAMES[:seen])})" if seen > 1 else ""
    console.print(
        Panel(
            Text(task.hints[level - 1].strip()),
            title=Text(f"{task.label}: {task.title}"),
            subtitle=Text(f"hint {level} of {len(LEVELS)}: {NAMES[level - 1]}{before}"),
            title_align="left",
            subtitle_align="left",
            padding=(1, 2),
        )
    )


def print_reminder(console: "Console", task: Task, level: int) -> None:
    """A hint's first line, so that a failure above it stays in sight, and the command that shows all of it."""
    head = f"hint {level} of {len(LEVELS)}: {NAMES[level - 1]}: "
    console.print(head + cut(task.hints[level - 1], console.width - len(head)), soft_wrap=True)
    console.print(f"  all of it: {command(task)} --level {level}", style="dim", soft_wrap=True)
