"""`pdm run checkout`: puts the learner's files where a week or a day begins."""

import argparse
import json
import sys

from course.manual import Example
from course.work.place import HERE

HELP = "start in the middle of the course: earlier days are filled in"
ABOUT = """
Fills the tasks of all earlier days from the reference solution, and makes those of the day you name, and of later days,
stubs. So you can start with the week that interests you, and test your code against working code before it.

Your files are saved first, all of them; the last line says how to get them back. Files of your own beside those of
the course stay where they are.

`--keep` keeps every task that you have written, and only fills the earlier ones that are still to do. A file in which
that cannot be done function by function is filled as a whole, and the message names it.

A student's copy of the course, without the reference, has nothing to fill in.
"""
EXAMPLES = (
    Example("pdm run checkout --week 3", "begin with Week 3"),
    Example("pdm run checkout --week 2 --day 4", "begin in the middle of a week"),
    Example("pdm run checkout --week 3 --keep", "keep what you wrote, have the gaps before Week 3 filled"),
)
FILES = (
    (".course/saved/", "your files, and your progress, as they were before"),
    (".course/state.json", "which tasks were filled in; they earn no points"),
)
SEE_ALSO = ("restore", "reset", "status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--week", type=int, required=True, metavar="N", help="the week to begin with")
    parser.add_argument("--day", type=int, default=1, metavar="N", help="the day of the week (default 1)")
    parser.add_argument("--keep", action="store_true", help="keep your own code, and fill only what is still to do")
    parser.add_argument(
        "--json",
        action="store_true",
        help='print {"changed": [...], "filled": [tasks], "whole": {file: why}, "saved": name or null}',
    )


def run(args: argparse.Namespace) -> int:
    from course.curriculum import load
    from course.loop.progress import mark_given
    from course.loop.sources import Sources
    from course.work.checkout import STATE, checkout, fill
    from course.work.checkpoint import before
    from course.work.show import files

    curriculum = load()
    day = curriculum.day(args.week, args.day)
    done = (fill if args.keep else checkout)(curriculum, before(day.week, day.day), HERE)
    if done.saved and (problem := mark_given(done.filled, Sources(curriculum, HERE.package), HERE.file(STATE))):
        print(problem, file=sys.stderr)
    if args.json:
        tasks = [f"{task.week}.{task.day}.{task.number}" for task in done.filled]
        whole = {HERE.show(name): why for name, why in done.whole.items()}
        saved = done.saved.name if done.saved else None
        print(
            json.dumps({"changed": list(map(HERE.show, done.changed)), "filled": tasks, "whole": whole, "saved": saved})
        )
        return 0
    if done.saved is None:
        print(f"your files are at the beginning of {day.label} already: nothing was changed")
        return 0
    later = "" if args.keep else ", and all others are stubs"
    earlier = "1 earlier task comes" if len(done.filled) == 1 else f"{len(done.filled) or 'no'} earlier tasks come"
    print(f"{day.label}: {earlier} from the reference{later}; {files(len(done.changed))} changed")
    for name, why in done.whole.items():
        print(f"{HERE.show(name)} comes from the reference as a whole, because {why}")
    print(f"your earlier files are saved: pdm run restore {done.saved.name}")
    print(f"next: pdm run test --week {day.week} --day {day.day}")
    return 0
