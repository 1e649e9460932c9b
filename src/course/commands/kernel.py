"""`pdm run kernel NAME`: runs one Metal kernel on its example and tells what it computed and how it used memory."""

import argparse
from pathlib import Path

from course.errors import CourseError
from course.manual import Example
from course.solutions import LEARNER, add_solution

HELP = "run a Metal kernel on its example: values, findings, counters"
ABOUT = """
Runs one of your Metal kernels on the example that its wrapper states, on the kernel emulator, and tells what
it computed: the first values, what the checks found (races, accesses out of bounds, barriers that not all
threads reach), and counters of memory traffic. It needs no GPU. Without a name it lists the kernels.

--json prints one object with the same facts: kernel, shapes, values, findings, counters.
"""
EXAMPLES = (
    Example("pdm run kernel --solution tiny_llm_ref", "list the kernels"),
    Example("pdm run kernel add --solution tiny_llm_ref", "run the reference's first one, with all checks"),
    Example(
        "pdm run kernel swiglu --solution tiny_llm_ref --map accesses.svg", "draw which thread touches which element"
    ),
    Example("pdm run kernel add", "yours, once it is written", ends=2),
)
EXITS = ((0, "it ran"), (1, "the checks found something"), (2, "a mistake, or a kernel still to be written"))
FILES = (("src/extensions/metal/", "your kernels"),)
SEE_ALSO = ("build-ext", "bench", "kernel-emulator.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("name", nargs="?", help="the kernel to run (default: list the kernels)")
    add_solution(parser, "whose kernel", LEARNER)
    build = parser.add_mutually_exclusive_group()
    build.add_argument("--checked", action="store_true", help="look for races, bounds and barriers (the default)")
    build.add_argument("--fast", action="store_true", help="no checks: the GPU on a Mac, the fast build elsewhere")
    parser.add_argument("--map", type=Path, metavar="FILE.svg", help="draw which thread touches which element")
    parser.add_argument(
        "--threadgroup", type=int, default=0, metavar="N", help="whose accesses --map draws (default 0)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(args: argparse.Namespace) -> int:
    """Exit status 0; 1 where the checked build found something."""
    from course.kernels.examples import examples, summary
    from course.kernels.report import Report, as_json, as_text
    from course.learner import explained

    if args.fast and args.map:
        raise CourseError("--fast records no accesses: leave out --fast, or --map")
    if args.threadgroup < 0:
        raise CourseError(f"--threadgroup {args.threadgroup} is no threadgroup: count from 0")
    with explained(args.solution):
        known = examples(args.solution)
        if args.name is None:
            width = max(map(len, known))
            print("\n".join(f"{name:{width}}  {summary(args.solution, name)}".rstrip() for name in sorted(known)))
            return 0
        if args.name not in known:
            raise CourseError(f"no kernel {args.name!r} in {args.solution}: choose from {', '.join(sorted(known))}")
        report = Report.of(args.name, known[args.name], not args.fast, args.threadgroup if args.map else None)
    if args.map:
        _write(args.map, report.access_map(args.threadgroup))
    print(as_json(report) if args.json else as_text(report))
    return 1 if report.findings else 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CourseError(f"cannot write {path}: {error.strerror}: name a file in an existing folder") from None
