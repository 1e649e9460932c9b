"""`pdm run sim gallery`: complaints of users of real systems, with the policy that fails and with one that does not."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course.sim.gallery_table import Played

HELP = "failures of real systems, and their repairs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    from course.sim.outputs import add_plots
    from course.solutions import add_solution

    which = parser.add_mutually_exclusive_group()
    which.add_argument("name", nargs="?", metavar="NAME", help="a scenario (default: list all)")
    which.add_argument("--all", action="store_true", help="play all, and show the number of each that falls most")
    add_plots(parser)
    add_solution(parser, "whose simulator runs")


def run(args: argparse.Namespace) -> int:
    """List the scenarios, or play one or all of them, each twice."""
    from course.errors import CourseError
    from course.sim.gallery.scenario import find, names
    from course.sim.gallery_table import listing, one, overview
    from course.sim.outputs import bar, check_places, show

    chosen = names() if args.all else [args.name] if args.name else []
    scenarios = {name: find(name) for name in chosen or names()}
    check_places(plots=args.plots)
    if not chosen:
        if args.plots:
            raise CourseError("--plots needs a scenario to play: add its name, or --all")
        show(listing(scenarios.items()))
        return 0
    played = {}
    with bar(len(chosen), "scenarios") as advance:
        for name in chosen:
            played[name] = play(name, args.solution, args.plots)
            advance()
    show(overview(played) if args.all else one(*played[args.name]))
    return 0


def play(name: str, solution: str, plots: Path | None) -> "Played":
    """Play a scenario with both policies, and draw it. Raises CourseError where the repair does not help."""
    from course.errors import CourseError
    from course.sim.gallery.scenario import find
    from course.sim.outputs import say, writing
    from course.sim.package import Package

    scenario, package = find(name), Package(solution)
    broken, repaired = (scenario.play(package.module, mended) for mended in (False, True))
    try:
        scenario.check(broken.numbers, repaired.numbers)
    except AssertionError:
        pairs = (f"{key} {value:g} and {repaired.numbers[key]:g}" for key, value in broken.numbers.items())
        raise CourseError(f"{name}: the repair does not help in {solution}: {', '.join(pairs)}") from None
    if plots:
        from course.sim.gallery.picture import save

        path = plots / f"{name}.svg"
        with writing(path):
            save(path, scenario, broken, repaired)
        say(f"wrote {path}")
    return scenario, broken, repaired
