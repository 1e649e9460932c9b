"""A page of Markdown, split into prose, code and directives, so that each pass touches only what is its own."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from course.errors import CourseError

PROSE, CODE, DIRECTIVE = "prose", "code", "directive"
BUILT_IN = ("include", "rustdoc_include", "playground", "title")  # mdBook expands these itself

_FENCE = re.compile(r"^(?:[\s>]*)(?:[-*+] +|\d+[.)] +)?(`{3,}|~{3,})([^`]*)$")
_DIRECTIVE = re.compile(r"^\{\{#(\w+)(?:\s+((?:(?!\{\{#).)*?))?\s*\}\}\s*$")
_INLINE = re.compile(r"<!--.*?-->|(?<![\\`])(`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)\1(?!`)", re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """A mistake in a file: `file:line: what is wrong: what to do`."""

    file: str
    line: int
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}: {self.fix}"


class BookError(CourseError):
    """A mistake that stops the build."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


@dataclass(frozen=True)
class Page:
    """One chapter: its path below `book/src`, such as `week1-01-attention.md`, and its text."""

    path: str
    text: str

    @property
    def root(self) -> str:
        """Relative URL of `book/src` as seen from this page, "" or "../" and so on."""
        return "../" * self.path.count("/")

    def finding(self, line: int, problem: str, fix: str) -> Finding:
        """A mistake in this line (from 1) of this page."""
        return Finding(f"book/src/{self.path}", line, problem, fix)

    def error(self, line: int, problem: str, fix: str) -> BookError:
        """The same as an error to raise."""
        return BookError(self.finding(line, problem, fix))


@dataclass(frozen=True)
class Segment:
    """A run of text of one kind; the texts of all segments joined are the page. `line` counts from 1."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class Fence:
    """A fenced code block: its language, the marks after the language's comma, its body and its first line."""

    language: str
    marks: tuple[str, ...]
    body: str
    line: int


def blocks(text: str) -> Iterator[Segment]:
    """Split at line level: fenced blocks with their fences, directive lines, and the prose between."""
    start, held, closing = 1, [], ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        fence = _FENCE.match(line.rstrip("\n"))
        if closing:
            held.append(line)
            if line.strip("> \t\n").startswith(closing) and not line.strip("> \t\n").strip(closing[0]):
                yield Segment(CODE, "".join(held), start)
                start, held, closing = number + 1, [], ""
        elif fence or _DIRECTIVE.match(line):
            if held:
                yield Segment(PROSE, "".join(held), start)
            start, held = number, [line]
            if fence:
                closing = fence.group(1)
            else:
                yield Segment(DIRECTIVE, line, number)
                start, held = number + 1, []
        else:
            held.append(line)
    if held:
        yield Segment(CODE if closing else PROSE, "".join(held), start)


def segments(text: str) -> Iterator[Segment]:
    """As `blocks`, with code spans and HTML comments split from the prose as code too."""
    for block in blocks(text):
        if block.kind != PROSE:
            yield block
            continue
        position = 0
        for match in _INLINE.finditer(block.text):
            for kind, piece in ((PROSE, block.text[position : match.start()]), (CODE, match.group())):
                if piece:
                    at = match.start() if kind == CODE else position
                    yield Segment(kind, piece, block.line + block.text.count("\n", 0, at))
            position = match.end()
        if position < len(block.text):
            yield Segment(PROSE, block.text[position:], block.line + block.text.count("\n", 0, position))


def map_prose(text: str, change: Callable[[Segment], str]) -> str:
    """The text with `change` applied to each stretch of prose; code and directives stay byte for byte."""
    return "".join(change(s) if s.kind == PROSE else s.text for s in segments(text))


def fences(text: str) -> Iterator[Fence]:
    """Every fenced block of a page."""
    for block in blocks(text):
        if block.kind == CODE:
            first, *rest = block.text.splitlines()
            info = _FENCE.match(first)
            language, *marks = (info.group(2) if info else "").strip().split(",")
            body = "\n".join(rest[:-1] if rest else [])
            yield Fence(language.strip(), tuple(m.strip() for m in marks), body, block.line)


def directive(segment: Segment) -> tuple[str, str]:
    """Name and argument text of a directive line: `{{#badge 1.1.2}}` gives ("badge", "1.1.2")."""
    match = _DIRECTIVE.match(segment.text)
    assert match, segment
    return match.group(1), match.group(2) or ""
