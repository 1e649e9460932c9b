"""Lints of words: glossary terms, and what would stop the build (TeX, directives)."""

from collections.abc import Iterator
from itertools import pairwise

from course.book import glossary, preprocess
from course.book.library import Library, line_of, spans
from course.book.page import PROSE, BookError, Finding


def check(library: Library) -> Iterator[Finding]:
    """All findings of this module."""
    yield from _terms(library)
    yield from _expands(library)


def _terms(library: Library) -> Iterator[Finding]:
    page = library.pages.get(glossary.PATH)
    defined = glossary.terms(page.text) if page else []
    for (before, _), (term, line) in pairwise(defined):
        if page and glossary.key(before) == glossary.key(term):
            yield page.finding(line, f"{term!r} is defined twice", "keep one entry")
        elif page and before.casefold() > term.casefold():
            yield page.finding(line, f"{term!r} stands after {before!r}", "keep the glossary in alphabetical order")
    keys = {glossary.key(term) for term, _ in defined}
    for chapter in library.chapters.values():
        for segment in spans(chapter, PROSE):
            for match in glossary.DFN.finditer(segment.text):
                if glossary.key(match[1]) not in keys:
                    problem = f"<dfn>{match[1]}</dfn> is not in the glossary"
                    yield chapter.finding(line_of(segment, match), problem, "define it in book/src/glossary.md")


def _expands(library: Library) -> Iterator[Finding]:
    """Mistakes that would stop the build, one a page: TeX, unknown directives, unknown tasks."""
    context = preprocess.Context(library.book, library.course, {})
    for page in library.chapters.values():
        try:
            preprocess.expand(context, page)
        except BookError as error:
            yield error.finding
