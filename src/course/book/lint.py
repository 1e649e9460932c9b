"""All lints of the book."""

from collections.abc import Sequence
from types import ModuleType

from course.book import lint_commands, lint_grammar, lint_links, lint_spelling, lint_words
from course.book.library import Library
from course.book.page import Finding

LINTS = (lint_links, lint_commands, lint_grammar, lint_words, lint_spelling)


def check(library: Library, lints: Sequence[ModuleType] = LINTS) -> list[Finding]:
    """Every fault of the book, by file and line, without repeats."""
    found = {finding for lint in lints for finding in lint.check(library)}
    return sorted(found, key=lambda f: (f.file, f.line, f.problem))
