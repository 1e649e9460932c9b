"""What a class sees later: curriculum, tests, chapters and quizzes of the weeks after the last one released.

The starter stays whole: its programs import across weeks, and the stubs of later weeks harm nobody.
"""

import re
from collections.abc import Collection

CHAPTERS = "book/src/"
_OF_WEEK = re.compile(r"curriculum/week(\d+)\.toml|tests_refsol/week_(\d+)/.*|book/src/(?:quizzes/)?week(\d+)-.*")
_BELONGS = re.compile(r"^<!-- belongs to week (\d+) -->$", re.MULTILINE)
_ENTRY = re.compile(r"\s*(?:- )?\[[^\]]*\]\(([^)]*)\)\s*")
_PART = re.compile(r"^(?=# )", re.MULTILINE)


def week_of(name: str, content: bytes = b"") -> int | None:
    """The week to which a file of the repository belongs, by its name or, for a page, by a comment; None: to all."""
    found = _OF_WEEK.fullmatch(name) or (
        name.startswith(CHAPTERS) and _BELONGS.search(content.decode(errors="replace"))
    )
    return int(next(filter(None, found.groups()))) if found else None


def without_later(files: dict[str, bytes], last: int) -> dict[str, bytes]:
    """The files without those of weeks after `last`."""
    return {name: content for name, content in files.items() if (week_of(name, content) or 0) <= last}


def contents(summary: str, files: Collection[str]) -> str:
    """The book's SUMMARY.md with the chapters that are among `files`, and without parts that have none left."""
    parts = []
    for part in _PART.split(summary):
        lines = part.splitlines(keepends=True)
        kept = [line for line in lines if not (found := _ENTRY.fullmatch(line)) or f"{CHAPTERS}{found[1]}" in files]
        if kept == lines or any(_ENTRY.fullmatch(line) for line in kept):
            parts.append("".join(kept))
    return "".join(parts)
