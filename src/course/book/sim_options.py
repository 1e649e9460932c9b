"""`{{#options load}}`: the options of one group of a simulation, with defaults, from their only definition."""

from html import escape

from course.book.page import Page
from course.curriculum import Curriculum
from course.sim.config import GROUPS, OPTIONS
from course.sim.option import FLAG, Option


def render(course: Curriculum, page: Page, line: int, argument: str) -> str:
    """The table, as HTML."""
    group = argument.strip()
    if group not in GROUPS:
        raise page.error(line, f"no group of options {group!r}", f"use one of {', '.join(GROUPS)}")
    rows = "".join(_row(one) for one in OPTIONS.values() if one.group == group)
    return f"<table>\n<tr><th>option</th><th>default</th><th>what it says</th></tr>\n{rows}</table>"


def _row(one: Option) -> str:
    flag = f"--{one.key}" if one.kind is FLAG else f"--{one.key} {one.kind.metavar}"
    unset = one.default is None or one.default == ()
    default = "" if unset else str(one.default).lower() if one.kind is FLAG else _text(one.default)
    return f"<tr><td><code>{escape(flag)}</code></td><td>{escape(default)}</td><td>{escape(one.help)}</td></tr>\n"


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
