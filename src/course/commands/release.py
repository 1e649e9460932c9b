"""`pdm run release`: what an instructor hands out to a class."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.manual import Example

if TYPE_CHECKING:
    from course.grading.course_file import Course

HELP = "make the students' repository, the Gradescope autograder, the GitHub Classroom workflow"
ABOUT = """
`release student DIR` writes a repository for a class: the course with an untouched starter and the points of the course
file, without the reference solution, mutants, your own work and what only instructors need. It is made with one commit.
Run it again to update that folder: what was changed there by hand stops it, unless --force says that it may go. Weeks
after the last graded one are left out; --weeks says otherwise, and takes all weeks up to the largest, as they build on
each other.

`release gradescope FILE.zip` packs an autograder: upload it to a programming assignment. Hidden variants need their
secret, which is in the zip and readable by root alone: keep the zip as you keep the secret.

`release classroom` prints the workflow for GitHub Classroom, with a step for each graded task. A students' repository
holds it already.

The same input gives the same bytes. --dry-run writes nothing and tells what would be written and what is left out.
"""
EXAMPLES = (
    Example("pdm run release student ../class-2027 --dry-run", "see what a class would get"),
    Example(
        "pdm run release student ../class-2027 --weeks 1 2", "a repository for two weeks", untried="writes elsewhere"
    ),
    Example(
        "pdm run release gradescope autograder.zip --week 1",
        "an autograder for one week",
        untried="asks PDM, and writes here",
    ),
    Example("pdm run release classroom", "the workflow on standard output"),
)
FILES = (
    ("course.toml", "what is graded, and for how many points"),
    ("curriculum/starter.zip", "in a students' repository: the untouched starter"),
    ("curriculum/files.json", "in a students' repository: which files belong to the course"),
)
EXITS = (
    (0, "done"),
    (1, "classroom --check: the file is out of date"),
    (2, "a mistake; one line on standard error says what to change"),
)
SEE_ALSO = ("grade", "class", "teaching.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand for each thing to make."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND", help="what to make")
    about = "the repository for a class: without solutions, with the class's points"
    student = kinds.add_parser("student", help=about, description=about)
    student.add_argument("folder", type=Path, metavar="DIR", help="a new folder, or one of an earlier release")
    student.add_argument(
        "--weeks", type=int, nargs="+", metavar="N", help="weeks to hand out (default: to the last graded)"
    )
    student.add_argument("--force", action="store_true", help="overwrite what was changed by hand in DIR")
    student.add_argument("--no-git", action="store_true", help="make no commit")
    about = "the autograder for Gradescope, as a zip"
    gradescope = kinds.add_parser("gradescope", help=about, description=about)
    gradescope.add_argument("file", type=Path, metavar="FILE.zip", help="the zip to write")
    gradescope.add_argument("--week", type=int, metavar="N", help="grade this week only")
    gradescope.add_argument("--day", type=int, metavar="D", help="of the week: grade this day only")
    gradescope.add_argument("--seeds", type=Path, metavar="FILE", help="file with the secret of hidden variants")
    gradescope.add_argument(
        "--limit", type=int, default=540, metavar="SECONDS", help="for a submission, below Gradescope's (default 540)"
    )
    about = "the workflow for GitHub Classroom"
    classroom = kinds.add_parser("classroom", help=about, description=about)
    classroom.add_argument("file", type=Path, nargs="?", metavar="FILE", help="where to write it (default: print it)")
    classroom.add_argument("--check", action="store_true", help="write nothing; exit 1 where FILE is out of date")
    for kind in (student, gradescope, classroom):
        kind.add_argument("--course", type=Path, metavar="FILE", help="course file (default: course.toml, if there)")
    for kind in (student, gradescope):
        kind.add_argument("--dry-run", action="store_true", help="write nothing; tell what would be written")
        kind.add_argument("--json", action="store_true", help="print one JSON object with all names")


def run(args: argparse.Namespace) -> int:
    """Exit status 0 when made; 1 where --check finds an old file."""
    from course.curriculum import load
    from course.grading.course_file import load_course

    course = load_course(args.course, load())
    return {"student": _student, "gradescope": _gradescope, "classroom": _classroom}[args.kind](args, course)


def _student(args: argparse.Namespace, course: "Course") -> int:
    from course.release import place
    from course.release.git import commit
    from course.release.report import Report, dump, show
    from course.release.student import student

    place.check_folder(args.folder)
    made = student(course, max(args.weeks) if args.weeks else None)
    changes = place.plan(args.folder, made.files)
    if changes.lost and not args.force:
        names = ", ".join(changes.lost[:3]) + (", ..." if len(changes.lost) > 3 else "")
        raise CourseError(f"{args.folder}: {names} changed by hand since the last release: --force overwrites them")
    committed = False
    if not args.dry_run:
        place.write(args.folder, made.files, made.executable, changes)
        if not args.no_git:
            title = f"{'Update' if changes.changed or changes.removed else 'Begin with'} the course"
            committed = commit(args.folder, made.files, changes.removed, title)
    report = Report(
        target=str(args.folder),
        dry_run=args.dry_run,
        weeks=made.weeks,
        added=changes.added,
        changed=changes.changed,
        removed=changes.removed,
        committed=committed,
        left_out=made.left_out,
    )
    dump(report) if args.json else show(report, made.later)
    return 0


def _gradescope(args: argparse.Namespace, course: "Course") -> int:
    from course.release.autograder import autograder
    from course.release.place import write_file
    from course.release.report import Report, dump, show

    _check_gradescope(args, course)
    selected = [word for name in ("week", "day") if (n := getattr(args, name)) for word in (f"--{name}", str(n))]
    made = autograder(course, selected, args.limit, args.seeds)
    content = made.zipped()
    if not args.dry_run:
        write_file(args.file, content, 0o600 if made.private else 0o644)
    report = Report(
        target=str(args.file),
        dry_run=args.dry_run,
        weeks=tuple(sorted({day.week for day in course.days if args.week in (None, day.week)})),
        added=sorted(made.files),
        bytes=len(content),
        private=sorted(made.private),
        left_out=made.left_out,
    )
    dump(report) if args.json else show(report)
    return 0


def _check_gradescope(args: argparse.Namespace, course: "Course") -> None:
    if args.day is not None and args.week is None:
        raise CourseError(f"--day {args.day} needs --week: say of which week the day is")
    if not 60 <= args.limit <= 86_400:
        raise CourseError(f"--limit {args.limit} is not between 60 and 86400 seconds: try --limit 540")
    if args.file.suffix != ".zip":
        raise CourseError(f"{args.file} does not end in .zip, which Gradescope asks for: try autograder.zip")
    if args.file.is_dir() or not args.file.resolve().parent.is_dir():
        raise CourseError(f"{args.file} is no place for a file: name one in a folder that exists")
    if args.week is not None:
        week = course.curriculum.week(args.week)
        asked = [course.curriculum.day(args.week, args.day)] if args.day is not None else week.days
        if not any(day in course.days for day in asked):
            raise CourseError(f"{course.path} grades nothing of these days: change [graded], or ask for another week")


def _classroom(args: argparse.Namespace, course: "Course") -> int:
    from course.release.place import write_file
    from course.release.workflow import workflow

    text = workflow(course.days, course.points_of)
    if args.check:
        if args.file is None:
            raise CourseError("--check needs the file to look at: name it, such as .github/workflows/classroom.yml")
        if args.file.is_file() and args.file.read_bytes() == text.encode():
            return 0
        print(f"{args.file} is out of date: write it anew with `pdm run release classroom {args.file}`")
        return 1
    if args.file is None:
        print(text, end="")
        return 0
    write_file(args.file, text.encode())
    print(f"wrote {args.file}: {sum(len(day.tasks) for day in course.days)} graded steps")
    return 0
