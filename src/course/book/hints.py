"""`{{#hints 1.1.2}}`: a task's three hints in nested collapsed boxes, so that the next costs a decision.

Hints are plain text, because `pdm run hint` prints them too; only backticks have a meaning here, that of code.
"""

import re
from html import escape

from course.book import registry
from course.book.page import Page
from course.curriculum import Curriculum

LEVELS = ("Hint 1: a nudge", "Hint 2: the invariant", "Hint 3: nearly code")


def render(course: Curriculum, page: Page, line: int, argument: str) -> str:
    """The boxes of one task."""
    task = registry.task_at(course, page, line, argument)
    html = ""
    for label, hint in reversed(list(zip(LEVELS, task.hints, strict=True))):
        html = f'<details class="hint">\n<summary>{label}</summary>\n{_paragraphs(hint)}\n{html}</details>\n'
    return html


def _paragraphs(hint: str) -> str:
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(hint.strip(), quote=False))
    return "\n".join(f"<p>{paragraph}</p>" for paragraph in re.split(r"\n\s*\n", text))
