"""The command line: every module in `course.commands` is one command, imported only when it is asked for."""

import os
import sys

from course.errors import CourseError
from course.help_page import overview, parser_of
from course.manual import command_module, command_names


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit status. A `CourseError` is a user's mistake: one line, exit status 2."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["help"]:  # `help test` is `test --help`
        argv = [*argv[1:], "--help"]
    if not argv or argv[0] in ("-h", "--help"):
        print(overview())
        return 0 if argv else 2
    try:
        parser = parser_of(_known(argv[0]))
        return command_module(argv[0]).run(parser.parse_args(argv[1:]))
    except CourseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has had enough: say no more, also not at the end of the program
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _known(name: str) -> str:
    """The name, if there is such a command. Raises CourseError."""
    names = command_names()
    if name in names:
        return name
    from difflib import get_close_matches

    near = get_close_matches(name, names, 3)
    advice = f"did you mean {' or '.join(near)}?" if near else "see `python -m course` for all"
    raise CourseError(f"no command {name!r}: {advice}")
