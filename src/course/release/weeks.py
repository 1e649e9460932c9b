"""What a class sees later: curriculum, tests, chapters and quizzes of the weeks after the last one released.

The starter stays whole: its programs import across weeks, and the stubs of later weeks harm nobody.
"""

import re

_OF_WEEK = re.compile(
    r"curriculum/week(\d+)\.toml|tests_refsol/week_(\d+)/.*|book/src/(?:quizzes/)?week(\d+)-.*|book/src/week(\d+)\.md"
)
_ENTRY = re.compile(r"\s*(?:- )?\[[^\]]*\]\(week(\d+)-[^)]*\)\s*")
_PART = re.compile(r"# Week (\d+)\b.*")


def week_of(name: str) -> int | None:
    """The week to which a file of the repository belongs; None: to all."""
    found = _OF_WEEK.fullmatch(name)
    return int(next(filter(None, found.groups()))) if found else None


def without_later(files: dict[str, bytes], last: int) -> dict[str, bytes]:
    """The files without those of weeks after `last`; the book's SUMMARY.md names only what is there."""
    kept = {name: content for name, content in files.items() if (week_of(name) or 0) <= last}
    summary = "book/src/SUMMARY.md"
    if summary in kept:
        kept[summary] = _summary(kept[summary].decode(), last).encode()
    return kept


def _summary(text: str, last: int) -> str:
    lines = []
    for line in text.splitlines(keepends=True):
        found = _PART.fullmatch(line.strip()) or _ENTRY.fullmatch(line)
        if found is None or int(found[1]) <= last:
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "".join(lines))
