"""`{{#badge 1.1.2}}` and `{{#day 1.1}}`: what a task or day is worth and needs; and the `#task-N` anchors."""

import re
from html import escape

from course.book import registry
from course.book.page import Page
from course.curriculum import Curriculum

TASK_HEADING = re.compile(r"^## Task (\d+): (.+?)[ \t]*$", re.MULTILINE)


def badge(course: Curriculum, page: Page, line: int, argument: str) -> str:
    """The line under a task's heading."""
    task = registry.task_at(course, page, line, argument)
    command = f"pdm run test --week {task.week} --day {task.day} --task {task.number}"
    return f'<p class="badge"><strong>{task.label}</strong> · {_points(task.points)} · <code>{command}</code></p>'


def day(course: Curriculum, page: Page, line: int, argument: str) -> str:
    """The box at the head of a chapter."""
    found = registry.day_at(course, page, line, argument)
    week, _, number = argument.strip().partition(".")
    needs = [registry.day_at(course, page, line, need) for need in found.needs]
    links = [f'<a href="{_html(d.chapter)}">Day {d.day}: {escape(d.title)}</a>' for d in needs]
    tasks = [
        f'<li><a href="#task-{t.number}">Task {t.number}: {escape(t.title)}</a> ({_points(t.points)})</li>'
        for t in found.tasks
    ]
    total = _points(sum(t.points for t in found.tasks))
    return (
        f'<div class="day-card">\n<p><strong>{found.hours:g} hours · {total}</strong> · '
        f"<code>pdm run test --week {week} --day {number}</code></p>\n"
        f"<p>Builds on: {', '.join(links) or 'nothing, you can start here'}</p>\n"
        f"<ol>{''.join(tasks)}</ol>\n</div>"
    )


def anchors(prose: str) -> str:
    """Give `## Task 2: ...` headings the id that stubs, tests and links name: `#task-2`."""
    return TASK_HEADING.sub(r"## Task \1: \2 {#task-\1}", prose)


def _points(points: int) -> str:
    return f"{points} points" if points != 1 else "1 point"


def _html(chapter: str) -> str:
    return chapter.removesuffix(".md") + ".html"
