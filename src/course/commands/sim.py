"""`pdm run sim`: simulate a deployment of LLM engines under virtual time."""

import argparse
import importlib
from pathlib import Path

from course.manual import Example

HELP = "simulate a deployment of engines, routers and links"
ABOUT = """
Simulates a deployment of LLM engines in virtual time: routers, the hand-off between prefill and decode
workers, transfers and the planner of Week 4, over the scheduler and prefix cache of Week 3. Equal seeds give
equal results. `pdm run sim COMMAND --help` explains one of the commands; the chapter explains the options.
"""
EXAMPLES = (
    Example("pdm run sim run --requests 200 --workers 4 --rate 20", "one run, and its summary"),
    Example(
        "pdm run sim run --requests 200 --prefill-workers 1 --decode-workers 2 --html report.html",
        "a disaggregated deployment, and a report as one page",
    ),
    Example("pdm run sim run --print-config", "all options with their defaults, as TOML"),
    Example(
        "pdm run sim sweep --sweep rate=4,8 --requests 100 --workers 2 --csv sweep.csv",
        "a run for each value, in one table",
    ),
    Example(
        "pdm run sim goodput --workers 2 --requests 200 --slo-ttft-ms 500 --slo-tpot-ms 30",
        "the highest rate that still meets the limits",
    ),
    Example("pdm run sim gallery", "failures of real systems that can be played"),
    Example("pdm run sim gallery flip-flop", "play one, as it fails and as it is repaired"),
    Example(
        "pdm run sim calibrate --out calibration.json",
        "measure the engine on this machine",
        untried="measures for minutes",
    ),
    Example(
        "pdm run sim validate --fit calibration.json",
        "predict runs of that engine, and measure them",
        untried="measures for minutes",
    ),
)
SEE_ALSO = ("simulator.md", "gallery.md", "week4-overview.md")
COMMANDS = Path(__file__).parents[1] / "sim" / "commands"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand per file of `course/sim/commands`."""
    names = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND", help="what to do")
    for path in sorted(COMMANDS.glob("[!_]*.py")):
        module = importlib.import_module(f"course.sim.commands.{path.stem}")
        one = names.add_parser(path.stem, help=module.HELP, description=module.__doc__.partition(": ")[2])
        module.add_arguments(one)
        one.set_defaults(module=module)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand. A reader of the output that leaves early ends it without a word."""
    from course.errors import CourseError
    from course.learner import explained
    from course.worker import leave

    try:
        with explained(args.solution):
            return args.module.run(args)
    except BrokenPipeError:
        leave(141)
    except OSError as error:  # a full disk under standard output
        raise CourseError(f"{error.strerror or error}: {error.filename or 'the output'}") from None
