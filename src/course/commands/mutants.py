"""`pdm run mutants`: tests the tests. Every mutant must die by its killer, every alternative solution must pass."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.manual import Example

if TYPE_CHECKING:
    from course.curriculum import Day
    from course.mutants import Mutant

HELP = "check the tests: mutants must fail, alternatives must pass"
ABOUT = """
Tests the tests. A mutant is the reference with one mistake: the test that it names must fail on it, with the
message that it names. An alternative is a correct solution in another style, and must pass. Scratch copies
are changed, never the reference.

Run it after every change of a graded test, of the reference, or of a mutant.
"""
EXAMPLES = (
    Example("pdm run mutants --week 1 --day 1", "all mutants and alternatives of a day", untried="takes minutes"),
    Example("pdm run mutants --week 1 --day 1 --name no-maximum", "one mutant"),
    Example(
        "pdm run mutants --week 1 --day 1 --full",
        "the whole day for each mutant, and what kills it",
        untried="takes minutes",
    ),
    Example(
        "pdm run mutants --week 1 --day 1 --score --limit 10",
        "how many of ten automatic mutants the day's tests kill",
        untried="takes minutes",
    ),
)
EXITS = (
    (0, "every mutant died with its message, every alternative passed"),
    (1, "some did not; standard error says which"),
    (2, "a mistake; one line on standard error says what to change"),
)
FILES = (("tests_refsol/week_N/mutants/", "the mutants"), ("tests_refsol/week_N/alternatives/", "the alternatives"))
SEE_ALSO = ("gates", "test", "CONTRIBUTING.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--week", type=int, metavar="N", help="only this week")
    parser.add_argument("--day", type=int, metavar="N", help="only this day of the week")
    parser.add_argument("--name", help="only the mutant of this name, and no alternatives")
    parser.add_argument("--full", action="store_true", help="run the whole day for each mutant; report what kills it")
    parser.add_argument("--score", action="store_true", help="an automatic mutation score for each day instead")
    parser.add_argument(
        "--limit", type=int, default=40, metavar="N", help="at most this many automatic mutants a day (0: all)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="which ones, where there are more")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at a time")


def run(args: argparse.Namespace) -> int:
    """Exit status 0 if nothing is wrong with any day asked for."""
    days = _days(args)
    _build_reference(days)
    if args.score:
        from course.mutation_score import score_day

        for day in days:
            print(score_day(day, args.limit, args.seed, args.jobs), flush=True)
        return 0
    from course.scratch import workers

    with workers(args.jobs) as map_:
        problems = [problem for day in days for problem in _check_day(day, args, map_)]
    return 1 if problems else 0


def _days(args: argparse.Namespace) -> "list[Day]":
    from course.curriculum import load

    curriculum = load()
    if args.day is not None:
        if args.week is None:
            raise CourseError(f"--day {args.day} needs --week")
        return [curriculum.day(args.week, args.day)]
    return list(curriculum.days if args.week is None else curriculum.week(args.week).days)


def _build_reference(days: "list[Day]") -> None:
    """Copies of the reference come with its library, so that only mutants in C++ are compiled. Raises CourseError."""
    from course.build import ensure_built
    from course.curriculum import load
    from course.paths import EXTENSION, REFERENCE, extension_folder

    curriculum = load()
    if any("library" in curriculum.built_for(day) for day in days):
        ensure_built(extension_folder(REFERENCE), REFERENCE, EXTENSION)


def _check_day(day: "Day", args: argparse.Namespace, map_: Callable) -> list[str]:
    from course.mutants import load_mutants, problems_of

    mutants = load_mutants(day.mutants)
    problems = [] if args.name else problems_of(day, mutants)
    if args.name:
        mutants = [mutant for mutant in mutants if mutant.name == args.name]
        if not mutants:
            raise CourseError(f"{day.label} has no mutant {args.name}")
    if not problems:
        problems += map_(lambda mutant: _mutant_problem(day, mutant, args.full), mutants)
        alternatives = [] if args.name else day.alternatives
        problems += map_(lambda path: _alternative_problem(day, path), alternatives)
    problems = [problem for problem in problems if problem]
    for problem in problems:
        print(f"{day.label}: {problem}", file=sys.stderr, flush=True)
    if not problems:
        passed = "" if args.name else f", {len(day.alternatives)} alternatives pass"
        print(f"{day.label}: {len(mutants)} mutants die with their message{passed}", flush=True)
    return problems


def _mutant_problem(day: "Day", mutant: "Mutant", full: bool) -> str | None:
    from course.mutants import run_mutant, verdict

    report = run_mutant(day, mutant, *(() if full else ("--case", mutant.killer)))
    if full:
        print(f"  {mutant.name}: killed by {_listed(report.names('failed'))}", flush=True)
    problem = verdict(mutant, report)
    return f"mutant {mutant.name}: {problem}" if problem else None


def _alternative_problem(day: "Day", path: "os.PathLike[str]") -> str | None:
    from course.alternatives import problem_of, run_alternative, verdict

    problem = problem_of(path) or verdict(run_alternative(day, path))
    return f"alternative {path.name}: {problem}" if problem else None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
