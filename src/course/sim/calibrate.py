"""Measures the course's engine under a few loads, fits a step-time model to some, and tests it on the last."""

import argparse
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from course.sim.calibration import calibration_of
from course.sim.fit import Fit, Steps, fit_steps, measured, predicted
from course.sim.loads import load
from course.sim.package import Package
from course.sim.real_engine import RealEngine, Settings

if TYPE_CHECKING:
    from rich.table import Table

BURST = 1e6
"""Requests per second: all at once."""
SPREAD = (0.25, 0.5, 0.75)
"""Other loads, as parts of what the burst has shown to be possible."""


def measure(args: argparse.Namespace, engine: RealEngine, package: Package) -> list[tuple[str, Steps]]:
    """The steps of each load, by its name. The first run is not counted: it warms up."""
    from course.sim.outputs import bar

    with bar(2 + len(SPREAD), "loads measured") as one_more:
        engine.run(load(package, BURST, engine.settings.rows, seed=1), seed=1)
        one_more()
        burst = engine.run(load(package, BURST, args.requests, seed=2), seed=2)
        one_more()
        rate = args.requests / (burst.times[:, 2].max() / 1e3)
        found = [("all at once", burst.steps)]
        for number, part in enumerate(SPREAD, 3):
            arrivals = load(package, part * rate, args.requests, seed=number)
            found.append((f"{part * rate:.1f} requests/s", engine.run(arrivals, seed=number).steps))
            one_more()
    return found


def calibrate(args: argparse.Namespace) -> tuple["Table", dict[str, object]]:
    """A table of the fit and its errors, and what to write. The last load is predicted, not fitted."""
    from course.folder import read_config
    from course.models import locate
    from course.served_options import page_bytes

    package, folder = Package(args.solution), locate(args.model)
    settings = Settings(rows=args.rows, token_budget=args.token_budget)
    found = measure(args, RealEngine(args.solution, folder, args.ops, settings), package)
    fit = fit_steps([step for _, steps in found[:-1] for step in steps])
    about = f"{args.model}, --ops {args.ops}, fitted on {sum(len(steps) for _, steps in found[:-1])} steps"
    kv_bytes = page_bytes(read_config(folder), 1, "float32")
    return table_of(fit, found), msgspec.to_builtins(calibration_of(fit, kv_bytes, about, settings, args.ops))


def table_of(fit: Fit, found: list[tuple[str, Steps]]) -> "Table":
    """For `rich`: how far the model is from each load's steps."""
    from rich.table import Table

    pieces = ", ".join(f"{tokens}: {time / 1e3:.2f}" for tokens, time in zip(fit.tokens, fit.times, strict=True))
    formula = (
        f"ms by tokens of the batch: {pieces}\n"
        f"and {fit.sequence:.1f} us for each sequence, {fit.pair:.4f} us for each pair of query and key"
    )
    table = Table(title="Step times: predicted over measured", caption=formula)
    table.add_column("load")
    for heading in ("steps", "mean step (ms)", "total (%)", "median |error| (%)"):
        table.add_column(heading, justify="right")
    for number, (name, steps) in enumerate(found):
        taken, said = measured(steps), predicted(fit, steps)
        total = float(said.sum() / taken.sum() - 1)
        how = "predicted" if number == len(found) - 1 else "fitted"
        median = 100 * float(np.median(np.abs(said / taken - 1)))
        table.add_row(
            f"{name} ({how})", str(len(steps)), f"{taken.mean() / 1e3:.2f}", f"{100 * total:+.1f}", f"{median:.1f}"
        )
    return table
