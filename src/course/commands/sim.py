"""`pdm run sim`: simulate a deployment of LLM engines under virtual time."""

import argparse
import importlib
from pathlib import Path

HELP = "simulate a deployment of engines, routers and links"
COMMANDS = Path(__file__).parents[1] / "sim" / "commands"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand per file of `course/sim/commands`."""
    names = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
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
