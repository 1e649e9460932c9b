"""`pdm run solution`: the reference's way to do a task, as a difference from one's own."""

import argparse
import sys

from course.curriculum import Curriculum, Task
from course.errors import CourseError
from course.manual import Example
from course.work.place import HERE

HELP = "after a task has passed: how the reference does it"
ABOUT = """
Shows the reference's functions of a task, with the helpers that only they use, as a difference from your own: lines
with - are yours, lines with + are the reference's. `--plain` shows the reference alone.

You see it once the task has passed, when there is most to learn from it. `--anyway` shows it before.

Nothing is changed. A student's copy of the course has no reference to show.
"""
EXAMPLES = (
    Example("pdm run solution --week 1 --day 1 --task 1", "compare your solution of a task that passed", needs="work"),
    Example("pdm run solution --week 1 --day 2 --task 1 --anyway", "look before the task has passed"),
    Example("pdm run solution --week 1 --day 1 --task 1 --plain --anyway", "the reference alone"),
)
EXITS = (
    (0, "shown"),
    (2, "the task has not passed yet, or a mistake; one line on standard error says what to do"),
)
SEE_ALSO = ("test", "hint", "compare")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--week", type=int, required=True, metavar="N", help="the week")
    parser.add_argument("--day", type=int, required=True, metavar="N", help="the day of the week")
    parser.add_argument("--task", type=int, required=True, metavar="N", help="the task of the day")
    parser.add_argument("--anyway", action="store_true", help="show it although the task has not passed yet")
    parser.add_argument("--plain", action="store_true", help="the reference alone instead of a difference")


def run(args: argparse.Namespace) -> int:
    from course.curriculum import load
    from course.work.checkpoint import need_reference
    from course.work.show import diff, show_source
    from course.work.solved import solved

    curriculum = load()
    task = curriculum.task(args.week, args.day, args.task)
    need_reference("`solution`", HERE)
    if not args.anyway and not _passed(curriculum, task):
        raise CourseError(
            f"{task.label} has not passed yet: `pdm run test {task.options}` tests it, "
            f"`pdm run hint {task.options}` helps, and --anyway shows the solution"
        )
    for name, mine, reference in solved(curriculum, task, HERE):
        if args.plain:
            comment = "#" if name.endswith(".py") else "//"
            language = "python" if name.endswith(".py") else "cpp"
            show_source(f"{comment} {_reference_name(name)}\n\n{reference}\n", language)
            continue
        if not mine:
            print(f"{HERE.show(name)} has no readable functions of the task to compare with", file=sys.stderr)
        same = f"{HERE.show(name)} and {_reference_name(name)} are alike\n"
        show_source(diff(mine, reference, HERE.show(name), _reference_name(name)) or same, "diff")
    return 0


def _passed(curriculum: Curriculum, task: Task) -> bool:
    from course.loop.progress import assess
    from course.loop.sources import Sources

    return assess(Sources(curriculum, HERE.package), HERE.course / "state.json")[task].passed


def _reference_name(name: str) -> str:
    from course.paths import source_file

    return str(source_file(HERE.reference, name).relative_to(HERE.root))
