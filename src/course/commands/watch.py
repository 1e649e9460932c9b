"""`pdm run watch`: tests the current task each time a file is saved."""

import argparse
import contextlib
import errno
import os
import sys

from course.errors import CourseError
from course.loop.selection import add_selection, selected
from course.manual import Example
from course.solutions import LEARNER, add_solution

HELP = "test the current task each time you save a file"
ABOUT = """
Leave it running beside your editor. It finds the first task that is not done, runs its tests, and runs them again
each time a file in src/tiny_llm or src/extensions is saved. It shows the first failure, and the next step. A save
during a run stops that run and starts anew, so an endless loop is ended by mending it.

Keys: h the next hint, l the tasks of the day, n the next task, p the one before, r back to the stubs (asks, and
keeps what you wrote), s the solution once the task has passed, a again, q quit, ? help. Once a task has passed,
watch goes on to the next when you press n, or when you save a change to the code of another task. Without a terminal
there are no keys, and the outcomes are written one below the other.

What passed is kept in .course/state.json for `pdm run status`, as it is after `pdm run test`.
"""
EXAMPLES = (
    Example("pdm run watch", "go on with the first task that is not done", untried="needs a terminal"),
    Example("pdm run watch --week 1 --day 2", "only the tasks of this day", untried="needs a terminal"),
    Example("pdm run watch --once", "test the current task once, and exit with 1 unless it passes", ends=1),
)
FILES = ((".course/state.json", "what passed"),)
EXITS = (
    (0, "you pressed q; with --once: the task passed"),
    (1, "with --once: the task did not pass"),
    (2, "a mistake; one line on standard error says what to change"),
    (130, "Ctrl-C"),
)
SEE_ALSO = ("status", "test", "hint", "reset", "solution")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_solution(parser, "whose code is tested", LEARNER)
    parser.add_argument("--once", action="store_true", help="test once, without waiting for saves")


def run(args: argparse.Namespace) -> int:
    from course.console import console
    from course.curriculum import load
    from course.loop.choice import Choice
    from course.loop.progress import assess, graded
    from course.loop.session import Session

    curriculum = load()
    tasks = selected(args, curriculum)
    sources = graded(curriculum, args.solution)
    if not sources.package.is_dir():
        fix = "make it with `pdm run starter`" if args.solution == LEARNER else "this copy of the course has none"
        raise CourseError(f"src/{args.solution} does not exist: {fix}")
    try:
        return Session(console(), sources, Choice(tasks, assess(sources)), args.once).run()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise CourseError(f"watch cannot go on: {error}") from None
        with contextlib.suppress(OSError):  # nobody reads what we print any more: say no more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
