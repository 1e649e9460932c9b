"""How far the learner is, on a page: weeks, days and tasks, points, and the next thing to do."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from course.curriculum import Day, Task, Week
from course.hints import command
from course.loop.progress import GIVEN, Progress, next_task
from course.loop.table import Rows
from course.paths import SRC, source_file

if TYPE_CHECKING:
    from rich.console import Console


def print_overview(
    console: "Console", weeks: Sequence[Week], found: Progress, hints: Callable[[Task], int], solution: str
) -> None:
    """All of `weeks`. A single one is told in full; of several, days that are done or not begun get one line."""
    tasks = [task for week in weeks for task in _tasks(week)]
    upcoming = next_task(found, tasks)
    rows = Rows(found, hints, upcoming)
    for week in weeks:
        rows.add_group(f"Week {week.week}: {week.title}", _tasks(week), "bold")
        if len(weeks) == 1 or any(_begun(task, found) or task is upcoming for task in _tasks(week)):
            for day in week.days:
                _add_day(rows, day, found, upcoming, len(weeks) == 1)
        else:
            rows.add_line(f"  {_untouched(week, found)}")
    if len(weeks) > 1:
        rows.add_group("All weeks", tasks, "bold")
    console.print(rows.table)
    option = "" if solution == "tiny_llm" else f" --solution {solution}"
    missing = upcoming is not None and found[upcoming].state == "missing"
    _print_next(console, upcoming, solution, option, missing)
    _print_changed(console, [task for task in tasks if found[task].state == "changed" and found[task].passed], option)


def _add_day(rows: Rows, day: Day, found: Progress, upcoming: Task | None, full: bool) -> None:
    done = all(found[task].state in ("done", GIVEN) for task in day.tasks)
    kernels = dict.fromkeys(found[task].ran_on for task in day.tasks if done and found[task].ran_on)
    opened = full or (not done and any(_begun(task, found) or task is upcoming for task in day.tasks))
    rows.add_group(f"  Day {day.day}: {day.title}", day.tasks, note="" if opened else ", ".join(kernels))
    for task in day.tasks if opened else ():
        rows.add_task(task)


def _print_next(console: "Console", task: Task | None, solution: str, option: str, missing: bool) -> None:
    if task is None:
        console.print("\nnothing is left to do here")
        return
    files = ", ".join(source_file(SRC / solution, name).relative_to(SRC.parent).as_posix() for name in task.symbols)
    lines = {"write": files, "read": task.anchor, "test": f"pdm run test {task.options}{option}", "hint": command(task)}
    if missing:
        lines["again"] = f"a file is missing: pdm run reset {task.options}, or a saved copy: pdm run restore"
    console.print(f"\nnext: {task.label}: {task.title}", soft_wrap=True)
    for word, text in lines.items():
        console.print(f"  {word:6} {text}", soft_wrap=True)


def _print_changed(console: "Console", changed: Iterable[Task], option: str) -> None:
    """Tasks that passed once, and may not any more."""
    days = dict.fromkeys(f"--week {task.week} --day {task.day}" for task in changed)
    if days:
        console.print("\ndone, then changed; test again:")
    for day in days:
        console.print(f"  pdm run test {day}{option}")


def _begun(task: Task, found: Progress) -> bool:
    """Whether anything was written or run: an untouched stub is not begun."""
    return found[task].state not in ("to do", GIVEN) or found[task].passed_cases > 0


def _untouched(week: Week, found: Progress) -> str:
    """Of a week in which nothing was begun."""
    given = sum(found[task].state == GIVEN for task in _tasks(week))
    if not given:
        return f"not begun: {len(week.days)} days, {len(_tasks(week))} tasks"
    rest = len(_tasks(week)) - given
    return f"given by checkout: {given} tasks" + (f"; not begun: {rest} tasks" if rest else "")


def _tasks(week: Week) -> list[Task]:
    return [task for day in week.days for task in day.tasks]
