"""`pdm run hint`: one more hint for a task each time it is run."""

import argparse

from course.hints import LEVELS, NAMES, command, next_level, remember

HELP = "show the next hint for a task"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--week", type=int, required=True)
    parser.add_argument("--day", type=int, required=True)
    parser.add_argument("--task", type=int, required=True)
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
