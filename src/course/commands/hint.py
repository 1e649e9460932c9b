"""`pdm run hint`: one more hint for a task each time it is run."""

import argparse

from course.hints import LEVELS, NAMES, command, next_level, remember
from course.manual import Example

HELP = "show the next hint for a task"
ABOUT = """
Three hints for each task: a nudge, the invariant, nearly the code. Each call shows the next one, and the last
one again. They are the same as in the collapsed boxes of the chapter.

How many you have seen is remembered in .course/state.json. Nothing else is touched.
"""
EXAMPLES = (
    Example("pdm run hint --week 1 --day 1 --task 1", "the next hint of the first task"),
    Example("pdm run hint --week 1 --day 1 --task 1 --level 2", "the second one, whatever was shown before"),
)
FILES = ((".course/state.json", "the level shown last, for each task; it can be deleted"),)
SEE_ALSO = ("test", "status", "solution", "studying.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--week", type=int, required=True, metavar="N", help="the week")
    parser.add_argument("--day", type=int, required=True, metavar="N", help="the day of the week")
    parser.add_argument("--task", type=int, required=True, metavar="N", help="the task of the day")
    parser.add_argument("--level", type=int, choices=LEVELS, help="1 nudge, 2 invariant, 3 nearly code (default: next)")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    from course.curriculum import load

    task = load().task(args.week, args.day, args.task)
    level = args.level or next_level(task)
    remember(task, level)
    following = f"{command(task)} --level {level + 1}" if args.level else command(task)
    console = Console(highlight=False, emoji=False)
    console.print(
        Panel(
            Text(task.hints[level - 1].strip()),
            title=Text(f"{task.label}: {task.title}"),
            subtitle=f"hint {level} of {len(LEVELS)}: {NAMES[level - 1]}",
            title_align="left",
            subtitle_align="left",
            padding=(1, 2),
        )
    )
    console.print(f"Next hint: {following}" if level < LEVELS[-1] else "That was the last hint.", soft_wrap=True)
    console.print(f"Chapter:   {task.anchor}", soft_wrap=True)
    return 0
