"""The `[[...]]` groups of a source: where they stand and what they say."""

from dataclasses import dataclass
from difflib import get_close_matches

from course.emulator.errors import Problem
from course.emulator.translate.program import Program

# What a kernel's parameter may carry, and the runtime's name for it.
ARGUMENTS = {
    "buffer": "kBuffer",
    "threadgroup": "kThreadgroup",
    "thread_position_in_grid": "kThreadPositionInGrid",
    "thread_position_in_threadgroup": "kThreadPositionInThreadgroup",
    "threadgroup_position_in_grid": "kThreadgroupPositionInGrid",
    "thread_index_in_threadgroup": "kThreadIndexInThreadgroup",
    "thread_index_in_simdgroup": "kThreadIndexInSimdgroup",
    "simdgroup_index_in_threadgroup": "kSimdgroupIndexInThreadgroup",
    "thread_index_in_quadgroup": "kThreadIndexInQuadgroup",
    "quadgroup_index_in_threadgroup": "kQuadgroupIndexInThreadgroup",
    "threads_per_threadgroup": "kThreadsPerThreadgroup",
    "dispatch_threads_per_threadgroup": "kDispatchThreadsPerThreadgroup",
    "threadgroups_per_grid": "kThreadgroupsPerGrid",
    "threads_per_grid": "kThreadsPerGrid",
    "grid_size": "kThreadsPerGrid",
    "simdgroups_per_threadgroup": "kSimdgroupsPerThreadgroup",
    "dispatch_simdgroups_per_threadgroup": "kDispatchSimdgroupsPerThreadgroup",
    "quadgroups_per_threadgroup": "kQuadgroupsPerThreadgroup",
    "threads_per_simdgroup": "kThreadsPerSimdgroup",
    "thread_execution_width": "kThreadsPerSimdgroup",
    "grid_origin": "kGridOrigin",
}
_OTHERS = {"kernel", "host_name", "max_total_threads_per_threadgroup", "maybe_unused", "clang::optnone", "unroll"}


@dataclass(frozen=True)
class Group:
    """`[[name(args), name]]` from the token at `start` to the token at `end`."""

    start: int
    end: int
    items: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str | None:
        """The arguments of `name` as text, None where the group does not hold it."""
        return next((args for found, args in self.items if found == name), None)


class Attributes:
    """All groups of a program, found by where they start, end, or lie."""

    def __init__(self, program: Program) -> None:
        self.groups = _find(program)
        self.at = {group.start: group for group in self.groups}
        self.ending = {group.end: group for group in self.groups}
        self.inside = {i for group in self.groups for i in range(group.start, group.end + 1)}

    def within(self, start: int, end: int) -> list[Group]:
        return [group for group in self.groups if start <= group.start < end]

    def unknown(self, program: Program) -> list[Problem]:
        """Attributes that Metal or the emulator does not have."""
        known = ARGUMENTS.keys() | _OTHERS
        return [
            program.code[group.start].problem(f"unknown attribute [[{name}]]: {_advice(name)}")
            for group in self.groups
            for name, _ in group.items
            if name not in known
        ]


def _advice(name: str) -> str:
    similar = get_close_matches(name, ARGUMENTS, 1, 0.5)
    return f"did you mean [[{similar[0]}]]?" if similar else "the emulator has buffers and the thread's position"


def _find(program: Program) -> list[Group]:
    groups, index = [], 0
    while index < len(program) - 1:
        if program.text(index) == program.text(index + 1) == "[":
            end = program.partner[index]
            groups.append(Group(index, end, tuple(_items(program, index + 2, end - 1))))
            index = end
        index += 1
    return groups


def _items(program: Program, start: int, end: int) -> list[tuple[str, str]]:
    items = []
    for first, last in program.split(start, end):
        stop = first
        while stop < last and program.text(stop) != "(":
            stop += 1
        name = "".join(token.text for token in program.code[first:stop])
        close = program.partner[stop] if stop < last else stop
        items.append((name, program.words(stop + 1, close)))
    return items
