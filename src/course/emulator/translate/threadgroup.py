"""Threadgroup variables: one copy per threadgroup, which the runtime allocates at the first thread's visit."""

from dataclasses import dataclass

from course.emulator.errors import Problem
from course.emulator.translate.attributes import Attributes
from course.emulator.translate.program import Edits, Program


@dataclass(frozen=True)
class Declaration:
    """`threadgroup TYPE NAME[DIMS], NAME2;`: its first token, its `;`, its type and its declarators."""

    start: int
    end: int
    type: str
    declarators: tuple[tuple[str, str], ...]


class ThreadgroupVariables:
    """Finds the declarations of threadgroup variables in a program's functions."""

    def __init__(self, program: Program, attributes: Attributes) -> None:
        self._program = program
        self._attributes = attributes
        self.problems: list[Problem] = []
        found = [self._declaration(i) for i in range(len(program)) if self._starts(i)]
        self.declarations = [declaration for declaration in found if declaration]

    def rewrite(self, edits: Edits) -> None:
        """Each name becomes a reference to the runtime's copy; the key is per template instance."""
        for declaration in self.declarations:
            edits.erase(range(declaration.start, declaration.end + 1))
            for name, dims in declaration.declarators:
                alias = f"msl_type_{name}"
                edits.after(
                    declaration.end,
                    f"using {alias} = {declaration.type} {dims}; static char msl_key_{name}; "
                    f'{alias}& {name} = ::msl::tgvar<{alias}>(&msl_key_{name}, "{name}"); ',
                )

    def _starts(self, index: int) -> bool:
        return self._program.text(index) == "threadgroup" and index not in self._attributes.inside

    def _declaration(self, index: int) -> Declaration | None:
        """The declaration whose `threadgroup` stands at `index`; None for a pointer, reference or parameter."""
        program = self._program
        start = index
        while program.text(start - 1) in ("const", "static", "volatile", "constexpr"):
            start -= 1
        if program.text(start - 1) not in (";", "{", "}", ""):
            return None
        end = index
        while end < len(program) and program.text(end) != ";":
            if program.text(end) in ("*", "&"):
                return None
            if program.text(end) in ("=", "{"):
                self._initialised(index, end)
                return None
            if program.text(end) == "(" and program.text(end - 1) != "alignas":
                return None
            end = program.partner[end] + 1 if program.text(end) in "([" else end + 1
        words = [i for i in range(index + 1, end) if i not in self._attributes.inside]
        name = self._first_name(words, end)
        if name < 0:
            return None
        kept = [program.text(i) for i in words if i < name and program.text(i) not in ("static", "volatile")]
        declarators = tuple(
            (program.text(a), program.words(a + 1, b)) for a, b in program.split(name, end) if program.kind(a) == "name"
        )
        return Declaration(start, end, " ".join(kept), declarators)

    def _initialised(self, index: int, end: int) -> None:
        name = end - 1
        while self._program.text(name) == "]":
            name = self._program.partner[name] - 1
        text = (
            f"threadgroup variable `{self._program.text(name)}` has an initialiser, which Metal refuses: "
            "declare it alone, let threads fill it, then put a threadgroup_barrier"
        )
        self.problems.append(self._program.code[index].problem(text))

    def _first_name(self, words: list[int], end: int) -> int:
        """Index of the first declared name: the first one after the type that `[`, `,` or the end follows."""
        program = self._program
        closing = -1
        for position, index in enumerate(words):
            if index <= closing:
                continue
            if program.text(index) == "<":
                closing = program.angle_end(index)
            follower = program.text(words[position + 1]) if position + 1 < len(words) else ";"
            if position and program.kind(index) == "name" and follower in ("[", ",", ";"):
                return index
        return -1
