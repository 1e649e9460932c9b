"""`grade --self-check`: submissions of which one knows what they must earn, graded as any other, in all formats."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course.console import console
from course.grading.copies import Copy, copies
from course.grading.desk import Desk
from course.grading.formats.sums import points_told
from course.grading.grade import Grade, told, total

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Outcome:
    """What a copy earned, and everything that is wrong with that."""

    copy: Copy
    grade: Grade
    expected: float
    problems: tuple[str, ...]


def check_copy(desk: Desk, copy: Copy, folder: Path) -> Outcome:
    """Grade one copy; `folder` is for its files and results."""
    submission = copy.hand_in(copy.files(), folder / "submission")
    grade = desk.grade(submission, folder / "results", "self-check")
    expected = total(desk.course.points_of(task) for task in copy.earning)
    return Outcome(copy, grade, expected, tuple(_problems(desk, copy, grade, expected, folder / "results")))


def _problems(desk: Desk, copy: Copy, grade: Grade, expected: float, results: Path) -> list[str]:
    problems = [grade.problem] if grade.problem else []
    earning = {(task.week, task.day, task.number) for task in copy.earning}
    for task in grade.tasks:
        due = task.max_points if (task.week, task.day, task.task) in earning else 0.0
        if task.points != due:
            problems.append(f"{task.label} earns {told(task.points)}, not {told(due)} ({task.state})")
    most = total(desk.course.points_of(task) for day in desk.days for task in day.tasks)
    for file, sums in points_told(results).items():
        if sums != {(expected, most)}:
            shown = " and ".join(f"{told(a)}/{told(b)}" for a, b in sorted(sums))
            problems.append(f"{file} says {shown}, not {told(expected)}/{told(most)}")
    return problems


def self_check(desk: Desk) -> int:
    """Grade all copies for the days of the desk; 1 if anything differs from what is expected."""
    out, outcomes = console(), []
    _show_protections(out, desk)
    for copy in copies(desk.course.curriculum, desk.days):
        if desk.stop.is_set():
            break
        with tempfile.TemporaryDirectory(prefix="tiny-llm-self-check-") as folder:
            outcome = check_copy(desk.on(copy.days), copy, Path(folder))
        outcomes.append(outcome)
        sums = f"{told(outcome.grade.points)} of {told(outcome.expected)} expected"
        out.print(f"{'wrong' if outcome.problems else 'right'}: {copy.name}: {sums}, {outcome.grade.seconds:.0f} s")
        for problem in outcome.problems:
            out.print(f"  {problem}", style="red")
    _show_table(out, outcomes)
    if len(outcomes) == 1:
        out.print("this copy of the course has no reference solution: only the untouched starter was graded")
    return 1 if desk.stop.is_set() or any(outcome.problems for outcome in outcomes) else 0


def _show_protections(out: "Console", desk: Desk) -> None:
    out.print(f"boundary: {desk.mode}")
    for protection in desk.protections:
        out.print(f"  {'on ' if protection.on else 'off'} {protection.name}: {protection.detail}")
    out.print()


def _show_table(out: "Console", outcomes: Sequence[Outcome]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("copy", "expected", "got", "of", "all formats"):
        table.add_column(title, justify="left" if title in ("copy", "all formats") else "right")
    for outcome in outcomes:
        numbers = outcome.expected, outcome.grade.points, outcome.grade.max_points
        table.add_row(outcome.copy.name, *map(told, numbers), "differ" if outcome.problems else "the same")
    out.print()
    out.print(table)
