"""What watch shows: the outcome of a run with the next step, the list of tasks, the keys."""

from typing import TYPE_CHECKING

from course.curriculum import Task, points_text
from course.hints import levels_shown
from course.loop.progress import GIVEN, Progress
from course.loop.run import Outcome
from course.loop.table import COLOURS, Rows, earned
from course.loop.wrapping import say
from course.paths import ROOT, source_file
from course.stub import find_stubs
from course.summary import failure_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from course.work.reset import Whole

KEYS = {
    "h": "hint",
    "l": "list",
    "n": "next",
    "p": "back",
    "r": "reset",
    "s": "solution",
    "a": "again",
    "q": "quit",
    "?": "help",
}
_HELP = """
Save a file in src/tiny_llm or src/extensions, and the tests of the task above run again.

  h  the next hint of this task: a nudge, an invariant, nearly the code
  l  the tasks of this day, and how far each is
  n  the next task            p  the one before
  r  put this task's stubs back; what you wrote is kept, and you are asked first
  s  the reference beside what you wrote, once the tests have passed
  a  run the tests again      q  quit (Ctrl-C does, too)

Once a task has passed, watch goes on to the next when you press n, or when you save
a change to the code of another task. A save during a run stops that run.
"""


def show_outcome(console: "Console", task: Task, outcome: Outcome, found: Progress, package: "Path") -> None:
    """One task's run."""
    passed = sum(result.kind == "passed" for result in outcome.results)
    state = outcome.state
    console.rule(f"{task.label}: {task.title}", style=COLOURS.get(state, "yellow"), align="left")
    for line in _told(task, outcome, package):
        say(console, line)
    cases = f"  {passed}/{len(outcome.results)} cases" if outcome.results else ""
    given = found[task].state == GIVEN
    got = points_text(task.points if state == "done" and not given else 0)
    said = f"{state}, from the reference" if given else state
    text = f"\n{said}{cases}  {got}/{points_text(task.points)} points  {outcome.seconds:.1f} s"
    console.print(text, style=f"bold {COLOURS.get(state, 'yellow')}")
    if state == "done":
        same_day = [t for t in found if (t.week, t.day) == (task.week, task.day)]
        got, possible = map(points_text, earned(same_day, found))
        console.print(f"{got} of the {possible} points of Week {task.week} Day {task.day}")


def show_next(console: "Console", task: Task, package: "Path", head: str) -> None:
    """Where to go on."""
    files = ", ".join(_show(source_file(package, name)) for name in task.symbols)
    say(console, f"\n{head}")
    say(console, f"  write  {files}")
    console.print(f"  read   {task.anchor}", soft_wrap=True)


def show_list(console: "Console", tasks: list[Task], found: Progress, current: Task) -> None:
    """The tasks of the current one's day."""
    day = [task for task in tasks if (task.week, task.day) == (current.week, current.day)]
    rows = Rows(found, levels_shown(), current)
    rows.add_group(f"Week {current.week} Day {current.day}", day, "bold")
    for task in day:
        rows.add_task(task)
    console.print()
    console.print(rows.table)


def show_keys(console: "Console", passed: bool) -> None:
    """One line; a key that does nothing now is left out."""
    shown = {key: word for key, word in KEYS.items() if key != "s" or passed}
    console.print("\n" + "  ".join(f"{key} {word}" for key, word in shown.items()), style="dim")


def show_reset(console: "Console", task: Task, whole: "Sequence[Whole]", package: "Path") -> None:
    """The question before a reset, and what else it would take away."""
    for file in whole:
        lost = ", ".join(other.label for other in file.tasks)
        console.print(
            f"the WHOLE of {_show(source_file(package, file.name))} would go back to its start, because {file.why}"
        )
        if lost:
            console.print(f"with it goes your code of {lost}")
    console.print(f"reset {task.label}? What you wrote is kept. y: yes, any other key: no")


def show_help(console: "Console") -> None:
    console.print(_HELP, soft_wrap=True)


def _told(task: Task, outcome: Outcome, package: "Path") -> list[str]:
    """Why it is not done; nothing where it is."""
    if outcome.problem:
        return [outcome.problem]
    if lines := failure_lines(outcome.results):
        return [lines[0].removeprefix(f"{task.label}: {task.title}\n"), *lines[1:]]
    if outcome.state == "to do":
        return ["still to be written:", *(f"  {place}" for place in _stubs(task, package))]
    if outcome.state.startswith("blocked"):
        return [f"this needs a task that is not done yet: it is {outcome.state} (p goes back)"]
    return []


def _stubs(task: Task, package: "Path") -> list[str]:
    """`file:line: text` of the stubs that are left."""
    places = []
    for name in task.symbols:
        path = source_file(package, name)
        lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
        for number, line in enumerate(lines, 1):
            places += [
                f"{_show(path)}:{number}: {s.text.split(' - ')[0]}" for s in find_stubs(line) if s.label == task.label
            ]
    return places


def _show(path: "Path") -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
