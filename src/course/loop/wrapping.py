"""Long lines made to fit a terminal: broken between words, and what goes on is set in, so that it shows."""

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_SET_IN = "    "


def fitted(text: str, width: int) -> str:
    """Text whose lines are at most `width` wide; those that fit stay as they are."""
    return "\n".join(line if len(line) <= width else _wrapped(line, width) for line in text.split("\n"))


def say(console: "Console", text: str, style: str = "") -> None:
    """Print a text; on a terminal it is broken between words, and in a file no line is broken."""
    console.print(fitted(text, console.width) if console.is_terminal else text, style=style, soft_wrap=True)


def cut(text: str, width: int) -> str:
    """The first line of a text, with dots where something is left out."""
    first, _, rest = text.strip().partition("\n")
    return textwrap.shorten(f"{first} {'.' * width if rest else ''}".rstrip(), width, placeholder=" ...")


def _wrapped(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip())][: width // 2]
    return textwrap.fill(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent + _SET_IN,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
