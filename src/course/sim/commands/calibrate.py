"""`pdm run sim calibrate`: measure the course's engine on this machine, and fit a step-time model."""

import argparse
from pathlib import Path

HELP = "measure the course's engine here, and fit a step-time model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    from course.options import number
    from course.solutions import add_solution
    from course.variant import OPS

    count = number(int, "of at least 1", lambda x: x >= 1, 16)
    parser.add_argument("--out", type=Path, default=Path("calibration.json"), metavar="FILE", help="where to write it")
    parser.add_argument("--model", default="tiny", help="tiny, tiny-4bit, 0.6b, a folder, or a hub id (default tiny)")
    parser.add_argument(
        "--ops",
        choices=list(OPS),
        default="dense",
        metavar="OPS",
        help=f"who computes steps: {', '.join(OPS)} (default dense)",
    )
    add_solution(parser, "whose engine and simulator run")
    parser.add_argument("--requests", type=count, default=60, metavar="N", help="of each load (default 60)")
    parser.add_argument("--rows", type=count, default=16, metavar="N", help="requests that run at once (default 16)")
    parser.add_argument("--token-budget", type=count, default=256, metavar="N", help="tokens of a batch (default 256)")


def run(args: argparse.Namespace) -> int:
    """Measure, fit, print, write."""
    from course.sim.calibrate import calibrate
    from course.sim.outputs import check_places, say, show, write_json

    check_places(args.out)
    table, written = calibrate(args)
    show(table)
    write_json(args.out, written)
    say(f"wrote {args.out}: use it with `sim run --step-time {args.out}` and `sim validate --fit {args.out}`")
    return 0
