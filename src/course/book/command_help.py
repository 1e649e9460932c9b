"""`{{#command grade}}`: what the manual says of a command, its examples, and its whole help in a collapsed box."""

import re
from html import escape

from course.book.page import Page
from course.curriculum import Curriculum
from course.help_page import WIDTH, parser_of
from course.manual import GROUPS, Manual, command_names

_CODE = re.compile(r"`([^`]+)`|(?<![\w-])(--[a-z][a-z-]*)")
"""What stands in backticks, and options."""


def render(course: Curriculum, page: Page, line: int, argument: str) -> str:
    """One command, as HTML. A release for students lacks some commands, and says so."""
    name = argument.strip()
    if name not in command_names():
        if name in [one for group in GROUPS.values() for one in group]:
            return f"<p><code>{name}</code> is not in this copy of the course.</p>"
        raise page.error(line, f"no command {name!r}", f"use one of {', '.join(command_names())}")
    manual = Manual.of(name)
    examples = "".join(
        f"<dt><code>{escape(one.line, quote=False)}</code></dt><dd>{escape(one.does, quote=False)}</dd>\n"
        for one in manual.examples
    )
    whole = escape(parser_of(name, WIDTH).format_help().rstrip(), quote=False)
    return (
        f"<p><strong>{escape(manual.help, quote=False)}</strong></p>\n{_paragraphs(manual.about)}\n"
        f'<dl class="examples">\n{examples}</dl>\n'
        f"<details>\n<summary>All that <code>pdm run {name} --help</code> says</summary>\n"
        f"<pre>{_one_block(whole)}</pre>\n</details>"
    )


def _paragraphs(about: str) -> str:
    """Backticks and options make code; paragraphs with lines that begin with blanks stay as they are."""
    return "\n".join(map(_paragraph, about.split("\n\n")))


def _paragraph(text: str) -> str:
    html = escape(text, quote=False)
    if re.search("^ ", text, re.MULTILINE):
        return f"<pre>{html}</pre>"
    html = _CODE.sub(r"<code>\1\2</code>", html)
    return f"<p>{html}</p>"


def _one_block(text: str) -> str:
    """Markdown ends a block of HTML at a blank line, so there must be none."""
    return text.replace("\n\n", "\n&#10;")
