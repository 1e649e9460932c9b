"""`{{#badge 1.1.2}}`, `{{#day 1.1}}`, `{{#week 1}}`: what each is worth and needs; and the `#task-N` anchors."""

import re
from html import escape

from course.book import registry
from course.book.page import Page
from course.curriculum import Curriculum, points_text

TASK_HEADING = re.compile(r"^## Task (\d+): (.+?)[ \t]*$", re.MULTILINE)


def badge(course: Curriculum, page: Page, line: int, argument: str) -> str:
    """The line under a task's heading."""
    task = registry.task_at(course, page, line, argument)
    command = f"<code>pdm run test {task.options}</code>"
    return f'<p class="badge"><strong>{task.label}</strong> · {_points(task.points)} · {command}</p>'


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


def week(course: Curriculum, page: Page, line: int, argument: str) -> str:
    """The table of a week's days."""
    found = registry.week_at(course, page, line, argument)
    needs = {d.day: ", ".join(_short(need, found.week) for need in d.needs) for d in found.days}
    rows = "".join(
        f'<tr><td><a href="{_html(d.chapter)}">Day {d.day}: {escape(d.title)}</a><br>'
        f"<small>{'; '.join(escape(t.title) for t in d.tasks)}</small></td><td>{d.hours:g}</td>"
        f"<td>{points_text(sum(t.points for t in d.tasks))}</td><td>{needs[d.day]}</td></tr>\n"
        for d in found.days
    )
    hours = sum(d.hours for d in found.days)
    total = points_text(sum(t.points for d in found.days for t in d.tasks))
    return (
        '<div class="table-wrapper">\n<table>\n'
        "<thead><tr><th>day</th><th>hours</th><th>points</th><th>builds on</th></tr></thead>\n"
        f"<tbody>\n{rows}<tr><td><strong>all</strong></td><td>{hours:g}</td><td>{total}</td><td></td></tr>\n"
        "</tbody>\n</table>\n</div>"
    )


def anchors(prose: str) -> str:
    """Give `## Task 2: ...` headings the id that stubs, tests and links name: `#task-2`."""
    return TASK_HEADING.sub(r"## Task \1: \2 {#task-\1}", prose)


def _points(points: float) -> str:
    return f"{points_text(points)} points" if points != 1 else "1 point"


def _short(need: str, week: int) -> str:
    of, _, number = need.partition(".")
    return f"Day {number}" if int(of) == week else f"Week {of} Day {number}"


def _html(chapter: str) -> str:
    return chapter.removesuffix(".md") + ".html"
