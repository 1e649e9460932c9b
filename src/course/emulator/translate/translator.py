"""One preprocessed Metal source to one C++ source for the emulator's runtime."""

from dataclasses import dataclass
from itertools import groupby

from course.emulator.errors import KernelError, Problem
from course.emulator.translate.attributes import Attributes
from course.emulator.translate.kernels import Kernels
from course.emulator.translate.program import Edits, Program, match_brackets
from course.emulator.translate.scopes import Scopes
from course.emulator.translate.threadgroup import ThreadgroupVariables
from course.emulator.translate.tokens import BLANK, tokenize
from course.emulator.translate.words import rewrite_words


@dataclass(frozen=True)
class Unit:
    """A source as every pass and every lint sees it. `own` are the files that the kernel's author wrote."""

    program: Program
    attributes: Attributes
    scopes: Scopes
    kernels: Kernels
    threadgroup: ThreadgroupVariables
    own: frozenset[str]

    def is_own(self, index: int) -> bool:
        return self.program.code[index].file in self.own

    def problem(self, index: int, text: str) -> Problem:
        return self.program.code[index].problem(text)


def read(source: str, own: frozenset[str]) -> Unit:
    """Parse as far as translation needs it. Raises KernelError for brackets and declarations that make no sense."""
    tokens = tokenize(source)
    for is_own, part in groupby((t for t in tokens if t.kind not in BLANK), lambda token: token.file in own):
        if is_own:  # what the author wrote is complete by itself: no bracket ends in generated code
            match_brackets(list(part))
    program = Program(tokens)
    attributes = Attributes(program)
    kernels = Kernels(program, attributes)
    return Unit(program, attributes, Scopes(program), kernels, ThreadgroupVariables(program, attributes), own)


def translate(unit: Unit) -> str:
    """The C++ source: the same lines, so that a compiler's messages name the Metal source's own."""
    problems = unit.kernels.problems + unit.threadgroup.problems
    if problems:
        raise KernelError.of(problems)
    edits = Edits(unit.program)
    rewrite_words(unit.program, unit.attributes, unit.scopes, edits)
    unit.threadgroup.rewrite(edits)
    unit.kernels.rewrite(edits)
    return '#include "metal_shim.h"\n' + edits.render()
