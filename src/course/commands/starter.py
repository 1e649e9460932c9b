"""`pdm run starter`: writes the learner's package, and never over a learner's work unless told to.

The package's C++ and Metal sources are part of it, in the extension folder beside it."""

import argparse
import shutil
from datetime import datetime
from pathlib import Path

from course.errors import CourseError
from course.manual import Example
from course.paths import REFERENCE, ROOT, SRC, extension_folder, source_file

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
FILES = (("src/tiny_llm/", "your package"), ("src/extensions/", "your C++ and Metal sources"))
SEE_ALSO = ("reset", "checkout", "restore", "update")
TARGET = SRC / "tiny_llm"
BACKUP = ROOT / ".course" / "backup"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="replace a package that holds work, after a backup")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the package is not fresh")
    parser.add_argument(
        "--target",
        type=Path,
        default=TARGET,
        metavar="DIR",
        help="write to DIR, and the C++ and Metal files beside it (default src/tiny_llm)",
    )


def run(args: argparse.Namespace) -> int:
    from course.curriculum import load
    from course.starter import generate, read_package, render

    if not REFERENCE.is_dir():
        raise CourseError(f"{_show(REFERENCE)} is missing: the starter is made from it, so use a complete checkout")
    target = _checked_target(args.target)
    curriculum = load()
    fresh = render(curriculum, REFERENCE)
    found = read_package(target)
    if args.check:
        return _check(target, fresh, found)
    if fresh == found:
        print(f"{_show(target)} is up to date")
        return 0
    if work := sorted(name for name, content in found.items() if fresh.get(name) != content):
        if not args.force:
            raise CourseError(f"{_show(target)} holds work that would be lost ({_list(work)}): --force keeps a copy")
        print(f"the earlier {_show(target)} is kept in {_show(back_up(target))}")
    generate(curriculum, REFERENCE, target)
    print(f"{_show(target)}: {len(fresh)} files written")
    return 0


def back_up(target: Path) -> Path:
    """Move a package and its extension folder to `.course/backup/TIME/`; returns that folder."""
    parent = BACKUP / datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    parent.mkdir(parents=True)
    for folder in (target, extension_folder(target)):
        if folder.exists():
            shutil.move(folder, parent / folder.name)
    return parent


def _check(target: Path, fresh: dict[str, bytes], found: dict[str, bytes]) -> int:
    for name in sorted(fresh.keys() | found.keys()):
        if name not in found:
            print(f"{_show(source_file(target, name))} is missing")
        elif name not in fresh:
            print(f"{_show(source_file(target, name))} is not in the reference")
        elif fresh[name] != found[name]:
            print(f"{_show(source_file(target, name))} differs from the reference's starter")
    if fresh == found:
        return 0
    print("write it anew: pdm run starter --force")
    return 1


def _checked_target(target: Path) -> Path:
    """A folder that may be replaced: none that holds this repository, and not the reference."""
    target = target.resolve()
    if target.exists() and not target.is_dir():
        raise CourseError(f"--target {target} is a file: name a folder")
    if SRC.is_relative_to(target) or target.is_relative_to(REFERENCE):
        raise CourseError(f"--target {target} holds the course itself: name a folder for the learner's package")
    return target


def _list(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _show(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
