"""The help of a command, as a page for a terminal: at most 80 columns, plain text, headings bold where that works.

What it says comes from the command's parser and its manual.
"""

import argparse
import copy
import os
import re
import shutil
import sys
import textwrap
from functools import partial
from typing import NoReturn, TextIO

from course.errors import CourseError
from course.manual import Manual, command_module, grouped
from course.paths import BOOK

WIDTH = 80
LONGEST_USAGE = 5
"""Lines of a usage that one still reads; a longer one only says that there are options."""
_HEADING = re.compile(r"^(usage:|\S[^\n]*:$)", re.MULTILINE)


class CommandParser(argparse.ArgumentParser):
    """Reads what a command takes; its help is a page of the manual. A wrong option is told in one line."""

    def __init__(self, manual: Manual, width: int, **options: object) -> None:
        super().__init__(formatter_class=partial(_Formatter, width=width), **options)
        self.manual = manual
        self.width = width
        self.color = False  # Python 3.14 paints by itself

    def add_subparsers(self, **options: object) -> argparse.Action:
        return super().add_subparsers(parser_class=partial(type(self), self.manual, self.width), **options)

    def error(self, message: str) -> NoReturn:
        raise CourseError(f"{message} (see {self.prog} --help)")

    def format_usage(self) -> str:
        usage = super().format_usage()
        if usage.count("\n") <= LONGEST_USAGE:
            return usage
        formatter = self._get_formatter()
        needed = [action for action in self._actions if action.required and action.option_strings]
        formatter.add_usage(None, needed + self._get_positional_actions(), [])
        return formatter.format_help().replace(self.prog, f"{self.prog} [option ...]", 1)

    def format_help(self) -> str:
        page = copy.copy(self)
        page.usage = self.format_usage().removeprefix("usage: ").strip().replace("%", "%%")
        page.description = self.manual.about or self.description if self._is_whole else self.description
        page.epilog = "\n\n".join(filter(None, (self.epilog, *self._sections())))
        name = f"{_wrap(f'{self.prog}: {self.manual.help}', self.width, '')}\n\n" if self._is_whole else ""
        return name + super(CommandParser, page).format_help()

    def print_help(self, file: TextIO | None = None) -> None:
        file = sys.stdout if file is None else file
        page = self.format_help()
        file.write(_HEADING.sub("\033[1m\\1\033[0m", page) if _paints(file) else page)

    @property
    def _is_whole(self) -> bool:
        """Whether this reads a whole command, and not one of its subcommands."""
        return self.prog == f"pdm run {self.manual.name}"

    def _sections(self) -> list[str]:
        """What follows the options."""
        manual, width = self.manual, self.width
        examples = [one for one in manual.examples if f"{one.line} ".startswith(f"{self.prog} ") or self._is_whole]
        files = manual.files if self._is_whole else ()
        others = manual.see_also if self._is_whole else (manual.name, *manual.see_also)
        return [
            _section("examples", [_example(one.line, one.does, width) for one in examples]),
            _section("files", [_row(name, text, width, 24) for name, text in files]),
            _section("exit status", [_row(str(status), text, width, 5) for status, text in manual.exits]),
            _section("see also", [_wrap(", ".join(map(_pointer, others)), width)] if others else []),
        ]


def parser_of(name: str, width: int | None = None) -> CommandParser:
    """The parser of the command `name`, which must be one. width: of its help (default: the terminal's, up to 80)."""
    parser = CommandParser(Manual.of(name), width or terminal_width(), prog=f"pdm run {name}")
    command_module(name).add_arguments(parser)
    return parser


def terminal_width() -> int:
    """Columns of a page of help here."""
    return max(40, min(WIDTH, shutil.get_terminal_size().columns))


def overview() -> str:
    """All commands, with what they do."""
    lines = ["usage: pdm run COMMAND [option ...]     pdm run COMMAND --help explains one"]
    for title, names in grouped().items():
        lines += ["", f"{title}:"]
        lines += [_row(name, command_module(name).HELP, terminal_width(), 13) for name in names]
    return "\n".join(lines)


class _Formatter(argparse.HelpFormatter):
    """Wraps paragraphs, but keeps those that begin with blanks as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = re.split(r"\n[ \t]*\n", text.strip("\n"))
        return "\n\n".join(p if re.search(r"^[ \t]", p, re.M) else _wrap(p, width, indent, indent) for p in paragraphs)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", *lines]) if lines else ""


def _example(line: str, does: str, width: int) -> str:
    """The line can be copied: where it is broken, it says so to the shell."""
    command = _wrap(line, width - 2, hanging="    ").replace("\n", " \\\n")
    return f"{command}\n{_wrap(does, width, '      ', '      ')}"


def _row(name: str, text: str, width: int, column: int) -> str:
    blank = " " * column
    if len(name) > column - 4:
        return f"  {name}\n{_wrap(text, width, blank, blank)}"
    return _wrap(text, width, f"  {name}".ljust(column), blank)


def _pointer(name: str) -> str:
    """A command, a chapter of the book, or another file of the repository."""
    if "." not in name:
        return f"pdm run {name}"
    return f"book/src/{name}" if (BOOK / "src" / name).exists() else name


def _wrap(text: str, width: int, first: str = "  ", hanging: str = "  ") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        width,
        initial_indent=first,
        subsequent_indent=hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _paints(file: TextIO) -> bool:
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
