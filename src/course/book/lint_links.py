"""Lints of what a chapter refers to: links, anchors, SUMMARY, figures, and the files and anchors of includes."""

import re
from collections.abc import Iterator
from pathlib import Path

from course.book import figures, glossary
from course.book.library import Library, directives, headings, line_of, spans
from course.book.page import PROSE, BookError, Finding, Page

_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_HREF = re.compile(r'<(?:a|img)\b[^>]*?\b(?:href|src)="([^"]+)"')
_INCLUDE = re.compile(r"\{\{#(?:rustdoc_)?include\s+([^\s:}]+)(?::([\w-]+))?[^}]*\}\}")


def check(library: Library) -> Iterator[Finding]:
    """All findings of this module."""
    yield from _summary(library)
    anchors = {path: _anchors(page) for path, page in library.chapters.items()}
    for page in library.pages.values():
        yield from _links(library, page, anchors)
        yield from _includes(library, page)
        yield from _figures(library, page)
    for task in library.course.tasks:
        if task.chapter in anchors and f"task-{task.number}" not in anchors[task.chapter]:
            problem = f"{task.label} has no anchor #task-{task.number}"
            yield Finding(f"book/src/{task.chapter}", 1, problem, f"add '## Task {task.number}: {task.title}'")
    yield from _pictures(library)


def _anchors(page: Page) -> set[str]:
    """Every id of the built page that a link may name."""
    ids = {h.anchor for h in headings(page)} | set(re.findall(r'\bid="([^"]+)"', page.text))
    if page.path == glossary.PATH:
        ids |= {glossary.slug(term) for term, _ in glossary.terms(page.text)}
    return ids | {f"figure-{argument.split()[0]}" for argument, _ in directives(page, "figure") if argument}


def _summary(library: Library) -> Iterator[Finding]:
    summary = library.pages.get("SUMMARY.md")
    listed = set(re.findall(r"\]\(([^)]+\.md)\)", summary.text)) if summary else set()
    for path in sorted(library.chapters.keys() - listed):
        yield Finding(f"book/src/{path}", 1, "the chapter is not in SUMMARY.md", "list it there")
    for day in library.course.days:
        if day.chapter not in library.pages:
            problem = f"{day.label} names {day.chapter}, which does not exist"
            yield Finding(f"curriculum/week{day.week}.toml", 1, problem, f"write book/src/{day.chapter}")


def _links(library: Library, page: Page, anchors: dict[str, set[str]]) -> Iterator[Finding]:
    src = library.src.resolve()
    for segment in spans(page, PROSE):
        for match in [*_LINK.finditer(segment.text), *_HREF.finditer(segment.text)]:
            target, line = match[1], line_of(segment, match)
            if re.match(r"(https?|mailto):", target):
                continue
            path, _, anchor = target.partition("#")
            file = ((src / page.path).parent / path if path else src / page.path).resolve()
            if not file.exists() or not file.is_relative_to(src):
                yield page.finding(
                    line, f"the link {target!r} leads nowhere", "correct the path, relative to this page"
                )
            elif anchor and anchor not in anchors.get(file.relative_to(src).as_posix(), set()):
                yield page.finding(line, f"{path or 'this page'} has no anchor #{anchor}", "use the id of a heading")


def _includes(library: Library, page: Page) -> Iterator[Finding]:
    for match in _INCLUDE.finditer(page.text):
        line = 1 + page.text.count("\n", 0, match.start())
        file = (library.src / page.path).parent / match[1]
        if not file.exists():
            yield page.finding(line, f"the included file {match[1]!r} does not exist", "correct the path")
        elif match[2] and not match[2].isdigit() and not _has_anchor(file, match[2]):
            yield page.finding(line, f"{match[1]} has no anchor {match[2]!r}", f"add '# ANCHOR: {match[2]}' to it")


def _has_anchor(file: Path, name: str) -> bool:
    text = file.read_text(encoding="utf-8")
    return all(re.search(rf"\b{mark}: {re.escape(name)}\s*$", text, re.MULTILINE) for mark in ("ANCHOR", "ANCHOR_END"))


def _figures(library: Library, page: Page) -> Iterator[Finding]:
    for argument, line in directives(page, "figure"):
        try:
            figures.render(page, line, argument, library.book)
        except BookError as error:
            yield error.finding


def _pictures(library: Library) -> Iterator[Finding]:
    scripts = sorted((library.book / "figures").glob("*.py"))
    for script in scripts:
        if not figures.alt_text(script):
            problem = "the script has no docstring"
            yield Finding(f"book/figures/{script.name}", 1, problem, "describe the picture there: it is the alt text")
    for picture in sorted((library.src / "figures").glob("*.svg")):
        if picture.stem.rsplit("-", 1)[0] not in {s.stem for s in scripts}:
            yield Finding(f"book/src/figures/{picture.name}", 1, "no script draws this picture", "delete it")
