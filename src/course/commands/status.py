"""`pdm run status`: what is done, what it was worth, and what is next."""

import argparse
import sys

from course.errors import CourseError
from course.manual import Example
from course.solutions import LEARNER, add_solution

HELP = "show what is done, and what to do next"
ABOUT = """
Shows weeks, days and tasks: done, failing, to do (stubs are left), blocked by another task, changed since its last
run, written but not run yet, or filled in from the reference by `pdm run checkout`. Points count for tasks whose last
run passed. Kernel tasks tell what ran them. It runs nothing: it compares what `test` and `watch` noted down with what
your files say now.

The notes are in .course/state.json. Delete it when you like: then every written task is "not run yet".

--json writes one object: solution, points {earned, possible}, next (a task with its command, or null), and weeks, with
days, with tasks. A task has week, day, task, title, files, chapter, state (done, failing, to do, blocked, changed, not
run, given, missing), passed, points, points_earned, cases, passed_cases, when, ran_on, blocked_by, stubs_left,
hints_seen.
"""
EXAMPLES = (
    Example("pdm run status", "all weeks"),
    Example("pdm run status --week 1", "one week, with all its tasks"),
    Example("pdm run status --json", "for a program"),
)
FILES = ((".course/state.json", "what runs of the tests said, and which hints were shown"),)
SEE_ALSO = ("test", "watch", "hint", "checkout")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--week", type=int, metavar="N", help="only this week, in full")
    add_solution(parser, "whose progress is shown", LEARNER)
    parser.add_argument("--json", action="store_true", help="write it as JSON")


def run(args: argparse.Namespace) -> int:
    from course.console import console
    from course.curriculum import load
    from course.hints import levels_shown
    from course.loop.progress import progress
    from course.paths import SRC
    from course.work.strangers import strangers

    curriculum = load()
    weeks = curriculum.weeks if args.week is None else [curriculum.week(args.week)]
    if not (SRC / args.solution).is_dir():
        raise CourseError(f"src/{args.solution} does not exist: make it with `pdm run starter`")
    found = progress(curriculum, args.solution)
    if args.json:
        from course.loop.overview_json import overview_json

        print(overview_json(weeks, found, levels_shown(), args.solution))
    else:
        from course.loop.overview import print_overview

        print_overview(console(), weeks, found, levels_shown(), args.solution)
    for line in strangers(curriculum) if args.solution == LEARNER else ():
        print(line, file=sys.stderr)
    return 0
