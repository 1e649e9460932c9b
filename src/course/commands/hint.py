"""`pdm run hint`: one more hint for a task each time it is run."""

import argparse
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.hints import LEVELS, NAMES, command, next_level, remember
from course.manual import Example

if TYPE_CHECKING:
    from course.curriculum import Curriculum, Task

HELP = "show the next hint for a task"
ABOUT = """
Each task has three hints: a nudge, an invariant, and nearly the code. Each run shows the next one; --level shows
one again. Without numbers it is about the task that `pdm run status` calls next.

Which hints you have seen is kept in .course/state.json, which may be deleted. --json writes one object: week, day,
task, title, level, name, text, seen (levels shown so far), of, chapter, and next (a command, or null).
"""
EXAMPLES = (
    Example("pdm run hint --week 1 --day 1 --task 1", "the next hint of this task"),
    Example("pdm run hint", "the next hint of the task that is next"),
    Example("pdm run hint --week 1 --day 1 --task 1 --level 1", "the first hint once more"),
    Example("pdm run hint --week 1 --day 1 --task 1 --level 2 --json", "the second, for a program"),
)
FILES = ((".course/state.json", "remembers which hints were shown"),)
SEE_ALSO = ("status", "watch", "solution")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--week", type=int, metavar="N", help="the week")
    parser.add_argument("--day", type=int, metavar="N", help="the day of the week")
    parser.add_argument("--task", type=int, metavar="N", help="the task of the day")
    parser.add_argument("--level", type=int, choices=LEVELS, help="1 nudge, 2 invariant, 3 nearly code (default: next)")
    parser.add_argument("--json", action="store_true", help="write it as JSON")


def run(args: argparse.Namespace) -> int:
    from course.curriculum import load

    task = _task(args, load())
    level = args.level or next_level(task)
    seen = remember(task, level)
    again = f"{command(task)} --level {level + 1}" if args.level else command(task)
    following = again if level < LEVELS[-1] else None
    if args.json:
        _print_json(task, level, seen, following)
    else:
        _print(task, level, seen, following)
    return 0


def _task(args: argparse.Namespace, curriculum: "Curriculum") -> "Task":
    """The task that the numbers name; without any, the next one."""
    numbers = {"--week": args.week, "--day": args.day, "--task": args.task}
    missing = [name for name, value in numbers.items() if value is None]
    if not missing:
        return curriculum.task(args.week, args.day, args.task)
    if len(missing) < len(numbers):
        raise CourseError(
            f"{' and '.join(missing)} missing: name week, day and task, or none for the task that is next"
        )
    from course.loop.progress import next_task, progress

    if task := next_task(progress(curriculum)):
        return task
    raise CourseError("every task is done: name one with --week, --day and --task")


def _print(task: "Task", level: int, seen: int, following: str | None) -> None:
    from course.console import console
    from course.loop.hint_panel import print_hint

    out = console()
    print_hint(out, task, level, seen)
    out.print(f"Next hint: {following}" if following else "That was the last hint.", soft_wrap=True)
    out.print(f"Chapter:   {task.anchor}", soft_wrap=True)


def _print_json(task: "Task", level: int, seen: int, following: str | None) -> None:
    import msgspec

    told = {
        "week": task.week,
        "day": task.day,
        "task": task.number,
        "title": task.title,
        "level": level,
        "name": NAMES[level - 1],
        "text": task.hints[level - 1].strip(),
        "seen": seen,
        "of": len(LEVELS),
        "chapter": task.anchor,
        "next": following,
    }
    print(msgspec.json.format(msgspec.json.encode(told)).decode())
