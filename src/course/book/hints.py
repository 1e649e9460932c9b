"""`{{#hints 1.1.2}}`: the registry's three hints of a task in nested collapsed boxes, so that the next costs a decision."""

from course.book import math, registry
from course.book.page import Page
from course.curriculum import Curriculum

LEVELS = ("Hint 1: a nudge", "Hint 2: the invariant", "Hint 3: nearly code")


def render(course: Curriculum, page: Page, line: int, argument: str) -> str:
    """The boxes of one task."""
    task = registry.task_at(course, page, line, argument)
    html = ""
    for label, hint in reversed(list(zip(LEVELS, task.hints, strict=True))):
        text = math.apply(page, hint.strip(), line)
        html = f'<details class="hint">\n<summary>{label}</summary>\n\n{text}\n\n{html}</details>\n\n'
    return html
