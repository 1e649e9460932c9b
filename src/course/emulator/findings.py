"""What the checked build found, in sentences: where, who, which memory, and what to do."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from course.emulator.places import Place, locate, own_file, source_lines
from course.emulator.runtime import Finding, Record
from course.emulator.session import Buffer, Launch

_NO_NAME = ("", "memory")  # the runtime's words for an address that belongs to nothing
_BARRIER = "threadgroup_barrier(mem_flags::{0})"


@dataclass(frozen=True)
class _Site:
    """A finding with what its sentence needs."""

    raw: Finding
    launch: Launch
    size: tuple[int, int, int]
    other: Place | None

    @property
    def memory(self) -> str:
        """The memory that was touched, as the source would write it."""
        if self.raw.buffer >= 0:
            return f"buffer `{self.raw.name}`"
        return f"threadgroup variable `{self.raw.name}`" if self.raw.name not in _NO_NAME else "memory of no variable"

    @property
    def touched(self) -> str:
        """Which part of the memory it was: an element where the access is one."""
        if self.raw.name in _NO_NAME:
            return self.memory
        size, offset = self.raw.size, self.raw.offset
        if size in (1, 2, 4, 8, 16) and offset % size == 0:
            return f"element {offset // size} of {self.memory}"
        return f"byte {offset} of {self.memory}"

    @property
    def limit(self) -> str:
        """How large the buffer is."""
        buffer = self.buffer
        return f", which has {buffer.nbytes // buffer.itemsize} elements of {buffer.itemsize} bytes" if buffer else ""

    @property
    def buffer(self) -> Buffer | None:
        known = 0 <= self.raw.buffer < len(self.launch.buffers)
        return self.launch.buffers[self.raw.buffer] if known else None

    @property
    def who(self) -> str:
        return self._thread(self.raw.thread, self.raw.threadgroup)

    @property
    def other_who(self) -> str:
        return self._thread(self.raw.other_thread, self.raw.other_threadgroup)

    @property
    def there(self) -> str:
        """Where the other access is."""
        return f" at {self.other[0]}:{self.other[1]}" if self.other else ""

    def _thread(self, thread: int, threadgroup: int) -> str:
        if thread < 0:
            return "a thread"
        x, y, _ = self.size
        place = f" ({thread % x}, {thread // x % y}, {thread // (x * y)})" if prod(self.size) > x else ""
        return f"thread {thread}{place} of threadgroup {threadgroup}"

    @property
    def fence(self) -> str:
        """The fix of a race."""
        if self.raw.threadgroup != self.raw.other_threadgroup:
            return "no barrier orders threadgroups: let one of them own the element, use an atomic, or a second launch"
        flag = "mem_device" if self.raw.buffer >= 0 else "mem_threadgroup"
        return f"put {_BARRIER.format(flag)} between the two, reached by every thread"


def _race(first: str, then: str) -> Callable[[_Site], str]:
    def sentence(site: _Site) -> str:
        return (
            f"data race on {site.touched}: {site.who} {then} what {site.other_who} {first}{site.there} "
            f"with nothing to order them: {site.fence}"
        )

    return sentence


def _bounds(verb: str) -> Callable[[_Site], str]:
    def sentence(site: _Site) -> str:
        return f"{site.who} {verb} {site.touched}{site.limit}: out of bounds, guard the index or shrink the grid"

    return sentence


def _not_written(site: _Site) -> str:
    size = site.buffer.itemsize if site.buffer else 1
    return (
        f"{site.raw.size // size} elements of output {site.memory}{site.limit}, were never written, "
        f"first element {site.raw.offset // size}: does the grid cover every element?"
    )


def _note(site: _Site) -> str:
    return f" ({site.raw.note})" if site.raw.note else ""


_SENTENCES: dict[str, Callable[[_Site], str]] = {
    "out_of_bounds_read": _bounds("reads"),
    "out_of_bounds_write": _bounds("writes"),
    "write_to_input": lambda s: (
        f"{s.who} writes to {s.touched}, an input: write to an output or a threadgroup variable"
    ),
    "uninitialized_threadgroup_read": lambda s: (
        f"{s.who} reads {s.touched}, which nobody has written: threadgroup memory starts with arbitrary "
        "values, fill it first, and put a barrier after that"
    ),
    "uninitialized_device_read": lambda s: (
        f"{s.who} reads {s.touched}, which nobody has written: outputs start with arbitrary values "
        "unless init_value is given"
    ),
    "race_write_write": _race("wrote", "writes"),
    "race_read_write": _race("read", "writes"),
    "race_write_read": _race("wrote", "reads"),
    "divergent_barrier": lambda s: (
        f"{s.who} waits at a barrier that other threads of its threadgroup do not reach{_note(s)}: "
        "move the barrier out of the branch or loop"
    ),
    "barrier_after_return": lambda s: (
        f"{s.who} waits at a barrier that other threads of its threadgroup never reach{_note(s)}: "
        "move it out of the branch, and guard work with `if` instead of an early return"
    ),
    "partial_simdgroup": lambda s: (
        f"{s.who} calls a simdgroup function that only a part of its simdgroup reaches{_note(s)}: "
        "call it with all threads, and give 0 (or another neutral value) for those without work"
    ),
    "array_index": lambda s: (
        f"{s.who} uses index {s.raw.offset} of an array{_note(s)} that is smaller: check the index"
    ),
    "division_by_zero": lambda s: f"{s.who} divides an integer by zero, or the smallest one by -1: check the divisor",
    "step_limit": lambda s: f"{s.who} is still running after the step limit{_note(s)}: does its loop end?",
    "time_limit": lambda s: f"{s.who} is still running after the time limit{_note(s)}: does its loop end?",
    "threadgroup_memory": lambda s: (
        f"the kernel asks for {s.raw.size} bytes of threadgroup memory, and there are 32768: use smaller tiles"
    ),
    "stack_overflow": lambda s: f"{s.who} overflows its stack: use smaller local arrays, and no recursion",
    "wild_pointer": lambda s: f"{s.who} follows a pointer to no memory of the kernel{_note(s)}: check its index",
    "null_pointer": lambda s: f"{s.who} follows a null pointer: give it a value first",
    "foreign_stack": lambda s: f"{s.who} touches another thread's local variables: share data in threadgroup memory",
    "illegal_instruction": lambda s: f"{s.who} runs into code that never returns: does every path return a value?",
    "output_not_written": _not_written,
}


def describe(record: Record, launch: Launch) -> list[dict[str, str | int | bool]]:
    """The findings of one launch as plain dicts: kind, message, file, line, fatal.

    A message reads "rms_norm.metal:23: data race on ...". Line 0: no line is to blame.
    """
    pcs = [pc for raw in record.findings for pc in (raw.pc, raw.other_pc)]
    places = locate(launch.library, pcs, launch.own)
    lines = source_lines(launch.source)
    findings = sorted(record.findings, key=lambda raw: _order(raw))
    return [_plain(raw, record, launch, places, lines) for raw in findings]


def _order(raw: Finding) -> int:
    """Causes before consequences: a missing barrier also shows as a read of what nobody has written yet."""
    if raw.fatal:
        return 0
    return 1 if raw.kind.startswith("race") else 2 if raw.kind.startswith("out_of_bounds") else 3


def _declaration(raw: Finding, lines: dict[Place, str], own: frozenset[str]) -> Place | None:
    """Where the threadgroup variable is declared that asks for too much memory."""
    if raw.kind != "threadgroup_memory" or not raw.name:
        return None
    pattern = re.compile(rf"\bthreadgroup\b.*\b{re.escape(raw.name)}\b")
    return next((place for place, text in lines.items() if place[0] in own and pattern.search(text)), None)


def _plain(
    raw: Finding, record: Record, launch: Launch, places: dict[int, Place], lines: dict[Place, str]
) -> dict[str, str | int | bool]:
    own = own_file(raw.file, launch.own) if raw.file else None
    place = places.get(raw.pc) or ((own, raw.line) if own else _declaration(raw, lines, launch.own))
    site = _Site(raw, launch, tuple(record.threadgroup), places.get(raw.other_pc))
    sentence = _SENTENCES[raw.kind](site)
    file, line = place or (launch.file, 0)
    message = f"{file}:{line}: {sentence}" if line else f"{file}: {sentence}"
    if raw.count > 1:
        message += f" ({raw.count} times)"
    if place in lines:
        message += f"\n    {lines[place]}"
    return {"kind": raw.kind, "message": message, "file": file, "line": line, "fatal": raw.fatal}
