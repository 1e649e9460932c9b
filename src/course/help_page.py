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

WIDTH = 80
LONGEST_USAGE = 5
"""Lines of a usage that one still reads; a longer one only says that there are options."""
_HEADING = re.compile(r"^(usage:|\S[^\n]*:$)", re.MULTILINE)


class CommandParser(argparse.ArgumentParser):
    """Reads what a command takes; its help is a page of the manual. A wrong option is told in one line."""

    def __init__(self, manual: Manual, **options: object) -> None:
        super().__init__(formatter_class=partial(_Formatter, width=_width()), **options)
        self.manual = manual
        self.color = False  # Python 3.14 paints by itself

    def add_subparsers(self, **options: object) -> argparse.Action:
        return super().add_subparsers(parser_class=partial(type(self), self.manual), **options)

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
        first = f"{self.prog}: {self.manual.help}\n\n" if self._is_whole else ""
        return first + super(CommandParser, page).format_help()

    def print_help(self, file: TextIO | None = None) -> None:
        file = sys.stdout if file is None else file
        page = self.format_help()
        file.write(_HEADING.sub("\033[1m\\1\033[0m", page) if _paints(file) else page)

    @property
    def _is_whole(self) -> bool:
        """Whether this reads a whole command, and not one of its subcommands."""
        return self.prog == f"pdm run {self.manual.name}"

    def _sections(self) -> list[str]:
        """What follows the options. A paragraph of lines that begin with blanks is kept as it is."""
        manual = self.manual
        examples = [one for one in manual.examples if f"{one.line} ".startswith(f"{self.prog} ") or self._is_whole]
        sections = [_section("examples", [_example(one.line, one.does) for one in examples])]
        if self._is_whole:
            sections.append(_section("files", [_row(name, text) for name, text in manual.files]))
        sections.append(_section("exit status", [_row(str(status), text, 5) for status, text in manual.exits]))
        others = manual.see_also if self._is_whole else (manual.name, *manual.see_also)
        others = [name if "." in name else f"pdm run {name}" for name in others]
        others = [f"book/src/{name}" if name.endswith(".md") and "/" not in name else name for name in others]
        return [*sections, _section("see also", [_wrap(", ".join(others))] if others else [])]


def parser_of(name: str) -> CommandParser:
    """The parser of the command `name`, which must be one."""
    parser = CommandParser(Manual.of(name), prog=f"pdm run {name}")
    command_module(name).add_arguments(parser)
    return parser


def overview() -> str:
    """All commands, a line for each."""
    lines = ["usage: pdm run COMMAND [option ...]     pdm run COMMAND --help explains one"]
    for title, names in grouped().items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:10} {command_module(name).HELP}" for name in names]
    return "\n".join(lines)


class _Formatter(argparse.HelpFormatter):
    """Wraps paragraphs, but keeps those that begin with blanks as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = re.split(r"\n[ \t]*\n", text.strip("\n"))
        return "\n\n".join(p if re.search(r"^[ \t]", p, re.M) else _wrap(p, indent, indent, width) for p in paragraphs)


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", *lines]) if lines else ""


def _example(line: str, does: str) -> str:
    """The line can be copied: where it is broken, it says so to the shell."""
    command = _wrap(line, hanging="    ", width=_width() - 2).replace("\n", " \\\n")
    return f"{command}\n{_wrap(does, '      ', '      ')}"


def _row(name: str, text: str, column: int = 24) -> str:
    blank = " " * column
    if len(name) > column - 4:
        return f"  {name}\n{_wrap(text, blank, blank)}"
    return _wrap(text, f"  {name}".ljust(column), blank)


def _wrap(text: str, first: str = "  ", hanging: str = "  ", width: int | None = None) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        width or _width(),
        initial_indent=first,
        subsequent_indent=hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _width() -> int:
    return max(40, min(WIDTH, shutil.get_terminal_size().columns))


def _paints(file: TextIO) -> bool:
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
