"""Kernel functions: their parameters become a table for the runtime, their names are registered with it."""

from dataclasses import dataclass

from course.emulator.errors import KernelError, Problem
from course.emulator.translate.attributes import ARGUMENTS, Attributes
from course.emulator.translate.program import Edits, Program
from course.emulator.translate.spaces import QUALIFIERS, SPACES


@dataclass(frozen=True)
class Kernel:
    """A kernel's definition: the indices of its first token, of its parameter list and of its body's braces."""

    name: str
    first: int
    params: tuple[int, int]
    body: tuple[int, int]


class Kernels:
    """Finds a program's kernels and writes what registers them."""

    def __init__(self, program: Program, attributes: Attributes) -> None:
        self._program = program
        self._attributes = attributes
        self.problems: list[Problem] = []
        self.definitions: list[Kernel] = []
        self._instances: list[tuple[int, int, int]] = []
        for mark in self._marks():
            self._read(mark)
        self._tables = {kernel.name: self._table(kernel) for kernel in self.definitions}

    def rewrite(self, edits: Edits) -> None:
        """Register definitions that are no templates, and every explicit instantiation."""
        for kernel in self.definitions:
            start, is_template = self._template_head(kernel.first)
            edits.before(start, self._tables[kernel.name])
            if not is_template:
                host = self._host_name(kernel.first, kernel.params[0]) or f'"{kernel.name}"'
                edits.after(kernel.body[1], f" MSL_REGISTER({host}, {kernel.name}__msl_args, {kernel.name})")
        for first, mark, end in self._instances:
            name, function = self._instance_name(mark, end)
            edits.erase(range(first, end + 1))
            host = self._host_name(first, end) or f'"{name}"'
            edits.after(end, f" MSL_REGISTER({host}, {name}__msl_args, {function})")

    def _marks(self) -> list[int]:
        """Where `[[kernel]]` ends or `kernel` stands."""
        groups = [group.end for group in self._attributes.groups if group.get("kernel") is not None]
        words = [i for i in range(len(self._program)) if self._program.text(i) == "kernel"]
        return sorted(groups + [i for i in words if i not in self._attributes.inside])

    def _read(self, mark: int) -> None:
        program, ending = self._program, self._attributes.ending
        first = ending[mark].start if mark in ending else mark
        while first - 1 in ending:
            first = ending[first - 1].start
        if program.text(first - 1) == "template":
            end = mark
            while end < len(program) and program.text(end) != ";":
                end += 1
            self._expect(end < len(program), mark, "this instantiation never ends: add ';'")
            self._instances.append((first - 1, mark, end))
            return
        opening = mark + 1
        while opening in self._attributes.at:
            opening = self._attributes.at[opening].end + 1
        self._expect(program.text(opening) == "void", mark, "a kernel returns void: write `[[kernel]] void NAME(...)`")
        opening += 2
        self._expect(program.text(opening) == "(", mark, "expected `NAME(` after `[[kernel]] void`")
        closing = program.partner[opening]
        brace = closing + 1
        while brace in self._attributes.at:
            brace = self._attributes.at[brace].end + 1
        if program.text(brace) == ";":
            return
        self._expect(program.text(brace) == "{", closing, "expected the kernel's body `{ ... }` here")
        name = program.text(opening - 1)
        self.definitions.append(Kernel(name, first, (opening, closing), (brace, program.partner[brace])))

    def _expect(self, holds: bool, index: int, text: str) -> None:
        if not holds:
            raise KernelError.of([self._program.code[index].problem(text)])

    def _template_head(self, first: int) -> tuple[int, bool]:
        """Where the declaration starts, `template <...>` included, and whether there is one."""
        if self._program.text(first - 1) == ">":
            opening = self._program.angle_start(first - 1)
            if opening > 0 and self._program.text(opening - 1) == "template":
                return opening - 1, True
        return first, False

    def _host_name(self, start: int, end: int) -> str | None:
        names = [group.get("host_name") for group in self._attributes.within(start, end)]
        return next((name for name in names if name), None)

    def _instance_name(self, mark: int, end: int) -> tuple[str, str]:
        """The function's name, and the name with its template arguments, of an explicit instantiation."""
        program = self._program
        start = mark + 1
        while start in self._attributes.at:
            start = self._attributes.at[start].end + 1
        start = program.partner[start + 1] + 1 if program.text(start) == "decltype" else start + 1
        self._expect(program.kind(start) == "name", mark, "expected a kernel's name in this instantiation")
        stop = start + 1
        if program.text(stop) == "<":
            stop = program.angle_end(stop) + 1
            self._expect(stop > 0, mark, "the `<` of this instantiation is never closed")
        words = [token.text for token in program.code[start:stop] if token.text not in SPACES]
        return program.text(start), " ".join(words)

    def _table(self, kernel: Kernel) -> str:
        """The runtime's description of the parameters, in order."""
        params = self._program.split(kernel.params[0] + 1, kernel.params[1])
        sources = [self._source(a, b) for a, b in params]
        taken = set(sources)
        for place, (start, end) in enumerate(params):
            if sources[place] is None and self._is_memory(start, end):  # Metal numbers these itself
                sources[place] = next(free for free in map(_buffer, range(len(params))) if free not in taken)
                taken.add(sources[place])
        rows = [self._row(kernel, a, b, source) for (a, b), source in zip(params, sources, strict=True)]
        body = ", ".join(rows) or '{::msl::kUnknown, -1, ""}'
        return f"static const ::msl::ArgDesc {kernel.name}__msl_args[] = {{{body}}}; "

    def _source(self, start: int, end: int) -> str | None:
        """The runtime's words for where a parameter comes from; None where it carries no attribute."""
        for group in self._attributes.within(start, end):
            for attribute, value in group.items:
                if attribute in ARGUMENTS:
                    return f"::msl::{ARGUMENTS[attribute]}, {value or -1}"
        return None

    def _is_memory(self, start: int, end: int) -> bool:
        """Whether the parameter is a pointer or reference to device or constant memory."""
        words = {self._program.text(i) for i in range(start, end) if i not in self._attributes.inside}
        return bool(words & {"*", "&", "["}) and bool(words & {"device", "constant"})

    def _row(self, kernel: Kernel, start: int, end: int, source: str | None) -> str:
        inside = self._attributes.inside
        names = [i for i in range(start, end) if self._program.kind(i) == "name" and i not in inside]
        plain = [self._program.text(i) for i in names if self._program.text(i) not in SPACES | QUALIFIERS]
        name = plain[-1] if plain else ""
        if source is None:
            text = f"parameter `{name}` of `{kernel.name}` does not say where it comes from: add a thread attribute"
            self.problems.append(self._program.code[start].problem(text))
        return f'{{{source or "::msl::kUnknown, -1"}, "{name}"}}'


def _buffer(index: int) -> str:
    return f"::msl::kBuffer, {index}"
