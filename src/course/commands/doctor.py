"""`pdm run doctor`: what this machine can do of the course, and how to mend what it cannot."""

import argparse
import os

from course.manual import Example

HELP = "check this machine, and say which weeks can be done on it"
ABOUT = """
Looks at Python and the course's packages, the C++ compiler, Metal or its emulator, memory, disk, limits, models, your
files and the folders that the course writes. Run it first, and whenever something fails that your code cannot explain.

Each check runs by itself with a time limit, so a broken package or a missing compiler is one line and not the end. A
line "warn" tells what works but could be better; "fail" tells what some days need, with one command that mends it. The
last lines say for each week whether it can be done.

It changes nothing but two folders, `.course` and the cache, which it makes if they are missing. With --full it also
builds a small C++ extension and the kernel emulator, which can take a minute or more.

--json prints one object: "possible"; "problem"; "checks", each with "name", "title", "state" (ok, warn, fail), "found",
"fix", "fixes" (by platform: any, debian, macos), "stops" and "days" (such as "2.4"); and "weeks", each with "week",
"title", "days", "possible", "stopped" and "by".
"""
EXAMPLES = (
    Example("pdm run doctor", "look at everything"),
    Example("pdm run doctor --week 1", "judge one week only"),
    Example("pdm run doctor --json", "the same for a program", untried="looks at everything again"),
    Example("pdm run doctor --full", "also build and load a small C++ extension", untried="takes a minute"),
)
EXITS = (
    (0, "all weeks (or the one asked for) can be done"),
    (1, "some day cannot be done"),
    (2, "a mistake; one line on standard error says what to change"),
)
SEE_ALSO = ("test", "build-ext", "setup.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--week", type=int, metavar="N", help="judge this week only (default: all)")
    parser.add_argument("--full", action="store_true", help="also build a small C++ extension and the emulator")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(args: argparse.Namespace) -> int:
    """Exit status 0 if what was asked for can be done here, 1 if not."""
    import json

    from course.doctor.diagnosis import describe_terminal, examine
    from course.doctor.probes.terminal import SEEN
    from course.doctor.report import show

    os.environ[SEEN] = describe_terminal()
    diagnosis = examine(args.week, args.full)
    if args.json:
        print(json.dumps(diagnosis.plain(), indent=2))
    else:
        show(diagnosis)
    return 0 if diagnosis.possible else 1
