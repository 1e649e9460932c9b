"""`pdm run sim gallery`: complaints of users of real systems, with the policy that fails and with one that does not."""

import argparse
from pathlib import Path

HELP = "failures of real systems, and their repairs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    from course.variant import SOLUTIONS

    parser.add_argument("name", nargs="?", metavar="NAME", help="a scenario (default: list all)")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw it as SVG into this folder")
    parser.add_argument("--solution", choices=SOLUTIONS, default="tiny_llm_ref", help="whose simulator runs")


def run(args: argparse.Namespace) -> int:
    """List the scenarios, or play one twice."""
    from rich.table import Table

    from course.sim.gallery.scenario import find, names
    from course.sim.outputs import check_places, say, show, writing
    from course.sim.package import Package

    if args.name is None:
        table = Table("name", "complaint", title="Failures of real systems")
        for name in names():
            table.add_row(name, find(name).title)
        show(table)
        return 0
    scenario = find(args.name)
    check_places(plots=args.plots)
    package = Package(args.solution)
    broken, repaired = (scenario.play(package.module, mended) for mended in (False, True))
    table = Table("", "broken", "repaired", title=scenario.title, caption=scenario.complaint)
    table.add_row("policy", scenario.broken, scenario.repaired)
    for name, value in broken.numbers.items():
        table.add_row(name, f"{value:,.2f}", f"{repaired.numbers[name]:,.2f}")
    show(table)
    if args.plots:
        from course.sim.gallery.picture import draw

        with writing(args.plots):
            draw(scenario, broken, repaired).savefig(args.plots / f"{args.name}.svg")
        say(f"wrote {args.plots / f'{args.name}.svg'}")
    return 0
