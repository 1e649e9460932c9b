"""Shows differences of texts and source, in colours where the terminal has them."""

import difflib
from collections.abc import Iterable

from course.console import console


def files(count: int) -> str:
    """ "1 file", "2 files"."""
    return f"{count} file{'s' * (count != 1)}"


def diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """A unified diff; nothing for texts that are alike."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def show_diff(changes: Iterable[tuple[str, bytes | None, bytes | None]], old: str, new: str) -> int:
    """Print how files differ (name, old content, new content); None stands for no file. Returns the exit status 0."""
    texts = [
        diff(_text(a), _text(b), f"{name} ({old})", f"{name} ({new})") or f"{name}: only line ends or encoding differ\n"
        for name, a, b in changes
    ]
    show_source("".join(texts) or "no differences\n", "diff")
    return 0


def show_source(text: str, language: str) -> None:
    """Print source text, coloured on a terminal, plain and unchanged elsewhere."""
    output = console()
    if not output.is_terminal or output.no_color:
        print(text, end="")
        return
    from rich.syntax import Syntax

    output.print(Syntax(text.rstrip("\n"), language, theme="ansi_dark", background_color="default", word_wrap=True))


def _text(content: bytes | None) -> str:
    return "" if content is None else content.decode("utf-8", "replace")
