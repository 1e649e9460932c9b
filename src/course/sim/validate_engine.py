"""Predicts runs of the course's engine on this machine that were not measured when its model was fitted."""

import argparse
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.sim.error_table import comparison, error_table
from course.sim.loads import capacity, load, simulated
from course.sim.package import Package

if TYPE_CHECKING:
    from rich.table import Table


def parts_of(text: str) -> list[float]:
    """Parts of the capacity."""
    try:
        parts = [float(part) for part in text.split(",")]
    except ValueError:
        parts = []
    if not parts or not all(0 < part <= 2 for part in parts):
        raise CourseError(f"--loads {text}: give numbers above 0 and at most 2 with commas, such as 0.3,0.6")
    return parts


def validate(args: argparse.Namespace) -> tuple["Table", dict[str, object]]:
    """Measure each load, predict it, and compare."""
    from course.models import locate
    from course.sim.calibration import read_calibration
    from course.sim.outputs import bar
    from course.sim.real_engine import RealEngine

    package, wanted = Package(args.solution), parts_of(args.loads)
    cost, settings, ops = read_calibration(package, args.fit)
    rate = capacity(package, cost, settings)
    engine = RealEngine(args.solution, locate(args.model), ops, settings)
    engine.run(load(package, 1e6, settings.rows, args.seed - 1), args.seed - 1)  # warm up
    compared = {}
    with bar(len(wanted), "loads measured") as one_more:
        for number, part in enumerate(wanted):
            arrivals = load(package, part * rate, args.requests, args.seed + number)
            real = engine.run(arrivals, args.seed + number).times
            compared[f"{part:g} of capacity ({part * rate:.1f}/s)"] = comparison(
                real, simulated(package, arrivals, cost, settings)
            )
            one_more()
    note = f"{args.requests} requests each; model of {args.fit}"
    return error_table("The course's engine, measured and predicted", compared, note), {"parts": compared}
