"""`pdm run bench NAME`: runs one of the benchmarks in `benches/`, prints its table and saves its numbers."""

import argparse
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

from course.errors import CourseError
from course.manual import Example
from course.paths import REFERENCE, ROOT
from course.solutions import has_reference

HELP = "measure speed"
ABOUT = """
Runs one of the benchmarks of benches/ and prints its table: what the machine is, what was measured, how far
readings spread. `pdm run bench NAME --help` explains one. On a busy machine trust ratios, not speeds.

--json FILE keeps the numbers (bench, machine, and the benchmark's own fields), --plot FILE draws them where
the benchmark can.
"""
EXAMPLES = (
    Example(
        "pdm run bench roofline",
        "how fast this machine reads memory, multiplies and adds",
        untried="measures for a minute",
    ),
    Example(
        "pdm run bench ladder --json ladder.json --plot ladder.svg",
        "what each step of Week 2 gains",
        untried="measures for minutes",
    ),
    Example("pdm run bench serve --url http://127.0.0.1:8000", "load on a server that runs", untried="needs a server"),
)
SEE_ALSO = ("kernel", "serve", "week2-02-roofline.md")
BENCHES = ROOT / "benches"
PLOTS = {".svg", ".png", ".pdf"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand per file in `benches/`."""
    names = parser.add_subparsers(dest="bench", required=True, metavar="NAME", help="what to measure")
    sys.path.insert(0, str(ROOT))  # so that benches.* can be imported, by each other too
    for path in sorted(BENCHES.glob("*.py")):
        bench = _bench(path.stem)
        if bench is None:
            continue
        one = names.add_parser(path.stem.replace("_", "-"), help=bench.HELP, description=bench.__doc__)
        bench.add_arguments(one)
        one.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to this file")
        if hasattr(bench, "draw"):
            one.add_argument("--plot", type=_plot_file, metavar="FILE", help="also draw them, as .svg, .png or .pdf")
        one.set_defaults(module=bench, plot=None)


def run(args: argparse.Namespace) -> int:
    """Measure, print, save. `measure(args)` of a benchmark returns its numbers and the lines to print.

    One that can plot has `draw(numbers)`, which returns a Matplotlib figure.
    """
    from course.machine import facts

    for file in filter(None, (args.json, args.plot)):
        _check_place(file)  # before the minutes of measuring
    machine = facts()
    numbers, lines = args.module.measure(args)
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    print("\n".join(lines))
    if args.json:
        report = {"bench": args.bench, "machine": machine, **numbers}
        try:
            args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise CourseError(f"cannot write {args.json}: {error.strerror}") from None
    if args.plot:
        args.module.draw(numbers).savefig(args.plot)
    return 0


def _bench(name: str) -> ModuleType | None:
    """The module of a benchmark; None for one that needs the reference, in a copy of the course without it."""
    try:
        return importlib.import_module(f"benches.{name}")
    except ModuleNotFoundError as error:
        if has_reference() or not (error.name or "").startswith(REFERENCE.name):
            raise
        return None


def _plot_file(text: str) -> Path:
    """An argparse `type`."""
    if Path(text).suffix not in PLOTS:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {', '.join(sorted(PLOTS))}: try plot.svg")
    return Path(text)


def _check_place(file: Path) -> None:
    if not file.parent.is_dir():
        raise CourseError(f"no folder {file.parent}: make it, or write to another place")
    if file.suffix in PLOTS and importlib.util.find_spec("matplotlib") is None:
        raise CourseError("matplotlib is not installed, so there is no plot: run `pdm install -G dev`")
