"""The end of a graded run: what failed, one line for each task, and the next thing to open."""

import io
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from course.curriculum import Curriculum, Task, points_text
from course.hints import command
from course.paths import source_file

if TYPE_CHECKING:
    from rich.console import Console

_COLOURS = {"done": "green", "failing": "red", "to do": "yellow", "blocked": "yellow"}
_MOST_OUTPUT = 20
_LONGEST_LINE = 200


@dataclass(frozen=True)
class Result:
    """How one case ended: `kind` is "passed", "failed", "skipped", "todo", "blocked" (then `by` names the task),
    "not run" (after too many cases of the task ran out of time), or "boundary" (the grader's own trouble).

    `of`: how many cases the whole task has. `ran_on`: what ran its kernels, for tasks that are kernels.
    `mistakes`: the likely ones that its message names."""

    week: int
    day: int
    task: int
    name: str
    kind: str
    by: str
    text: str
    output: str
    of: int = 0
    ran_on: str = ""
    mistakes: tuple[str, ...] = ()


@dataclass
class Summary:
    """Results of a run, in the order they came; `ungraded` are tasks asked for that have no case."""

    solution: str
    curriculum: Curriculum | None = None
    results: list[Result] = field(default_factory=list)
    ungraded: list[Task] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything that was graded passed; true where nothing was graded, which pytest itself reports."""
        return not self.ungraded and all(result.kind == "passed" for result in self.results)

    def text(self, colour: bool, failures: bool) -> str:
        """All of it, for a terminal; `failures` says whether to explain the failed cases here."""
        from rich.console import Console

        if not self.curriculum or not (self.results or self.ungraded):
            return ""
        out = io.StringIO()
        console = Console(file=out, force_terminal=colour, highlight=False, emoji=False, soft_wrap=True)
        tasks = self._tasks()
        if failures:
            self._print_failures(console, tasks)
        self._print_table(console, tasks)
        self._print_next(console, tasks)
        return out.getvalue()

    def _tasks(self) -> dict[Task, list[Result]]:
        tasks: dict[Task, list[Result]] = {task: [] for task in self.ungraded}
        for result in self.results:
            tasks.setdefault(self.curriculum.task(result.week, result.day, result.task), []).append(result)
        return dict(sorted(tasks.items(), key=lambda item: (item[0].week, item[0].day, item[0].number)))

    def _print_failures(self, console: "Console", tasks: dict[Task, list[Result]]) -> None:
        for task, results in tasks.items():
            lines = failure_lines(results)
            if not lines:
                continue
            console.rule(style="red")
            console.print(*lines, sep="\n", markup=False)
            if earlier := _unfinished_before(task, tasks):
                console.print(f"\n  {earlier.label} is not done either: mend it first if you use it here", markup=False)
            console.print()

    def _print_table(self, console: "Console", tasks: dict[Task, list[Result]]) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False)
        for title, justify in (
            ("task", "left"),
            ("", "left"),
            ("state", "left"),
            ("cases", "right"),
            ("points", "right"),
        ):
            table.add_column(title, justify=justify)
        earned = 0
        for task, results in tasks.items():
            state, passed = state_of(results), sum(result.kind == "passed" for result in results)
            points = task.points if state == "done" else 0
            earned += points
            colour = next((c for start, c in _COLOURS.items() if state.startswith(start)), "red")
            cells = (
                task.label,
                Text(task.title),
                Text(state, colour),
                f"{passed}/{len(results)}",
                f"{points_text(points)}/{points_text(task.points)}",
            )
            table.add_row(*cells)
        table.add_section()
        table.add_row("total", "", "", "", f"{points_text(earned)}/{points_text(sum(task.points for task in tasks))}")
        console.print(table)

    def _print_next(self, console: "Console", tasks: dict[Task, list[Result]]) -> None:
        todo = next((task for task, results in tasks.items() if state_of(results) != "done"), None)
        if todo is None:
            self._print_following(console, tasks)
            return
        blockers = {f"blocked by {task.label}": task for task in self.curriculum.tasks}
        task = blockers.get(state_of(tasks[todo]), todo)
        console.print(f"\nnext: {task.label}: {task.title}", markup=False)
        files = (source_file(Path("src") / self.solution, file).as_posix() for file in task.symbols)
        console.print(f"  write  {', '.join(files)}", markup=False)
        console.print(f"  read   {task.anchor}", markup=False)
        console.print(f"  hint   {command(task)}", markup=False)
        if state_of(tasks.get(task, [])) == "failing":
            console.print(f"  again  pdm run test {task.options}{self._option()}", markup=False)

    def _print_following(self, console: "Console", tasks: dict[Task, list[Result]]) -> None:
        task = self._following(tasks)
        if task is None:
            console.print("\nall done: nothing is left to do in the course so far", markup=False)
            return
        where = f"--week {task.week} --day {task.day}"
        console.print(f"\nall done; next: {task.label}: {task.title}", markup=False)
        console.print(f"  read   {task.anchor}", markup=False)
        console.print(f"  test   pdm run test {where}{self._option()}", markup=False)

    def _following(self, done: Collection[Task]) -> Task | None:
        """The first task behind those that are `done` now about which there is something to do; else one before."""
        from course.loop.progress import next_task, progress

        everything = list(self.curriculum.tasks)
        at = max(map(everything.index, done)) + 1
        rest = [task for task in everything[at:] + everything[:at] if task not in done]
        return next_task(progress(self.curriculum, self.solution), rest)

    def _option(self) -> str:
        return "" if self.solution == "tiny_llm" else f" --solution {self.solution}"


def failure_lines(results: list[Result]) -> list[str]:
    """What to tell of a task that fails: its first failure, and the names of the others; nothing for others."""
    failed = [result for result in results if result.kind == "failed"]
    if not failed:
        return []
    lines = [failed[0].text]
    if output := tail(failed[0].output):
        lines.append("\n    ".join(["\n  printed meanwhile:", *output]))
    broken = re.search(r"\b(Syntax|Indentation|Tab)Error: ", failed[0].text)  # then every case fails in the same way
    if not broken and (others := Counter(result.name.partition("[")[0] for result in failed[1:])):
        names = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in others.items())
        word = "fails" if others.total() == 1 else "fail"
        lines.append(f"\n  {others.total()} more of this task {word}: {names}")
    if unrun := sum(result.kind == "not run" for result in results):
        lines.append(f"\n  {unrun} more were not run, because of the time limit")
    return lines


def tail(output: str) -> list[str]:
    """The last lines of what was printed: few enough, and none of them endless."""
    lines = output.strip().splitlines()
    shown = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ..." for line in lines[-_MOST_OUTPUT:]]
    return ["...", *shown] if len(lines) > len(shown) else shown


def state_of(results: list[Result]) -> str:
    """One state for a task: what a learner has to do about it decides the order."""
    kinds = {result.kind for result in results}
    if not results:
        return "no graded checks"
    if "failed" in kinds:
        return "failing"
    if "boundary" in kinds:
        return "not graded"
    if "todo" in kinds:
        return "to do"
    if "blocked" in kinds:
        return f"blocked by {next(result.by for result in results if result.by)}"
    return "skipped" if "skipped" in kinds else "done"


def _unfinished_before(task: Task, tasks: dict[Task, list[Result]]) -> Task | None:
    """The first earlier task of the same day that this run found failing or to do."""
    same_day = [t for t in tasks if (t.week, t.day) == (task.week, task.day) and t.number < task.number]
    return next((t for t in same_day if state_of(tasks[t]) in ("failing", "to do")), None)
