"""The first lines of a task file: whose it is, and which chapters to read."""

import textwrap

from course.curriculum import FileSymbols
from course.starter.source import LINE_LENGTH


def header(listed: FileSymbols, comment: str = "#") -> str:
    """Comment lines, in a language whose comments start with `comment`."""
    chapters = dict.fromkeys(f"book/src/{task.chapter}" for task in listed.tasks.values())
    text = f"This file is yours to edit. Read {', '.join(sorted(chapters))}."
    width = LINE_LENGTH - len(comment) - 1
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{comment} {line}\n" for line in lines)
