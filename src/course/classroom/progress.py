"""How grading a class is shown while it runs: live on a terminal, elsewhere by a line for each submission."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from course.classroom.pool import Progress
from course.classroom.record import Outcome
from course.grading.grade import told

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


@contextmanager
def shown(console: "Console", names: Mapping[str, str]) -> Iterator[Progress]:
    """Progress of the submissions whose `names` are given by their keys."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield _Lines(console, names)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bars:
        yield _Live(console, names, bars)


class _Lines:
    """One line when a submission is done."""

    def __init__(self, console: "Console", names: Mapping[str, str]) -> None:
        self._console, self._names = console, names
        self._done = 0

    def started(self, key: str) -> None:
        pass

    def tick(self) -> None:
        pass

    def ended(self, key: str, outcome: Outcome) -> None:
        self._done += 1
        count = len(str(len(self._names)))
        how = f"[{self._done:{count}}/{len(self._names)}] {self._names[key]}: {_told(outcome)}"
        self._console.print(how, soft_wrap=True)


class _Live(_Lines):
    """A bar for all and a line for each that runs, below the lines of those that are done."""

    def __init__(self, console: "Console", names: Mapping[str, str], bars: "Bars") -> None:
        super().__init__(console, names)
        self._bars = bars
        self._all = bars.add_task("submissions", total=len(names))
        self._running: dict[str, TaskID] = {}

    def started(self, key: str) -> None:
        self._running[key] = self._bars.add_task(f"  {self._names[key]}"[:40], total=None)

    def ended(self, key: str, outcome: Outcome) -> None:
        super().ended(key, outcome)
        self._bars.advance(self._all)
        if (task := self._running.pop(key, None)) is not None:
            self._bars.remove_task(task)


def _told(outcome: Outcome) -> str:
    grade = outcome.grade
    points = f"{told(grade.points)} of {told(grade.max_points)} points" if grade else "0 points"
    how = "as before" if outcome.reused else f"{outcome.record.seconds:.0f} s"
    problem = outcome.record.problem or (grade.problem if grade else "")
    return f"{points}, {how}{f': {problem}' if problem else ''}"
