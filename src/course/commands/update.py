"""`pdm run update`: brings a newer version of the course into a copy with own work."""

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from course.manual import Example
from course.work.place import HERE

if TYPE_CHECKING:
    from course.work.update import Update

HELP = "bring a newer version of the course into a copy with own work"
ABOUT = """
Replaces the files of the course by those of the newer version, and merges what is new in the starter into your files
in src/tiny_llm and src/extensions: a three-way merge, in which the functions that you wrote always stay yours. Files
of your own are never touched. Files of the course that you had changed are replaced too; those that can be told are
named.

Where both sides changed the same lines, your file stays as it is. The merged text, with markers around the places, is
put under .course/update: edit it there, then `pdm run update --settle` takes it over. A file of yours that you changed
in the meantime stays, and the message says so.

All files that change, and all of yours, are saved first. `pdm run restore latest` undoes an update.

Without --from, the version comes from the git repository that this copy was cloned from. Of a repository you get what
is committed, on its main branch or on --branch. An older version is refused, and one with the reference for a copy
without it.
"""
EXAMPLES = (
    Example("pdm run update --dry-run", "what an update would do", untried="needs the network"),
    Example("pdm run update --from newer", "update from a folder", needs="newer"),
    Example("pdm run update --from newer --dry-run", "say what would change, and change nothing", needs="newer"),
    Example("pdm run update --from course.zip", "update from an archive", untried="needs the archive"),
    Example("pdm run update --settle", "take over merged files once you have edited them"),
)
EXITS = (
    (0, "up to date, or updated without conflicts"),
    (1, "updated (with --dry-run: would be); files with conflicts wait in .course/update"),
    (2, "a mistake; nothing was changed"),
)
FILES = (
    (".course/saved/", "all files that changed, and yours, as they were before"),
    (".course/update/", "merged files with conflicts"),
)
SEE_ALSO = ("restore", "CHANGELOG.md")
_MOST = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", metavar="SOURCE", help="a folder, a .zip file or the URL of a git repository"
    )
    parser.add_argument("--branch", metavar="NAME", help="a branch or tag of the repository")
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    parser.add_argument("--settle", action="store_true", help="take over the edited files in .course/update")
    parser.add_argument(
        "--json",
        action="store_true",
        help='print lists "course", "edited", "dropped", "unknown", "fresh", "merged", "conflicts", "left", '
        '"reshaped", "tasks" and "news", and "saved": a name or null',
    )


def run(args: argparse.Namespace) -> int:
    from course.curriculum import load
    from course.work.lock import locked
    from course.work.newer import default_source, newer_version
    from course.work.update import carry_out, plan

    if args.settle:
        return _settle()
    source = args.source or default_source(HERE.root)
    with newer_version(source, args.branch) as new, locked(HERE):
        update = plan(load(), new, HERE)
        report = (
            _as_json(update) if args.json else _as_text(update, args.dry_run)
        )  # before this program's own files change
        saved = None if args.dry_run else carry_out(update, HERE)
    name = saved.name if saved else None
    if args.json:
        print(json.dumps(report | {"saved": name}, indent=1))
    else:
        print(report or "this copy is up to date")
        if args.dry_run:
            print("nothing was changed (--dry-run)")
        elif name:
            print(f"the files of before are saved: pdm run restore {name}")
            if "/pdm.lock" in update.course:
                print("other packages are needed: `pdm sync` installs them (./run does so by itself)")
    return 1 if update.conflicts else 0


def _settle() -> int:
    from course.work.pending import settle

    done = settle(HERE)
    for file in done.open:
        print(f".course/update/{file} still holds markers (<<<<<<<): edit these places, then run this again")
    for file in done.changed:
        print(
            f"{file} was changed after its merged text was written, so it stays: bring what you want over from "
            f".course/update/{file} by hand, then delete that file"
        )
    for file in done.taken:
        print(f"{file} is the merged one now")
    if done.saved:
        print(f"the files of before are saved: pdm run restore {done.saved.name}")
    if not (done.open or done.changed or done.taken):
        print("no merged files wait in .course/update")
    return 1 if done.open or done.changed else 0


def _as_json(update: "Update") -> dict[str, object]:
    told = {name: value for name, value in asdict(update).items() if name not in ("files", "programs")}
    files = ("course", "edited", "dropped", "unknown", "fresh", "merged", "conflicts", "left")
    return told | {name: [HERE.show(file) for file in told[name]] for name in files}


def _as_text(update: "Update", dry: bool) -> str:
    kept = "you had changed these files of the course; yours are in the saved copy"
    parts = [
        _counted("files of the course that are new or replaced", update.course),
        _listed(kept, map(HERE.show, update.edited)),
        _counted("files that are no longer part of the course and go", update.dropped),
        _listed("files here that the new version does not have; they stay", map(HERE.show, update.unknown)),
        _listed("files of the starter that you had not changed, or not had", map(HERE.show, update.fresh)),
        _listed("your files, merged with what is new", map(HERE.show, update.merged)),
        _listed("functions of yours whose signature is new: look at them", update.reshaped),
        _listed("your files stay, the course has none of that name now", map(HERE.show, update.left)),
        _listed("new tasks", update.tasks),
        _listed("new in the changelog", update.news),
    ]
    if update.conflicts:
        parts += _conflicts(map(HERE.show, update.conflicts), dry)
    return "".join(parts).rstrip("\n")


def _conflicts(files: Iterable[str], dry: bool) -> list[str]:
    if dry:
        where = (f"{file}: the merged text would be .course/update/{file}" for file in files)
        return [_listed("both sides changed the same lines, so your file would stay", where)]
    where = (f"{file}: edit .course/update/{file}" for file in files)
    title = "both sides changed the same lines, so your file stays"
    return [_listed(title, where), "  then: pdm run update --settle\n"]


def _listed(title: str, names: Iterable[str]) -> str:
    names = list(names)
    rows = "".join(f"  {name}\n" for name in names[:_MOST])
    more = f"  and {len(names) - _MOST} more (--json lists all)\n" if len(names) > _MOST else ""
    return f"{title} ({len(names)}):\n{rows}{more}" if names else ""


def _counted(title: str, names: list[str]) -> str:
    """Names by their folder, because there are many."""
    folders = Counter(HERE.show(name).rpartition("/")[0] or "the root" for name in names)
    return _listed(f"{title} ({len(names)}), by folder", (f"{folder}: {count}" for folder, count in folders.items()))
