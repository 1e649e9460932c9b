"""How grading a class is shown while it runs: live on a terminal, elsewhere by a line for each submission."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from course.classroom.job import Job
from course.classroom.pool import Progress
from course.classroom.record import Outcome
from course.grading.grade import told

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_LONGEST = 24
_PAUSE = 0.5


@contextmanager
def shown(console: "Console", names: Mapping[str, str]) -> Iterator[Progress]:
    """Progress of the submissions whose `names` are given by their keys."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield _Lines(console, names)
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    name = TextColumn("{task.description}", markup=False)
    what = TextColumn("{task.fields[what]}", markup=False)
    with Bars(name, BarColumn(bar_width=20), what, TimeElapsedColumn(), console=console, transient=True) as bars:
        yield _Live(console, names, bars)


class _Lines:
    """One line when a submission is done."""

    def __init__(self, console: "Console", names: Mapping[str, str]) -> None:
        self._console, self._names = console, names
        self._done = 0

    def started(self, key: str) -> None:
        pass

    def tick(self, running: Mapping[str, Job]) -> None:
        pass

    def ended(self, key: str, outcome: Outcome) -> None:
        self._done += 1
        count = len(str(len(self._names)))
        how = f"[{self._done:{count}}/{len(self._names)}] {self._names[key]}: {_told(outcome)}"
        self._console.print(how, soft_wrap=True)


class _Live(_Lines):
    """A bar for all, and for each that runs a line with what its grader said last; above, those that are done."""

    def __init__(self, console: "Console", names: Mapping[str, str], bars: "Bars") -> None:
        super().__init__(console, names)
        self._bars = bars
        self._all = bars.add_task("submissions", total=len(names), what=f"0/{len(names)}")
        self._running: dict[str, TaskID] = {}
        self._looked = 0.0

    def started(self, key: str) -> None:
        self._running[key] = self._bars.add_task(f"  {self._names[key]}"[:_LONGEST], total=None, what="")

    def tick(self, running: Mapping[str, Job]) -> None:
        if time.monotonic() > self._looked + _PAUSE:
            for key, job in running.items():
                self._bars.update(self._running[key], what=job.last_words().partition(":")[0][:_LONGEST])
            self._looked = time.monotonic()

    def ended(self, key: str, outcome: Outcome) -> None:
        super().ended(key, outcome)
        self._bars.update(self._all, advance=1, what=f"{self._done}/{len(self._names)}")
        if (task := self._running.pop(key, None)) is not None:
            self._bars.remove_task(task)


def _told(outcome: Outcome) -> str:
    grade = outcome.grade
    points = f"{told(grade.points)} of {told(grade.max_points)} points" if grade else "0 points"
    how = "as before" if outcome.reused else f"{outcome.record.seconds:.0f} s"
    problem = outcome.record.problem or (grade.problem if grade else "")
    return f"{points}, {how}{f': {problem}' if problem else ''}"
