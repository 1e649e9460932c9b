"""The mdBook preprocessor: `python -m course.book.preprocess` reads [context, book] as JSON and writes the book back.

It runs before mdBook's own `links`, so that errors name the lines of the source file.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course import curriculum
from course.book import badges, command_help, figures, glossary, hints, math, protections, quiz, sim_options
from course.book import without_reference as without
from course.book.page import BUILT_IN, DIRECTIVE, PROSE, Page, Segment, blocks, directive, segments
from course.curriculum import Curriculum
from course.errors import CourseError
from course.solutions import has_reference

RENDERERS = {
    "badge": badges.badge,
    "day": badges.day,
    "week": badges.week,
    "hints": hints.render,
    "options": sim_options.render,
    "command": command_help.render,
    "protections": protections.render,
}
NAMES = (*RENDERERS, "quiz", "figure", *BUILT_IN)


@dataclass(frozen=True)
class Context:
    """What the passes look things up in: the book's folder, the registry, the glossary (term's key -> id)."""

    book: Path
    course: Curriculum
    terms: dict[str, str]

    @classmethod
    def load(cls, book: Path) -> "Context":
        """Read registry and glossary. Raises CourseError."""
        path = book / "src" / glossary.PATH
        terms = glossary.terms(path.read_text(encoding="utf-8")) if path.exists() else []
        return cls(book, curriculum.load(), {glossary.key(term): glossary.slug(term) for term, _ in terms})


def expand(context: Context, page: Page) -> str:
    """One page with every pass applied. Raises BookError for the first mistake."""
    _check_strays(page)
    return "".join(_block(context, page, block) for block in blocks(page.text))


def _block(context: Context, page: Page, block: Segment) -> str:
    if block.kind == DIRECTIVE:
        return _directive(context, page, block)
    if block.kind == PROSE:
        text = math.apply(page, block.text, block.line)
        return badges.anchors(glossary.apply(page, text, context.terms))
    return block.text


def _directive(context: Context, page: Page, block: Segment) -> str:
    name, argument = directive(block)
    if name in BUILT_IN:
        return block.text
    if name == "quiz":
        html = quiz.render(page, block.line, argument, context.book / "src")
    elif name == "figure":
        html = figures.render(page, block.line, argument, context.book)
    elif renderer := RENDERERS.get(name):
        html = renderer(context.course, page, block.line, argument)
    else:
        raise page.error(block.line, f"unknown directive {{{{#{name}}}}}", f"use one of {', '.join(NAMES)}")
    return f"\n{html}\n\n"


def _check_strays(page: Page) -> None:
    for segment in segments(page.text):
        if segment.kind == PROSE and (stray := re.search(r"\{\{#", segment.text)):
            line = segment.line + segment.text.count("\n", 0, stray.start())
            raise page.error(line, "a directive inside a line", "give {{#...}} a line of its own")


def _chapters(items: list[dict]) -> Iterator[dict]:
    for item in items:
        if isinstance(item, dict) and (chapter := item.get("Chapter")):
            yield chapter
            yield from _chapters(chapter["sub_items"])


def main(argv: list[str]) -> int:
    """Answer `supports RENDERER`, or preprocess the book on standard input."""
    if argv[:1] == ["supports"]:
        return 0
    run, book = json.load(sys.stdin)
    try:
        context = Context.load(Path(run["root"]))
        if not has_reference():
            without.unpack_starter(context.course)
        for chapter in _chapters(book["items"]):
            if chapter["path"]:
                page = Page(chapter["path"], chapter["content"])
                page = page if has_reference() else without.adapted(page, context.book / "src")
                chapter["content"] = expand(context, page)
    except CourseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    json.dump(book, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
