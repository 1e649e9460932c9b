"""Which tasks a command is about: a week, a day, a task, or all."""

import argparse

from course.curriculum import Curriculum, Task
from course.errors import CourseError


def add_selection(parser: argparse.ArgumentParser) -> None:
    """The options `--week`, `--day` and `--task`."""
    parser.add_argument("--week", type=int, metavar="N", help="only this week")
    parser.add_argument("--day", type=int, metavar="N", help="only this day of the week")
    parser.add_argument("--task", type=int, metavar="N", help="only this task of the day")


def selected(args: argparse.Namespace, curriculum: Curriculum) -> list[Task]:
    """The tasks that the options name. Raises CourseError for one that does not exist, and for a day of no week."""
    if args.day is not None and args.week is None:
        raise CourseError(f"--day {args.day} needs --week: days are counted in each week")
    if args.task is not None and args.day is None:
        raise CourseError(f"--task {args.task} needs --day: tasks are counted in each day")
    if args.task is not None:
        return [curriculum.task(args.week, args.day, args.task)]
    if args.day is not None:
        return list(curriculum.day(args.week, args.day).tasks)
    if args.week is not None:
        return [task for day in curriculum.week(args.week).days for task in day.tasks]
    return list(curriculum.tasks)
