"""Lints of a day chapter's form: headings in order, what each task section holds, languages of fences, quizzes."""

import re
from collections.abc import Iterator

from course.book import quizfile
from course.book.library import Heading, Library, directives, headings
from course.book.page import Finding, Page, fences
from course.curriculum import Day, Task

BEFORE = ("What you will build", "Why", "Picture", "Shapes and symbols", "Predict before coding")
AFTER = ("Pitfalls", "Checkpoint", "Self-check", "How production systems do it", "Bonus", "Next")
GUIDE = "see book/README.md"


def check(library: Library) -> Iterator[Finding]:
    """All findings of this module."""
    for page in library.pages.values():
        for fence in fences(page.text):
            if not fence.language:
                yield page.finding(fence.line, "the fence has no language", "name one, `text` for output")
        yield from _quizzes(library, page)
        day = library.day_of(page)
        if day:
            yield from _chapter(page, day)


def _quizzes(library: Library, page: Page) -> Iterator[Finding]:
    for argument, line in directives(page, "quiz"):
        try:
            count = len(quizfile.load(library.src / argument).questions)
        except (OSError, ValueError) as error:
            problem = "no such file" if isinstance(error, OSError) else str(error)
            yield page.finding(line, f"quiz {argument}: {problem}", GUIDE)
            continue
        if library.day_of(page) and not 2 <= count <= 3:
            yield page.finding(line, f"quiz {argument} has {count} questions", "ask two or three")


def _chapter(page: Page, day: Day) -> Iterator[Finding]:
    found = headings(page)
    yield from _order(page, day, found)
    number = f"{day.week}.{day.day}"
    if number not in [argument for argument, _ in directives(page, "day")]:
        yield page.finding(1, "the chapter has no day box", f"write {{{{#day {number}}}}} under its title")
    written = {h.text: h.line for h in found}
    for name, directive in (("Picture", "figure"), ("Self-check", "quiz")):
        if name in written and not directives(_section(page, found, name), directive):
            yield page.finding(written[name], f"'## {name}' holds no {{{{#{directive}}}}}", GUIDE)
    for name in ("Predict before coding", "Self-check"):
        if name in written and "<details>" not in _section(page, found, name).text:
            yield page.finding(written[name], f"'## {name}' has no answer in <details>", GUIDE)
    for task in day.tasks:
        name = f"Task {task.number}: {task.title}"
        if name in written:
            yield from _task(_section(page, found, name), written[name], task)


def _order(page: Page, day: Day, found: list[Heading]) -> Iterator[Finding]:
    title = f"{day.label}: {day.title}"
    if not found or found[0].level != 1 or found[0].text != title:
        yield page.finding(found[0].line if found else 1, "the title is not the registry's", f"write '# {title}'")
    wanted = [*BEFORE, *(f"Task {t.number}: {t.title}" for t in day.tasks), *AFTER]
    level_two = [h for h in found if h.level == 2]
    for index, want in enumerate(wanted):
        got = level_two[index] if index < len(level_two) else None
        if got is None:
            yield page.finding(page.text.count("\n") + 1, f"the heading '## {want}' is missing", "add it at the end")
            return
        if got.text != want:
            yield page.finding(
                got.line, f"'## {got.text}' stands where '## {want}' belongs", "keep to the chapter grammar"
            )
            return
    for extra in level_two[len(wanted) :]:
        yield page.finding(extra.line, f"'## {extra.text}' is no heading of a day chapter", "use a lower level")


def _task(section: Page, line: int, task: Task) -> Iterator[Finding]:
    number = f"{task.week}.{task.day}.{task.number}"
    for directive in ("badge", "hints"):
        if number not in [a for a, _ in directives(section, directive)]:
            yield section.finding(line, f"task {number} has no {directive}", f"write {{{{#{directive} {number}}}}}")
    command = f"pdm run test {task.options}"
    if not any(re.search(rf"{command}\b", f.body) for f in fences(section.text) if f.language == "bash"):
        yield section.finding(line, f"task {number} does not show its command", f"add a bash fence with {command}")
    for label in ("Files", "Contract", "Expected red"):
        if f"**{label}" not in section.text:
            yield section.finding(line, f"task {number} has no '**{label}**'", GUIDE)


def _section(page: Page, found: list[Heading], name: str) -> Page:
    """The part of a page below one heading, up to the next of the same level."""
    lines = page.text.splitlines(keepends=True)
    starts = [h for h in found if h.level <= 2]
    for index, heading in enumerate(starts):
        if heading.text == name:
            end = starts[index + 1].line - 1 if index + 1 < len(starts) else len(lines)
            return Page(page.path, "".join(lines[heading.line : end]))
    return Page(page.path, "")
