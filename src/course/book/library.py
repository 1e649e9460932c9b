"""The whole book as the lints see it: pages, SUMMARY, registry and tests. It reads files and judges nothing."""

import re
from dataclasses import dataclass
from pathlib import Path

from course import curriculum
from course.book.page import CODE, DIRECTIVE, PROSE, Page, Segment, blocks, directive, segments
from course.curriculum import Curriculum, Day
from course.paths import BOOK, ROOT

HEADING = re.compile(r"^(#{1,6}) +(.+?)(?: +\{#([\w-]+)\})?[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Heading:
    """A heading of a page."""

    level: int
    text: str
    line: int
    anchor: str


@dataclass(frozen=True)
class Library:
    """A book folder (with `src` and `figures`), the registry it is about, and the repository around it."""

    book: Path
    course: Curriculum
    root: Path
    pages: dict[str, Page]

    @classmethod
    def load(cls, book: Path = BOOK, course: Curriculum | None = None, root: Path = ROOT) -> "Library":
        """Read every chapter of `book/src`. Raises CourseError when the registry cannot be read."""
        src = book / "src"
        pages = [Page(path.relative_to(src).as_posix(), path.read_text("utf-8")) for path in sorted(src.rglob("*.md"))]
        return cls(book, course or curriculum.load(), root, {page.path: page for page in pages})

    @property
    def src(self) -> Path:
        """Where the chapters are."""
        return self.book / "src"

    @property
    def chapters(self) -> dict[str, Page]:
        """All pages but SUMMARY.md."""
        return {path: page for path, page in self.pages.items() if path != "SUMMARY.md"}

    def day_of(self, page: Page) -> Day | None:
        """The day whose chapter this page is."""
        return next((day for day in self.course.days if day.chapter == page.path), None)


def line_of(segment: Segment, match: re.Match[str]) -> int:
    """The page's line on which a match inside a segment starts."""
    return segment.line + segment.text.count("\n", 0, match.start())


def directives(page: Page, name: str) -> list[tuple[str, int]]:
    """The argument of each `{{#name argument}}` of a page, with its line."""
    lines = [b for b in blocks(page.text) if b.kind == DIRECTIVE]
    return [(directive(b)[1], b.line) for b in lines if directive(b)[0] == name]


def spans(page: Page, kind: str) -> list[Segment]:
    """All segments of one kind; fenced blocks and code spans are both CODE."""
    return [s for s in segments(page.text) if s.kind == kind]


def code_spans(page: Page) -> list[tuple[str, int]]:
    """The text of each inline code span, with its line."""
    inline = [s for s in spans(page, CODE) if not re.match(r"\s*(?:>\s*)*(```|~~~|<!--)", s.text)]
    return [(s.text.strip("`").strip(), s.line) for s in inline]


def headings(page: Page) -> list[Heading]:
    """All headings with the ids that the built page will have."""
    seen: dict[str, int] = {}
    found = []
    for number, text in _prose_lines(page):
        match = HEADING.match(text)
        if match:
            anchor = match[3] or _anchor(match[2])
            seen[anchor] = seen.get(anchor, -1) + 1
            suffix = f"-{seen[anchor]}" if seen[anchor] else ""
            found.append(Heading(len(match[1]), match[2], number, anchor + suffix))
    return found


def _prose_lines(page: Page) -> list[tuple[int, str]]:
    return [
        (block.line + offset, line)
        for block in blocks(page.text)
        if block.kind == PROSE
        for offset, line in enumerate(block.text.splitlines())
    ]


def _anchor(heading: str) -> str:
    if task := re.match(r"Task (\d+): ", heading):
        return f"task-{task[1]}"
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)  # a link's text counts, its target does not
    plain = re.sub(r"[*`]", "", plain).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain))
