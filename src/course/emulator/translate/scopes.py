"""Which `{` opens what: a namespace, a type, a function, a block inside one, or a list of initial values."""

from dataclasses import dataclass
from typing import Literal

from course.emulator.translate.program import Program

Scope = Literal["namespace", "type", "function", "block", "values"]


@dataclass(frozen=True)
class Function:
    """A function's definition: its name, the parentheses of its parameters, and the braces of its body."""

    name: str
    start: int
    params: tuple[int, int]
    body: tuple[int, int]
    is_template: bool


class Scopes:
    """The scope of every token, and the functions that a program defines."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.functions: list[Function] = []
        self._kinds: list[Scope] = ["namespace"] * len(program)
        self._heads: list[int] = [0] * len(program)
        self._variables: dict[int, bool] = {}  # by head
        self._walk()

    def kind_at(self, index: int) -> Scope:
        """The innermost scope around the token."""
        return self._kinds[index]

    def head(self, index: int) -> int:
        """Index of the first token of the statement or declaration that holds the token."""
        return self._heads[index]

    def in_function(self, index: int) -> bool:
        return self._kinds[index] in ("function", "block")

    def is_variable(self, index: int) -> bool:
        """Whether the declaration that holds the token ends in `;` or an initial value before any parenthesis."""
        head = self._heads[index]
        if head not in self._variables:
            self._variables[head] = self._is_variable(head)
        return self._variables[head]

    def _is_variable(self, place: int) -> bool:
        program = self._program
        while place < len(program):
            text = program.text(place)
            if text in (";", "=", "{"):
                return True
            if text == "(":
                return False
            if text == "<":
                place = max(place, program.angle_end(place))
            elif text == "[":
                place = program.partner[place]
            place += 1
        return False

    def _walk(self) -> None:
        program = self._program
        stack: list[Scope] = ["namespace"]
        head = 0
        heads: list[int] = []
        parentheses_end = -1  # of the outermost ones that are open: the `;` in the head of a `for` ends no statement
        for index in range(len(program)):
            text = program.text(index)
            if text == "(" and index > parentheses_end:
                parentheses_end = program.partner[index]
            if text == "}" and len(stack) > 1:
                closed = stack.pop()
                outer = heads.pop()
                head = outer if closed == "values" else index + 1
            self._kinds[index] = stack[-1]
            self._heads[index] = min(head, index)
            if text == "{":
                scope = self._classify(stack[-1], head, index)
                stack.append(scope)
                heads.append(head)
                head = index + 1
            elif text == ";" and index > parentheses_end:
                head = index + 1
        self._heads = [min(h, len(program) - 1) for h in self._heads]

    def _classify(self, outer: Scope, head: int, brace: int) -> Scope:
        program = self._program
        if outer == "values":
            return "values"
        words = self._top_level(head, brace)
        texts = [program.text(i) for i in words]
        if outer in ("function", "block"):
            if any(t in ("struct", "class", "union") for t in texts) and "(" not in texts:
                return "type"
            before = program.text(brace - 1)
            opens_block = before in (")", ";", "{", "}", "else", "do", ":") or head == brace
            return "block" if opens_block else "values"
        if "namespace" in texts or (texts[:1] == ["extern"] and len(texts) == 2):
            return "namespace"
        if "enum" in texts:
            return "values"
        if "=" in texts:
            return "values"
        opening = next((i for i in words if program.text(i) == "(" and program.text(i - 1) not in _NOT_NAMES), -1)
        if opening > 0:
            self._add(head, opening, brace)
            return "function"
        return "type" if any(t in ("struct", "class", "union") for t in texts) else "values"

    def _add(self, head: int, opening: int, brace: int) -> None:
        program = self._program
        name = program.text(opening - 1)
        closing, end = program.partner[opening], program.partner[brace]
        template = program.text(head) == "template"
        self.functions.append(Function(name, head, (opening, closing), (brace, end), template))

    def _top_level(self, start: int, end: int) -> list[int]:
        """The tokens of a declaration that lie in no bracket; an opening bracket stands for all that it holds."""
        program, found, index = self._program, [], start
        while index < end:
            found.append(index)
            text = program.text(index)
            if text in ("(", "[", "{"):
                index = program.partner[index]
            elif text == "<":
                index = max(index, program.angle_end(index))
            index += 1
        return found


_NOT_NAMES = frozenset({"decltype", "alignas", "sizeof", "__attribute__", "]"})
