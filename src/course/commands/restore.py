"""`pdm run restore`: brings saved files back, and shows what is saved."""

import argparse
import json

from course.errors import CourseError
from course.manual import Example
from course.work.place import HERE
from course.work.saved import LATEST, Saved

HELP = "bring back files that another command has saved"
ABOUT = """
Every command that changes your files saves them first, in a folder of `.course/saved/`. This command lists these
copies and brings one back, byte for byte. What is there now is saved before, so `pdm run restore latest` a second time
undoes the first.

NAME is a name from the list, the beginning of one, or `latest`. Files that the copy does not name stay as they are.

Nothing is ever deleted from `.course/saved/`. Each copy is a plain folder: delete those that you no longer want.
"""
EXAMPLES = (
    Example("pdm run restore --list", "all saved copies, the newest first"),
    Example("pdm run restore latest", "undo the last command that changed your files", needs="saved"),
    Example("pdm run restore latest --diff", "show what would change, and change nothing", needs="saved"),
    Example("pdm run restore latest --file src/tiny_llm/model/basics.py", "bring one file back", needs="saved"),
)
FILES = ((".course/saved/", "the saved copies"),)
SEE_ALSO = ("reset", "checkout", "update")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="a saved copy, or the beginning of its name, or latest")
    parser.add_argument("--list", action="store_true", help="show all copies: when, why, how large, what differs now")
    parser.add_argument("--diff", action="store_true", help="show what restoring would change, and change nothing")
    parser.add_argument("--file", action="append", default=[], metavar="FILE", help="only this file; repeatable")
    parser.add_argument(
        "--json",
        action="store_true",
        help='print a list of {"name", "time", "reason", "files", "bytes", "differing"}, or '
        '{"restored": name, "changed": [...], "saved": name or null}',
    )


def run(args: argparse.Namespace) -> int:
    from course.work.names import registry_name
    from course.work.restore import restore
    from course.work.saved import find
    from course.work.show import files

    if args.diff and (args.list or args.json):
        raise CourseError(f"--diff prints differences for people: leave out --{'list' if args.list else 'json'}")
    if args.list:
        return _list(args.json)
    if args.name is None:
        raise CourseError("which copy? `pdm run restore --list` shows them, `pdm run restore latest` takes the newest")
    saved = find(args.name, HERE)
    names = [registry_name(file, HERE) for file in args.file] or None
    if args.diff:
        return _diff(saved, names)
    changed = [HERE.show(name) for name in saved.differing(HERE) if names is None or name in names]
    before = restore(saved, HERE, names)
    if args.json:
        print(json.dumps({"restored": saved.name, "changed": changed, "saved": before.name if before else None}))
    elif before is None:
        print(f"your files are as in {saved.name} already: nothing was changed")
    else:
        are = "is as it was" if len(changed) == 1 else "are as they were"
        print(f"{files(len(changed))} {are} in {saved.name}")
        print(f"those of before are saved: pdm run restore {LATEST} brings them back")
    return 0


def _list(as_json: bool) -> int:
    from course.work.saved import saved_copies

    copies = saved_copies(HERE)
    if as_json:
        print(json.dumps([_told(saved) for saved in copies], indent=1))
    elif not copies:
        print("no saved copies: reset, checkout, update and starter --force make them")
    else:
        _table(copies)
    return 0


def _told(saved: Saved) -> dict[str, object]:
    return {
        "name": saved.name,
        "time": saved.manifest.time.isoformat(),
        "reason": saved.manifest.reason,
        "files": [HERE.show(name) for name in saved.manifest.files],
        "bytes": saved.size,
        "differing": [HERE.show(name) for name in saved.differing(HERE)],
    }


def _table(copies: list[Saved]) -> None:
    from rich.table import Table

    from course.console import console

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("saved", no_wrap=True)
    for title in ("files", "KiB", "differ now"):
        table.add_column(title, justify="right")
    for saved in copies:
        time = f"{saved.manifest.time.astimezone():%d %b %H:%M}"
        counts = (len(saved.manifest.files), -(-saved.size // 1024), len(saved.differing(HERE)))
        table.add_row(saved.name, time, *map(str, counts))
    output = console()
    output.print(table)
    output.print(f"bring one back: pdm run restore NAME ({HERE.saved.relative_to(HERE.root)}/NAME holds the files)")


def _diff(saved: Saved, names: list[str] | None) -> int:
    from course.work.show import show_diff

    differing = [name for name in saved.differing(HERE) if names is None or name in names]
    pairs = ((HERE.show(name), HERE.read(name), saved.read(name)) for name in differing)
    return show_diff(pairs, "now", saved.name)
