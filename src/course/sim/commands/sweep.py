"""`pdm run sim sweep`: a run for each combination of some values, on all cores or a Ray cluster."""

import argparse
from pathlib import Path

from course.options import number
from course.sim.choose import add_options

HELP = "run many deployments and compare them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    from course.sim.outputs import add_plots

    sweep = (
        "values to try: rate=4,8,12; several together: prefill-workers+decode-workers=1+3,2+2,3+1; repeat for a grid"
    )
    parser.add_argument("--sweep", action="append", required=True, metavar="OPTION=VALUES", help=sweep)
    count = number(int, "of at least 1", lambda x: x >= 1, 4)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=count, metavar="N", help="processes (default: one per core)")
    where.add_argument("--ray", metavar="ADDRESS", help='run on a Ray cluster; "local" starts one here')
    parser.add_argument("--csv", type=Path, metavar="FILE", help="all numbers, one line per run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all reports, equal for equal seeds")
    add_plots(parser)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate all points, print a table, write the files."""
    from course.sim.choose import chosen
    from course.sim.outputs import bar, check_places, show, write_json, writing
    from course.sim.places import choose
    from course.sim.sweep import points
    from course.sim.sweep_table import sweep_table, write_sweep_csv

    check_places(args.csv, args.json, plots=args.plots)
    found = points(chosen(args), args.sweep, args.solution)
    with bar(len(found), "runs") as advance:
        reports = []
        for one in choose(args.jobs, args.ray)(found):
            reports.append(one)
            advance()
    if args.csv:
        with writing(args.csv):
            write_sweep_csv(args.csv, found, reports)
    if args.json:
        pairs = zip(found, reports, strict=True)
        write_json(args.json, [{"point": dict(point.swept), "report": one} for point, one in pairs])
    if args.plots:
        from course.sim.sweep_plots import draw_sweep

        with writing(args.plots):
            draw_sweep(args.plots, found, reports)
    show(sweep_table(found, reports))
    return 0
