"""Mutants: typical mistakes, put into a copy of the reference one at a time, to see that the tests notice and say so.

Each names its killer, a case of its own day, which must fail and whose text must hold the mutant's message."""

import importlib.util
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from course.curriculum import Day
from course.errors import CourseError
from course.paths import REFERENCE, source_file
from course.scratch import Report, grade, scratch
from course.verdict import NOTHING_GRADED

PER_TASK = 3


@dataclass(frozen=True)
class Mutant:
    """One mistake: in `file`, named as in the registry, the text `old`, which occurs exactly once, becomes `new`."""

    name: str
    task: int
    file: str
    old: str
    new: str
    message: str
    killer: str


def load_mutants(path: Path) -> list[Mutant]:
    """The `MUTANTS` of a file beside the tests."""
    if not path.exists():
        raise CourseError(f"{path} does not exist: every day needs mutants of its tasks")
    spec = importlib.util.spec_from_file_location(f"mutants_of_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.MUTANTS)


def problems_of(day: Day, mutants: list[Mutant], reference: Path = REFERENCE) -> list[str]:
    """What is wrong with the mutants themselves: names, tasks, texts that do not occur exactly once."""
    problems = [f"two mutants are called {name}" for name, n in Counter(m.name for m in mutants).items() if n > 1]
    counts = Counter(mutant.task for mutant in mutants)
    for task in day.tasks:
        if counts[task.number] < PER_TASK:
            problems.append(f"{task.label} has {counts[task.number]} mutants: it needs at least {PER_TASK}")
    for mutant in mutants:
        if not 1 <= mutant.task <= len(day.tasks):
            problems.append(f"{mutant.name}: {day.label} has no task {mutant.task}")
        if not mutant.message:
            problems.append(f"{mutant.name}: needs a message, the likely mistake that the learner is told")
        if problem := _unfit(mutant, source_file(reference, mutant.file)):
            problems.append(f"{mutant.name}: {problem}")
    return problems


def _unfit(mutant: Mutant, path: Path) -> str | None:
    if not path.is_file():
        return f"the reference has no file {mutant.file}"
    if mutant.old == mutant.new:
        return "old and new are the same text"
    count = path.read_text().count(mutant.old)
    return None if count == 1 else f"its text occurs {count} times in {mutant.file}, not once: {mutant.old!r}"


def run_mutant(day: Day, mutant: Mutant, *options: str, reference: Path = REFERENCE) -> Report:
    """Grade a copy of the reference with the mistake in it."""
    with scratch(reference) as package:
        path = source_file(package, mutant.file)
        path.write_text(path.read_text().replace(mutant.old, mutant.new))
        return grade(package, [day.tests], *options)


def verdict(mutant: Mutant, report: Report) -> str | None:
    """None if the killer failed and said why, else what is wrong."""
    ran = [result for result in report.results if result.name.startswith(f"{mutant.killer}[")]
    failed = [result.text for result in ran if result.kind == "failed"]
    if report.status == NOTHING_GRADED:
        return f"the killer {mutant.killer} is no case of that day"
    if not ran:
        return f"the killer {mutant.killer} did not run to its end:\n{report.output.strip()[-1500:]}"
    if not failed:
        return f"survived {mutant.killer}"
    if not any(mutant.message in text for text in failed):
        return f"{mutant.killer} fails without saying {mutant.message!r}:\n{failed[0]}"
    return None
