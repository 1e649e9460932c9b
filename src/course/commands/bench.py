"""`pdm run bench NAME`: runs one of the benchmarks in `benches/`, prints its table and saves its numbers."""

import argparse
import importlib
import json
import sys
from pathlib import Path

from course.paths import ROOT

HELP = "measure speed"
BENCHES = ROOT / "benches"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand per file in `benches/`."""
    names = parser.add_subparsers(dest="bench", required=True, metavar="NAME")
    sys.path.insert(0, str(ROOT))  # so that benches.* can be imported, by each other too
    for path in sorted(BENCHES.glob("*.py")):
        bench = importlib.import_module(f"benches.{path.stem}")
        one = names.add_parser(path.stem.replace("_", "-"), help=bench.HELP, description=bench.__doc__)
        bench.add_arguments(one)
        one.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to this file")
        one.set_defaults(measure=bench.measure)


def run(args: argparse.Namespace) -> int:
    """Measure, print, save. A benchmark's `measure(args)` returns its numbers and the lines to print."""
    from course.machine import facts

    machine = facts()
    numbers, lines = args.measure(args)
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print("\n".join(lines))
    if args.json:
        report = {"bench": args.bench, "machine": machine, **numbers}
        args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0
