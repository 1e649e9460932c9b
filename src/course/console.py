"""The one way to print to a terminal: plain where nothing else is possible, never wider than the reader's window."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_WITHOUT_TERMINAL = 100


def console(stderr: bool = False) -> "Console":
    """A console for standard output or standard error: colour on terminals only, and none with NO_COLOR set."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else _WITHOUT_TERMINAL
    colours = None if os.environ.get("NO_COLOR") else "auto"  # with None there is no bold or dim either
    return Console(stderr=stderr, highlight=False, emoji=False, markup=False, width=width, color_system=colours)
