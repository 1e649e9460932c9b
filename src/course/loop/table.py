"""A table of weeks, days and tasks: state, what kernels ran on, hints seen, points."""

from collections.abc import Callable, Iterable

from course.curriculum import Task, points_text
from course.loop.progress import GIVEN, Progress, TaskProgress

COLOURS = {"done": "green", "changed": "yellow", "failing": "red", "missing": "red", GIVEN: "blue"}
_WORDS = {"not run": "not run yet", GIVEN: "from the reference"}
_BAR = 16


def state_text(seen: TaskProgress) -> str:
    """The state in words: why, and how much is left."""
    match seen.state:
        case "to do" if seen.left > 1:
            return f"to do, {seen.left} stubs"
        case "failing" if seen.cases:
            return f"failing, {seen.passed_cases}/{seen.cases} cases"
        case "changed":
            return "done, then changed" if seen.passed else "changed, not run"
        case "blocked":
            return f"blocked by {'.'.join(filter(str.isdigit, seen.by.split()))}"
    return _WORDS.get(seen.state, seen.state)


def earned(tasks: Iterable[Task], found: Progress) -> tuple[float, float]:
    """Points earned and to be had."""
    tasks = list(tasks)
    return sum(task.points for task in tasks if found[task].passed), sum(task.points for task in tasks)


class Rows:
    """Fills a table; `current` is the task that is marked."""

    def __init__(self, found: Progress, hints: Callable[[Task], int], current: Task | None) -> None:
        from rich.table import Table

        self._found, self._hints, self._current = found, hints, current
        self.table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        self.table.add_column(no_wrap=True)
        self.table.add_column()  # the one that gives way in a narrow window
        self.table.add_column(justify="right", no_wrap=True)

    def add_group(self, title: str, tasks: Iterable[Task], style: str = "", note: str = "") -> None:
        """A line for a week or a day, with a bar and a note behind it."""
        got, possible = earned(tasks, self._found)
        filled = int(_BAR * got / possible) if possible else 0
        bar = "#" * filled + "." * (_BAR - filled)
        self._add(title, f"{bar}  {note}".strip(), f"{points_text(got)}/{points_text(possible)}", style, style)

    def add_task(self, task: Task) -> None:
        """A line with the state, what ran the kernels, and how many hints were seen."""
        seen, hints = self._found[task], self._hints(task)
        on = f" on {seen.ran_on}" if seen.passed and seen.ran_on else ""
        looked = f", {hints} hint{'s' * (hints > 1)}" if hints else ""
        mark = ">" if task is self._current else " "
        points = f"{points_text(task.points if seen.passed else 0)}/{points_text(task.points)}"
        colour = COLOURS.get(seen.state, "yellow")
        self._add(f"  {mark} {task.number} {task.title}", f"{state_text(seen)}{on}{looked}", points, colour)

    def add_line(self, text: str) -> None:
        self._add(text, "", "")

    def _add(self, title: str, state: str, points: str, colour: str = "", style: str = "") -> None:
        from rich.text import Text

        self.table.add_row(Text(title, style), Text(state, colour), Text(points, style))
