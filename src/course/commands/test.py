"""`pdm run test`: grades a package, a week, a day or a task at a time."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.manual import Example
from course.paths import ROOT, SRC
from course.solutions import LEARNER, add_solution

if TYPE_CHECKING:
    from course.curriculum import Curriculum
    from course.summary import Result

HELP = "grade your solution: a week, a day or a task"
ABOUT = """
Runs the graded tests of a week, a day or a task on your package, src/tiny_llm. A table at the end says for
each task whether it is done, failing, to do, or blocked by an earlier task, and what to open next. Messages
about failures stand above the table: the property that does not hold, the first wrong value, and often the
likely mistake.

Nothing is changed but your progress, which `status` shows. The result counts only if the run came to its end:
code that ends the process has not passed. A line on standard error names each file of your own that a task's file
imports: it works here, and a grader does not take it.
"""
EXAMPLES = (
    Example("pdm run test --week 1 --day 1 --task 1", "one task", needs="work"),
    Example("pdm run test --week 1 --day 1", "a day; red at first", ends=1),
    Example(
        "pdm run test --week 1 --day 1 --isolate",
        "the same, with your code in a process of its own, so that a crash fails one case only",
        needs="work",
    ),
    Example(
        "pdm run test --week 1 --day 1 -- -k softmax -x",
        "only properties with this word; stop at the first that fails",
        needs="work",
    ),
    Example("pdm run test-refsol --week 1 --day 1", "the same tests on the reference"),
)
EXITS = (
    (0, "all that was asked for was graded and passed"),
    (1, "something did not pass"),
    (2, "a mistake; one line on standard error says what to change"),
    (5, "nothing was selected, so nothing was graded"),
    (130, "Ctrl-C"),
)
FILES = (
    ("src/tiny_llm/", "what is graded, with src/extensions/"),
    ("tests_refsol/", "the tests"),
    (".course/state.json", "your progress; it can be deleted"),
)
SEE_ALSO = ("watch", "hint", "status", "debugging-numerics.md")
_USAGE = "pdm run test --week N [--day D] [--task T]"
_QUIET = (
    "-qq",
    "--no-header",
    "--tb=no",
    "-rN",
    "--disable-warnings",
    "-o",
    "console_output_style=classic",
    "--import-mode=importlib",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--week", type=int, metavar="N", help="the week (needed, but for the reference)")
    parser.add_argument("--day", type=int, metavar="N", help="only this day of the week")
    parser.add_argument("--task", type=int, metavar="N", help="only this task of the day")
    add_solution(parser, "whose code is graded", LEARNER)
    parser.add_argument("--isolate", action="store_true", help="run the solution in a process of its own")
    parser.add_argument("pytest", nargs="*", metavar="-- PYTEST_ARGUMENT", help="passed on to pytest")


def run(args: argparse.Namespace) -> int:
    """Exit status 0 only if everything asked for was graded and passed."""
    try:
        return _graded(args)
    except KeyboardInterrupt:  # before the tests began
        from course.verdict import stopped

        return stopped()


def _graded(args: argparse.Namespace) -> int:
    _check(args)
    command = [*_QUIET, "-p", "course.plugin", "--rootdir", str(ROOT), "--solution", args.solution]
    if args.task is not None:
        command += ["--task", str(args.task)]
    if args.isolate:
        command.append("--isolate")
    from course.curriculum import load
    from course.loop.progress import graded, is_own, record
    from course.verdict import NOTHING_GRADED, supervise
    from course.work.strangers import strangers

    # Options meant for the user's other projects must not change what is graded; ours come after --.
    os.environ.pop("PYTEST_ADDOPTS", None)
    curriculum = load()
    sources = graded(curriculum, args.solution)

    def keep(results: list["Result"]) -> None:
        if problem := record(results, sources):
            print(problem, file=sys.stderr)

    status = supervise([*command, *args.pytest, *_files(args, curriculum)], keep)
    if status == NOTHING_GRADED:
        print("nothing was selected and run, so nothing was graded", file=sys.stderr)
    if is_own(sources.package) and args.solution == LEARNER:
        for line in strangers(curriculum):
            print(line, file=sys.stderr)
    return status


def _check(args: argparse.Namespace) -> None:
    if args.week is None and (args.solution == "tiny_llm" or args.day is not None or args.task is not None):
        raise CourseError(f"which week? Use {_USAGE}")
    if args.task is not None and args.day is None:
        raise CourseError(f"--task {args.task} needs --day: use {_USAGE}")
    if not (SRC / args.solution).is_dir():
        fix = "make it with `pdm run starter`" if args.solution == "tiny_llm" else "this copy of the course has none"
        raise CourseError(f"src/{args.solution} does not exist: {fix}")


def _files(args: argparse.Namespace, curriculum: "Curriculum") -> list[str]:
    """The test files asked for; one that is missing is an error, because its day would go ungraded."""
    if args.task is not None:
        curriculum.task(args.week, args.day, args.task)
    if args.day is not None:
        days = [curriculum.day(args.week, args.day)]
    elif args.week is not None:
        days = list(curriculum.week(args.week).days)
    else:
        days = list(curriculum.days)
    for day in days:
        if not day.tests.exists():
            raise CourseError(f"{day.tests.relative_to(ROOT)} does not exist: without it {day.label} cannot be graded")
    return [str(day.tests) for day in days]
