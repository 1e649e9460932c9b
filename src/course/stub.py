"""The text of a stub, `Week 1 Day 1 Task 1: softmax - see ...`: how it is found in what a program raised.

A learner may catch a stub's error and raise another, so the whole exception chain is searched."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TEXT = re.compile(r"Week (\d+) Day (\d+) Task (\d+): (.+?) - see [^\s\"']+")


@dataclass(frozen=True)
class Stub:
    """One function that is still to be written."""

    week: int
    day: int
    task: int
    text: str

    @property
    def label(self) -> str:
        """`Week 1 Day 1 Task 1`."""
        return f"Week {self.week} Day {self.day} Task {self.task}"


def find_stubs(text: str) -> Iterator[Stub]:
    """All stub texts in `text`: what a program said, or its source."""
    return (Stub(int(found[1]), int(found[2]), int(found[3]), found[0]) for found in _TEXT.finditer(text))


def find_stub(text: str) -> Stub | None:
    """The first stub text in `text`."""
    return next(find_stubs(text), None)


def stub_of(error: BaseException) -> Stub | None:
    """The stub that `error` comes from: its own text, its causes and contexts, and the members of exception groups."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if stub := find_stub(_text(current)):
            return stub
        members = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        waiting += [e for e in (*members, current.__context__, current.__cause__) if e is not None]
    return None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a learner's own exception class can fail to print itself
        return ""
