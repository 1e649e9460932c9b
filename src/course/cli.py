"""The command line: every module in `course.commands` is one command, imported only when it is asked for."""

import argparse
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from course.errors import CourseError


def command_names() -> list[str]:
    """Names of all commands, from the files in `course/commands`: `build_ext.py` is the command `build-ext`."""
    folder = Path(__file__).with_name("commands")
    return sorted(p.stem.replace("_", "-") for p in folder.glob("*.py") if p.stem != "__init__")


def command_module(name: str) -> ModuleType:
    """The module of the command `name`, which must be one."""
    return importlib.import_module(f"course.commands.{name.replace('-', '_')}")


class _Parser(argparse.ArgumentParser):
    """Tells a wrong option in one line, like every other mistake."""

    def error(self, message: str) -> NoReturn:
        raise CourseError(f"{message} (see {self.prog} --help)")


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status. A `CourseError` is a user's mistake: one line, exit status 2."""
    argv = sys.argv[1:] if argv is None else argv
    names = command_names()
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: pdm run COMMAND [options]    (pdm run COMMAND --help explains one)\n")
        for name in names:
            print(f"  {name:12} {command_module(name).HELP}")
        return 0 if argv else 2
    if argv[0] not in names:
        print(f"error: no command {argv[0]!r}: choose from {', '.join(names)}", file=sys.stderr)
        return 2
    command = command_module(argv[0])
    parser = _Parser(prog=f"pdm run {argv[0]}", description=command.HELP)
    command.add_arguments(parser)
    try:
        return command.run(parser.parse_args(argv[1:]))
    except CourseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
