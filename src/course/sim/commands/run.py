"""`pdm run sim run`: one run, and what one wants to see of it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from course.sim.choose import add_options

if TYPE_CHECKING:
    from course.sim.config import Config
    from course.sim.package import Package
    from course.sim.report import Json
    from tiny_llm_ref.cluster.run import Run

HELP = "run a workload on a deployment"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    from course.sim.outputs import add_plots

    parser.add_argument("--print-config", action="store_true", help="print the configuration as TOML, and do nothing")
    out = parser.add_argument_group("outputs")
    out.add_argument("--csv", type=Path, metavar="FILE", help="one line per request")
    out.add_argument("--json", type=Path, metavar="FILE", help="the summary, equal for equal seeds")
    out.add_argument("--perfetto", type=Path, metavar="FILE", help="the run for ui.perfetto.dev")
    out.add_argument("--html", type=Path, metavar="FILE", help="the run as one page that needs no network")
    add_plots(out)
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate, print the summary, write the files."""
    import sys
    import time

    from course.sim.choose import chosen, write_config
    from course.sim.config import Config
    from course.sim.outputs import check_places, say, show
    from course.sim.package import Package

    values = chosen(args)
    if args.print_config:
        sys.stdout.write(write_config(values))
        return 0
    check_places(args.csv, args.json, args.perfetto, args.html, plots=args.plots)
    from course.sim.execute import execute, progress_bar
    from course.sim.report import last_moment, report
    from course.sim.table import summary_table

    config, package = Config.of(values), Package(args.solution)
    begin = time.perf_counter()
    with progress_bar() as seen:
        ran = execute(config, package, seen)
    seconds = time.perf_counter() - begin
    numbers = report(config, package, ran)
    _write(args, config, package, ran, numbers, write_config(values))
    show(summary_table(numbers))
    say(
        f"{last_moment(ran) / 1e9:,.1f} simulated seconds in {seconds:.1f} s: {ran.engine_steps:,} engine steps, "
        f"{ran.events:,} events"
    )
    return 0


def _write(
    args: argparse.Namespace, config: "Config", package: "Package", ran: "Run", numbers: "Json", toml: str
) -> None:
    from course.sim.outputs import write_json, writing
    from course.sim.report import objective_of

    if args.json:
        write_json(args.json, numbers)
    if args.csv:
        from course.sim.csv_file import write_csv

        with writing(args.csv):
            write_csv(args.csv, ran, objective_of(config, package))
    if args.perfetto:
        from course.sim.perfetto import write_perfetto

        with writing(args.perfetto):
            write_perfetto(args.perfetto, ran)
    if args.html:
        from course.sim.page import write_page

        with writing(args.html):
            write_page(args.html, ran, numbers, toml)
    if args.plots:
        from course.sim.plots import draw_run

        with writing(args.plots):
            draw_run(args.plots, ran, objective_of(config, package))
