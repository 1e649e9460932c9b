"""`pdm run compare`: your solution of one task beside the reference's."""

import argparse
import sys
from pathlib import Path

from course.manual import Example

HELP = "compare your solution of a task with the reference"
ABOUT = """
Runs the graded cases of one task with your code and with the reference, each in a process of its own, and tells how
far their values agree, how long both take, how much memory they hold, and for kernels how often they are called and
what the emulator counted: bytes, requests, barriers. It does not show the reference's code; `solution` does.

Use it after a task passes, to see what there is to gain, or while one fails, to see where the values part. A task that
is still to be written shows the reference's numbers alone.

Values are compared on all inputs of a case; what differs between two runs of the reference itself is left out. Time,
memory and kernels are measured on the largest inputs: readings are taken in turn, so that a busy machine disturbs both
alike. The ratio of times is that of the quickest readings or the median of neighbouring ones, whichever says less. The
cases are small, so much of a short time is Python's. Metal kernels run on the emulator here, where times say little and
counters say all.

--json prints one object: "task", "title", "learner", "reference", "state" (passes, fails, to do, stops), "summary"
(the sentences), "emulated", "machine", and "cases", each with "name", "property", "state", "passed" of "inputs",
"problem", "agreement" ("kind": equal, close or different; "largest", "where", "left_out"), "measured_on", "learner"
and "reference" ("seconds": median, least, most; "mlx_bytes", "python_bytes", "calls", "counters" by kernel), "ratio"
and "quickest".

Nothing is written but the file that --plot names.
"""
EXAMPLES = (
    Example("pdm run compare --week 1 --day 1 --task 1", "compare one task", needs="work"),
    Example("pdm run compare --week 1 --day 1 --task 1 --json", "the same for a program", needs="work"),
    Example(
        "pdm run compare --week 1 --day 1 --task 1 --solution tiny_llm_ref --repeat 3",
        "compare the reference with itself, to see how much two runs of the same code differ here",
    ),
    Example(
        "pdm run compare --week 2 --day 5 --task 1 --plot add.svg", "also draw the ratios", untried="builds kernels"
    ),
)
EXITS = (
    (0, "compared, whatever came out"),
    (2, "a mistake, or no reference here; one line on standard error says which"),
)
SEE_ALSO = ("test", "solution", "kernel", "bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    from course.options import number
    from course.solutions import LEARNER, add_solution

    repeat = number(int, "from 1 to 1000", lambda count: 1 <= count <= 1000, 7)
    parser.add_argument("--week", type=int, required=True, metavar="N", help="the task's week")
    parser.add_argument("--day", type=int, required=True, metavar="D", help="the task's day")
    parser.add_argument("--task", type=int, required=True, metavar="T", help="the task's number")
    parser.add_argument("--case", metavar="NAME", help="only the graded case of this name")
    parser.add_argument(
        "--repeat", type=repeat, default=7, metavar="N", help="readings of each time; slow cases get fewer (default 7)"
    )
    add_solution(parser, "whose code is compared with the reference (default tiny_llm)", LEARNER)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw the ratios, as .svg, .png or .pdf")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(args: argparse.Namespace) -> int:
    """Exit status 0 when compared, whatever came out."""
    from course.curriculum import load
    from course.errors import CourseError
    from course.paths import SRC
    from course.solutions import require_reference

    curriculum = load()
    task = curriculum.task(args.week, args.day, args.task)
    require_reference("compare")
    if not (SRC / args.solution).is_dir():
        raise CourseError(f"src/{args.solution} does not exist: make it with `pdm run starter`")
    from course.compared import plot

    if args.plot:
        plot.check(args.plot)
    import course.route  # noqa: F401 - before anything imports mlx.core
    from course.compared.compare import compare

    found = compare(curriculum, task, args.repeat, args.case, args.solution, say=_say)
    _say("")
    if args.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        from course.compared.report import show

        show(found)
    if args.plot:
        plot.draw(found, args.plot)
    return 0


def _say(line: str) -> None:
    """Progress, for who waits at a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line[:70]}", end="", file=sys.stderr, flush=True)
