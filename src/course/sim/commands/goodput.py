"""`pdm run sim goodput`: the highest rate at which enough requests meet all SLOs, and per GPU (DistServe's goodput)."""

import argparse
from pathlib import Path

from course.options import number
from course.sim.choose import add_options
from course.sim.config import OPTIONS

HELP = "find the highest rate that meets the SLOs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    from course.sim.outputs import add_plots

    share = number(float, "above 0 and at most 1", lambda x: 0 < x <= 1, 0.9)
    rate = OPTIONS["rate"].kind.parse
    tolerance = number(float, "from 0.0001 to 1", lambda x: 1e-4 <= x <= 1, 0.02)
    parser.add_argument(
        "--target", type=share, default=0.9, metavar="X", help="share that must meet them (default 0.9)"
    )
    parser.add_argument("--low", type=rate, metavar="X", help="rate to search from (default: found from --rate on)")
    parser.add_argument("--high", type=rate, metavar="X", help="rate to search to")
    parser.add_argument("--tolerance", type=tolerance, default=0.02, metavar="X", help="relative (default 0.02)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the rate, and the report of each run")
    add_plots(parser)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Search, and print what was found."""
    import os

    from course.errors import CourseError
    from course.sim.choose import chosen
    from course.sim.goodput import Search, rated
    from course.sim.goodput_table import goodput_table
    from course.sim.outputs import bar, check_places, show, write_json, writing
    from course.sim.package import Package
    from course.sim.sweep import Point, measure

    check_places(args.json, plots=args.plots)
    if (args.low is None) != (args.high is None) or (args.low and args.low >= args.high):
        raise CourseError(f"--low {args.low} and --high {args.high}: give both or none, the lower one first")
    package = Package(args.solution)
    asked, start = rated(chosen(args), package)
    with bar(None, "runs") as advance:

        def one(rate: float) -> dict[str, object]:
            numbers = measure(Point({"rate": rate}, asked(rate), args.solution, os.getcwd()))
            advance()
            return numbers

        search = Search(one)
        low, high = (args.low, args.high) if args.low else search.bracket(start, args.target)
        best = package.module("goodput").highest_rate(search.attained, low, high, args.target, args.tolerance)
    if args.json:
        runs = [{"rate": rate, "report": search.reports[rate]} for rate in sorted(search.reports)]
        write_json(args.json, {"format": 1, "target": args.target, "rate": best, "runs": runs})
    if args.plots:
        from course.sim.sweep_plots import draw_goodput

        with writing(args.plots):
            draw_goodput(args.plots, search.reports, best, args.target)
    show(goodput_table(search.reports, best, args.target, high))
    return 0
