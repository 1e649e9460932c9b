"""Members of the source's own structs that are spelled like swizzles: `pair.xy` is then no swizzle."""

from course.emulator.translate.program import Program

_MEMBER_END = frozenset({";", ",", "=", "[", "{"})


class StructMembers:
    """Which structs have which members, and which names are declared as such a struct."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._members: dict[str, set[str]] = {}
        self._types: dict[str, set[str]] = {}
        for index, token in enumerate(program.code):
            if token.text in ("struct", "class", "union"):
                self._read(index)
        for index in range(1, len(program)):
            place = index - 1
            while program.text(place) in ("&", "*", "const", "thread", "device", "constant", "threadgroup"):
                place -= 1
            if program.text(place) == ">":
                place = program.angle_start(place) - 1
            if program.kind(index) == "name" and program.text(place) in self._members:
                self._types.setdefault(program.text(index), set()).add(program.text(place))

    def is_member(self, index: int) -> bool:
        """Whether the name after a `.` or `->` at `index` is a member of the struct that stands before it."""
        program = self._program
        owner = index - 2
        while program.text(owner) in ("]", ")"):
            owner = program.partner[owner] - 1
        if program.text(owner) == "this":
            return any(program.text(index) in members for members in self._members.values())
        types = self._types.get(program.text(owner), set()) | {program.text(owner)}
        return any(program.text(index) in self._members.get(name, ()) for name in types)

    def _read(self, index: int) -> None:
        program = self._program
        brace = index
        while program.text(brace) not in ("{", ";", "(", ")", ">", ",", ""):
            brace += 1
        if program.text(brace) != "{":
            return
        members = self._members.setdefault(program.text(index + 1), set())
        place = brace + 1
        while place < program.partner[brace]:
            if program.text(place) in ("{", "("):
                place = program.partner[place]
            elif program.kind(place) == "name" and program.text(place + 1) in _MEMBER_END:
                members.add(program.text(place))
            place += 1
