"""`{{#protections}}`: what each mode of the process boundary keeps off, from the list that the grader itself uses."""

from html import escape

from course.book.page import Page
from course.boundary import MODES, protections
from course.curriculum import Curriculum


def render(course: Curriculum, page: Page, line: int, argument: str) -> str:
    """A table with a column for each mode."""
    promises = zip(*map(protections, MODES), strict=True)
    heads = "".join(f"<th><code>{mode}</code></th>" for mode in MODES)
    rows = "".join(
        f"<tr><td><strong>{escape(each[0].name)}</strong>: {escape(each[0].detail, quote=False)}</td>"
        + "".join(f"<td>{'yes' if one.on else 'no'}</td>" for one in each)
        + "</tr>\n"
        for each in promises
    )
    return (
        f'<div class="table-wrapper">\n<table>\n<thead><tr><th>what is promised</th>{heads}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table>\n</div>"
    )
