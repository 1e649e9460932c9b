"""`pdm run reset`: makes a task or a day a stub again, and leaves the rest of the files as they are."""

import argparse
import json

from course.errors import CourseError
from course.manual import Example
from course.work.place import HERE

HELP = "start a task or a day again: its functions become stubs"
ABOUT = """
Puts the stubs of a task, or of all tasks of a day, back into your files. Everything else in these files stays as you
have it: your other tasks, your imports, your helpers. Where a file no longer parses, or a function of the task is not
in it any more, the whole file goes back to its start, and the message says so.

`--file` takes one file back to its start, also one in which there is no task.

Your files are saved first: `pdm run restore latest` brings them back.
"""
EXAMPLES = (
    Example("pdm run reset --week 1 --day 1 --task 1", "start one task again"),
    Example("pdm run reset --week 1 --day 1", "start all tasks of a day again"),
    Example("pdm run reset --file src/tiny_llm/model/basics.py", "take one file back to its start"),
)
FILES = ((".course/saved/", "the files as they were before"),)
SEE_ALSO = ("restore", "checkout", "hint")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--week", type=int, metavar="N", help="the week")
    parser.add_argument("--day", type=int, metavar="N", help="the day of the week")
    parser.add_argument("--task", type=int, metavar="N", help="the task of the day (default: all of them)")
    parser.add_argument("--file", action="append", default=[], metavar="FILE", help="a file of the course; repeatable")
    parser.add_argument(
        "--json",
        action="store_true",
        help='print {"changed": [...], "whole": {file: why}, "others": [tasks whose code went with these], '
        '"saved": name or null}',
    )


def run(args: argparse.Namespace) -> int:
    from course.curriculum import load
    from course.work.names import registry_name
    from course.work.reset import reset_files, reset_tasks

    if args.file and (args.week, args.day, args.task) != (None, None, None):
        raise CourseError("--file takes back a whole file: leave out --week, --day and --task")
    if not args.file and (args.week is None or args.day is None):
        raise CourseError("what is to be reset? Use pdm run reset --week N --day D [--task T], or --file FILE")
    curriculum = load()
    if args.file:
        names = [registry_name(file, HERE) for file in args.file]
        what, done = ", ".join(map(HERE.show, names)), reset_files(curriculum, names, "reset-file", HERE)
    elif args.task is None:
        day = curriculum.day(args.week, args.day)
        what, done = day.label, reset_tasks(curriculum, day.tasks, f"reset-{day.week}.{day.day}", HERE)
    else:
        task = curriculum.task(args.week, args.day, args.task)
        what = f"{task.label}: {task.title}"
        done = reset_tasks(curriculum, [task], f"reset-{task.week}.{task.day}.{task.number}", HERE)
    if args.json:
        saved = done.saved.name if done.saved else None
        whole = {HERE.show(file.name): file.why for file in done.whole}
        others = [f"{task.week}.{task.day}.{task.number}" for file in done.whole for task in file.tasks]
        told = {"changed": list(map(HERE.show, done.changed)), "whole": whole, "others": others, "saved": saved}
        print(json.dumps(told))
        return 0
    if done.saved is None:
        print(f"{what} is as it was at the start: nothing to reset")
        return 0
    where = "" if args.file else f", in {', '.join(map(HERE.show, done.changed))}"
    print(f"{what} {'are as they were' if len(args.file) > 1 else 'is as it was'} at the start{where}")
    for file in done.whole:
        print(f"the whole of {HERE.show(file.name)} was reset, because {file.why}")
        if file.tasks:
            names = ", ".join(f"{task.label} ({task.title})" for task in file.tasks)
            print(f"with it went the code of {names}; it is in the saved copy")
    print(f"your files are saved: pdm run restore {done.saved.name}")
    return 0
