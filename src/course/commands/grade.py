"""`pdm run grade`: one submission, from a folder or an archive to points and result files."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.manual import Example

if TYPE_CHECKING:
    from course.curriculum import Curriculum
    from course.grading.course_file import Course
    from course.grading.desk import Desk

HELP = "grade a submission: points for each task, as files for people and programs"
ABOUT = """
A submission is a folder (a whole checkout, its src, the two folders tiny_llm and extensions, or what is in tiny_llm), a
.zip or a .tar.gz. Of it only the files in which learners write are taken; they are put over the untouched starter in a
folder of their own. All else, above all conftest.py and other settings, is left aside and named.

Learner code runs behind a process boundary: no network, nothing but its own files to read, limits on time, memory,
processes and disk. --boundary chooses how; without it the best that works here is taken, and the result says which.

A task earns its points if all of its cases pass. Points, what counts, what students see, limits and hidden variants are
set in course.toml (course.example.toml explains every key). Hidden variants are the same properties with secret seeds;
--self-check with the same --seeds shows that the reference passes them.

A result is always written, also for a submission that cannot be read, crashes or never ends, and after Ctrl-C.
"""
EXAMPLES = (
    Example("pdm run grade . --week 1 --day 1", "grade the work in this checkout", needs="work"),
    Example(
        "pdm run grade alice.zip --week 1 --day 1 --student alice --output grades/alice",
        "grade an archive",
        needs="submission",
    ),
    Example(
        "pdm run grade alice.zip --week 1 --day 1 --seeds secret/seeds --json",
        "with hidden variants, for a program",
        needs="submission",
    ),
    Example(
        "pdm run grade --self-check --week 1",
        "see that full, no and half the work get what they should",
        untried="takes minutes",
    ),
)
FILES = (
    ("result.json", "everything, as the class command reads it"),
    ("results.json", "for Gradescope"),
    ("junit.xml", "for programs that show test results"),
    ("result.csv", "for spreadsheets"),
    ("report.md", "to read"),
    ("course.toml", "what the instructor decided; course.example.toml explains it"),
)
EXITS = (
    (0, "graded, whatever the points"),
    (1, "--self-check: a difference"),
    (2, "a mistake of the instructor; one line on standard error says what to change"),
    (130, "stopped; the result says what had been graded (143 after SIGTERM)"),
)
SEE_ALSO = ("class", "release", "teaching.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("submission", nargs="?", type=Path, metavar="SUBMISSION", help="folder, .zip or .tar.gz")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where results go (default .course/grades/NAME)")
    parser.add_argument("--student", default="", metavar="ID", help="written into the results")
    parser.add_argument("--week", type=int, metavar="N", help="grade this week only")
    parser.add_argument("--day", type=int, metavar="D", help="of the week: grade this day only")
    parser.add_argument("--course", type=Path, metavar="FILE", help="course file (default: course.toml, if there)")
    parser.add_argument("--seeds", type=Path, metavar="FILE", help="file with the secret of hidden variants")
    parser.add_argument("--boundary", metavar="MODE", help="namespaces, user or limits (default: the best that works)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="days run at the same time (default 1)")
    parser.add_argument("--json", action="store_true", help="print result.json on standard output, and nothing else")
    parser.add_argument("--self-check", action="store_true", help="grade the reference, the starter and copies between")


def run(args: argparse.Namespace) -> int:
    """Exit status 0 when graded, whatever the points."""
    _check(args)
    from course.boundary.kernel import set_dumpable
    from course.curriculum import load
    from course.grading.course_file import load_course
    from course.grading.interrupt import stopping

    set_dumpable(False)  # learner code must not read the secret from this process
    curriculum = load()
    course = load_course(args.course, curriculum)
    desk = _desk(args, curriculum, course)
    for note in course.notes:
        desk.say(f"note: {note}")
    if args.self_check:
        from course.grading.self_check import self_check

        with stopping(desk.stop) as came:
            status = self_check(desk)
        return 128 + came[0] if came else status
    output = args.output or _default_output(args.submission)
    with stopping(desk.stop) as came:
        grade = desk.grade(args.submission, output, args.student)
    if args.json:
        import sys

        from course.grading.grade import encode

        sys.stdout.buffer.write(encode(grade))
    else:
        from course.grading.show import show

        show(grade, output)
    return 128 + came[0] if came else 0


def _check(args: argparse.Namespace) -> None:
    if args.self_check == bool(args.submission):
        raise CourseError("name one submission, or use --self-check" + (" without one" if args.submission else ""))
    if args.submission and not os.path.lexists(args.submission):
        raise CourseError(f"{args.submission} does not exist: name a folder, a .zip or a .tar.gz")
    if args.day is not None and args.week is None:
        raise CourseError(f"--day {args.day} needs --week: say of which week the day is")
    if args.jobs < 1:
        raise CourseError(f"--jobs {args.jobs} is less than 1: use 1, or as many as there are cores")


def _desk(args: argparse.Namespace, curriculum: "Curriculum", course: "Course") -> "Desk":
    from course.boundary import choose
    from course.console import console
    from course.grading.desk import Desk
    from course.grading.seeds import load_seeds
    from course.work.pristine import pristine

    days, seeds, errors = course.chosen(args.week, args.day), load_seeds(course, args.seeds), console(stderr=True)
    say = (lambda line: None) if args.json else lambda line: errors.print(line)
    return Desk(course, days, choose(args.boundary), pristine(curriculum), seeds, args.jobs, say=say)


def _default_output(submission: Path) -> Path:
    from course.paths import ROOT

    return ROOT / ".course" / "grades" / (submission.resolve().name or "submission")
