"""`pdm run class`: grades a folder of submissions, several at once, and sums up."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.manual import Example

if TYPE_CHECKING:
    from rich.console import Console

    from course.classroom.report import ClassReport

HELP = "grade a folder of submissions, and sum up"
ABOUT = """
Grades every submission in FOLDER with `grade`, each in a process of its own, and writes a table, CSV files, a summary
and plots. An entry of FOLDER is a folder or an archive (.zip, .tar.gz): an export from Gradescope, clones from GitHub
Classroom (assignment-user), uploads from Moodle or Canvas, or any names you like.

A second run grades only what changed since: the submission, this course, the seeds, the options, and of the course file
what decides the tests. Other points, titles, visibility and late days are applied to what was graded, without a test.
After Ctrl-C the same command goes on where it stopped. One submission that hangs, crashes or cannot be read gets what
it earned until then, or zero with the reason; the others are not touched.

The roster is a CSV with the columns id and name, and as you have them email, folder (an entry's name), github, group,
deadline (an extension) and free_days. Commas, semicolons or tabs will do. Entries are matched by folder, id, GitHub
name, group, e-mail and name, in this order. What fits nobody, or several, is named and still graded. Who handed nothing
in gets zero. Of two entries of one student the later counts.

Late days: with a deadline, of --deadline or of the course file, points are lost as its table [late] says. The time of
a submission comes from --times (a CSV of id and time), else the git commit, else Gradescope's export, else the files;
class.csv says which. A commit's time is what the student's machine said. Times have a zone always.

Submissions that share much code of their own, which is neither the starter's nor the reference's, are named: a hint to
look at both, not a finding.

With --json the content of class.json goes to standard output: title, graded, version, max_points, handed_in, mean,
median, students (id, name, submission, submitted, days_late, points, final, ended, problem, tasks), tasks, mistakes,
similar and notes.
"""
EXAMPLES = (
    Example(
        "pdm run class submissions --output results --roster roster.csv",
        "grades what changed since the last run, with a line for everyone in the roster",
        needs="class",
    ),
    Example(
        "pdm run class submissions --output results --week 1 --day 1 --deadline 2026-10-05T23:59+02:00",
        "grades one day only, and tells late days",
        untried="grades everything again",
    ),
    Example(
        "pdm run class submissions --output results --roster roster.csv --json",
        "the same for a program: nothing is graded again",
        needs="class",
    ),
)
FILES = (
    ("OUT/students/ID/", "what `grade` wrote for one submission, and graded.json: what it depended on"),
    ("OUT/students/ID/final.md", "for the student beside report.md: late days, and the points after them"),
    ("OUT/class.csv", "a line for each student: final and raw points, late days, points of each task"),
    ("OUT/class.json", "all of it for programs"),
    ("OUT/tasks.csv", "mean points of each task, and how many did it"),
    ("OUT/mistakes.csv", "likely mistakes that the tests named, by task, with the number of students"),
    ("OUT/summary.md", "a summary to read or to mail"),
    ("OUT/plots/", "scores, tasks, mistakes and days, as SVG and PNG"),
)
EXITS = (
    (0, "everything was graded, whatever the points"),
    (1, "the grader itself failed on some submissions; they are named, and tried again next time"),
    (2, "a mistake of yours: one line on standard error says which"),
    (130, "interrupted; all that was finished is kept"),
)
SEE_ALSO = ("grade", "release", "teaching.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="one folder or archive for each student")
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help="where results are kept")
    parser.add_argument("--roster", type=Path, metavar="CSV", help="who is in the class")
    parser.add_argument("--week", type=int, metavar="N", help="grade this week only")
    parser.add_argument("--day", type=int, metavar="D", help="grade this day of the week only")
    parser.add_argument("--course", type=Path, metavar="FILE", help="the course file (default course.toml, if there)")
    parser.add_argument("--seeds", type=Path, metavar="FILE", help="the secret of the hidden variants")
    parser.add_argument("--boundary", metavar="MODE", help="how learner code is held (see grade --help)")
    parser.add_argument("--deadline", metavar="TIME", help="when it was due: 2026-10-05T23:59+02:00")
    parser.add_argument("--zone", metavar="ZONE", help="time zone of times without one, and of output: Europe/Berlin")
    parser.add_argument("--times", type=Path, metavar="CSV", help="when each submission came: id and time")
    parser.add_argument("--jobs", type=int, metavar="N", help="submissions at a time (default: one for each core)")
    parser.add_argument("--limit", type=float, metavar="S", help="seconds for one submission (default: the course's)")
    parser.add_argument("--again", action="store_true", help="grade everything again")
    parser.add_argument("--json", action="store_true", help="write the result as JSON to standard output")


def run(args: argparse.Namespace) -> int:
    from course.boundary.kernel import set_dumpable
    from course.classroom.asked import asked as read_options
    from course.classroom.desk import grade_class, locked, plan_class
    from course.classroom.pool import Interrupted
    from course.classroom.total import report_class
    from course.console import console
    from course.curriculum import load
    from course.grading.course_file import load_course

    set_dumpable(False)  # learner code must not read the secret from this process
    course = load_course(args.course, load())
    asked = read_options(args, course)
    out = console(stderr=args.json)
    plan = plan_class(asked)
    for note in (*course.notes, *plan.notes):
        out.print(f"note: {note}", soft_wrap=True)
    try:
        with locked(asked.output):
            graded = grade_class(asked, plan, course, out)
            report = report_class(asked, plan, graded, course)
            _show(args.json, report, out)
            _draw(args.output, report, out)
    except Interrupted as interrupted:
        out.print("interrupted: finished results are kept; the same command goes on from there", soft_wrap=True)
        return 128 + interrupted.number
    except BrokenPipeError:  # whoever read the output has left
        raise
    except OSError as error:
        where = error.filename or args.output
        raise CourseError(f"{where}: {error.strerror or error}; what is graded is kept") from None
    return 1 if any(line.ended == "failed" for line in report.students) else 0


def _show(as_json: bool, report: "ClassReport", out: "Console") -> None:
    from course.classroom.table import print_table

    if as_json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(report), indent=1).decode())
        return
    out.print()
    print_table(out, report)


def _draw(output: Path, report: "ClassReport", out: "Console") -> None:
    out.print(f"\nresults: {output}", soft_wrap=True)
    try:
        from course.classroom.plots import draw
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        out.print("plots:   not drawn; install Matplotlib for them: pdm install -G class", soft_wrap=True)
        return
    out.print(f"plots:   {draw(output / 'plots', report)}", soft_wrap=True)
