"""`pdm run starter`: writes the learner's package, and never over a learner's work unless told to.

The package's C++ and Metal sources are part of it, in the extension folder beside it."""

import argparse
from pathlib import Path

from course.errors import CourseError
from course.manual import Example
from course.paths import SRC
from course.work.place import HERE, Place
from course.work.saved import Saved

HELP = "write the untouched starter, after a backup of your work"
ABOUT = """
Writes the learner's package, src/tiny_llm, and the C++ and Metal sources in src/extensions, as they are
before anybody has worked on them. Every task is a stub that names itself and its chapter.

A package that holds work is never replaced unless you say --force, and then a copy of it is kept. To start
one task or one day again, use `reset`; to start in the middle of the course, use `checkout`.
"""
EXAMPLES = (
    Example("pdm run starter", "write the starter where there is none yet"),
    Example(
        "pdm run starter --check",
        "write nothing; tell which files are not as a fresh starter has them",
        needs="work",
        ends=1,
    ),
    Example("pdm run starter --force", "start the whole course again; a copy of your work is kept", needs="work"),
    Example("pdm run starter --target fresh/tiny_llm", "a second starter, to look at"),
)
EXITS = (
    (0, "written, or up to date"),
    (1, "with --check: some file is not as in a fresh starter"),
    (2, "a mistake, or work that would be lost; one line on standard error says what to do"),
)
FILES = (
    ("src/tiny_llm/", "your package"),
    ("src/extensions/", "your C++ and Metal sources"),
    (".course/saved/", "with --force: your files as they were before"),
)
SEE_ALSO = ("reset", "checkout", "restore", "update")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="replace a package that holds work, after a backup")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the package is not fresh")
    parser.add_argument(
        "--target",
        type=Path,
        default=HERE.package,
        metavar="DIR",
        help="write to DIR, and the C++ and Metal files beside it (default src/tiny_llm)",
    )


def run(args: argparse.Namespace) -> int:
    from course.curriculum import load
    from course.starter import read_package, write
    from course.work.change import change
    from course.work.lock import locked
    from course.work.pristine import pristine

    place = _place(args.target)
    fresh = pristine(load(), place)
    if args.check:
        return _check(place, fresh, read_package(place.package))
    with locked(place):
        found = read_package(place.package)
        if fresh == found:
            print(f"{_show(place.package)} is up to date")
            return 0
        work = sorted(name for name, content in found.items() if fresh.get(name) != content)
        if work and not args.force:
            raise CourseError(
                f"{_show(place.package)} holds work that would be lost ({_list(work)}): --force keeps a copy"
            )
        if not work:
            write(fresh, place.package)
        elif saved := change({**dict.fromkeys(found), **fresh}, "starter", place, keep=found):
            print(f"the earlier {_show(place.package)} is kept in {saved.folder}: {_way_back(place, saved)}")
    print(f"{_show(place.package)}: {len(fresh)} files written")
    return 0


def _place(target: Path) -> Place:
    """The learner's package, or another one with saved copies of its own."""
    target = _checked_target(target)
    return HERE if target == HERE.package.resolve() else Place(target.parent, target, HERE.reference)


def _way_back(place: Place, saved: Saved) -> str:
    return f"pdm run restore {saved.name}" if place == HERE else "copy from there what you need"


def _check(place: Place, fresh: dict[str, bytes], found: dict[str, bytes]) -> int:
    for name in sorted(fresh.keys() | found.keys()):
        if name not in found:
            print(f"{_show(place.file(name))} is missing")
        elif name not in fresh:
            print(f"{_show(place.file(name))} is not in the reference")
        elif fresh[name] != found[name]:
            print(f"{_show(place.file(name))} differs from the reference's starter")
    if fresh == found:
        return 0
    print("write it anew: pdm run starter --force")
    return 1


def _checked_target(target: Path) -> Path:
    """A folder that may be replaced: none that holds this repository, and not the reference."""
    target = target.resolve()
    if target.exists() and not target.is_dir():
        raise CourseError(f"--target {target} is a file: name a folder")
    if SRC.is_relative_to(target) or target.is_relative_to(HERE.reference):
        raise CourseError(f"--target {target} holds the course itself: name a folder for the learner's package")
    return target


def _list(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _show(path: Path) -> str:
    return str(path.relative_to(HERE.root) if path.is_relative_to(HERE.root) else path)
