"""What the checked build found, in sentences: where, who, which memory, and what to do."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from course.emulator.runtime import Finding, Record

from course.emulator.places import Place, locate, own_file, source_lines
from course.emulator.session import Launch

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
        name = self.raw.name or (f"buffer {self.raw.buffer}" if self.raw.buffer >= 0 else "memory")
        kind = "buffer" if self.raw.buffer >= 0 else "threadgroup variable"
        return f"{kind} `{name}`{self.element}"

    @property
    def element(self) -> str:
        size, offset = self.raw.size, self.raw.offset
        if size in (1, 2, 4, 8, 16) and offset % size == 0:
            return f" at element {offset // size} (of {size} bytes)"
        return f" at byte {offset}"

    @property
    def limit(self) -> str:
        """How large the buffer is."""
        index = self.raw.buffer
        if not 0 <= index < len(self.launch.buffers):
            return ""
        return f", which has {self.launch.buffers[index].nbytes} bytes"

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
            f"data race on {site.memory}: {site.who} {then} what {site.other_who} {first}{site.there} "
            f"with nothing to order them: {site.fence}"
        )

    return sentence


def _bounds(verb: str) -> Callable[[_Site], str]:
    def sentence(site: _Site) -> str:
        return f"{site.who} {verb} out of bounds of {site.memory}{site.limit}: guard the index or shrink the grid"

    return sentence


_SENTENCES: dict[str, Callable[[_Site], str]] = {
    "out_of_bounds_read": _bounds("reads"),
    "out_of_bounds_write": _bounds("writes"),
    "write_to_input": lambda s: f"{s.who} writes to {s.memory}, an input: write to an output or a threadgroup variable",
    "uninitialized_threadgroup_read": lambda s: (
        f"{s.who} reads {s.memory}, which nobody has written: threadgroup memory starts with arbitrary values, fill it "
        "first, and put a barrier after that"
    ),
    "uninitialized_device_read": lambda s: (
        f"{s.who} reads {s.memory}, which nobody has written: outputs start with arbitrary values "
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
        f"{s.who} waits at a barrier after other threads of its threadgroup have returned{_note(s)}: "
        "guard the work with `if`, not with an early return"
    ),
    "partial_simdgroup": lambda s: (
        f"{s.who} calls a simdgroup function that only a part of its simdgroup reaches{_note(s)}: "
        "call it with all threads, and give 0 (or another neutral value) for those without work"
    ),
    "array_index": lambda s: (
        f"{s.who} uses index {s.raw.offset} of an array{_note(s)} that is smaller: check the index"
    ),
    "division_by_zero": lambda s: f"{s.who} divides an integer by zero: check the divisor",
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
    "output_not_written": lambda s: (
        f"{s.raw.size} bytes of output {s.memory} were never written, the first of them there: "
        "does the grid cover every element?"
    ),
}


def _note(site: _Site) -> str:
    return f" ({site.raw.note})" if site.raw.note else ""


def describe(record: Record, launch: Launch) -> list[dict[str, str | int | bool]]:
    """The findings of one launch as plain dicts: kind, message, file, line, fatal.

    A message reads "rms_norm.metal:23: data race on ...". Line 0: no line is to blame.
    """
    pcs = [pc for raw in record.findings for pc in (raw.pc, raw.other_pc)]
    places = locate(launch.library, pcs, launch.own)
    lines = source_lines(launch.source)
    return [_plain(raw, record, launch, places, lines) for raw in record.findings]


def _plain(
    raw: Finding, record: Record, launch: Launch, places: dict[int, Place], lines: dict[Place, str]
) -> dict[str, str | int | bool]:
    own = own_file(raw.file, launch.own) if raw.file else None
    place = places.get(raw.pc) or ((own, raw.line) if own else None)
    site = _Site(raw, launch, tuple(record.threadgroup), places.get(raw.other_pc))
    sentence = _SENTENCES[raw.kind](site)
    file, line = place or (launch.kernel, 0)
    message = f"{file}:{line}: {sentence}" if line else f"{file}: {sentence}"
    if raw.count > 1:
        message += f" ({raw.count} times)"
    if place in lines:
        message += f"\n    {lines[place]}"
    return {"kind": raw.kind, "message": message, "file": file, "line": line, "fatal": raw.fatal}
