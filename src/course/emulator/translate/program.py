"""A source's tokens with its brackets matched, and the edits that turn it into C++."""

from collections.abc import Iterable, Sequence

from course.emulator.errors import KernelError
from course.emulator.translate.tokens import BLANK, Token

DEPTH_LIMIT = 256
_ANGLE_DEPTH, _ANGLE_LENGTH = 32, 500  # of template arguments; what is deeper or longer is taken for comparisons
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_OPENER = {closer: opener for opener, closer in _CLOSER.items()}


class Program:
    """The significant tokens of a source (`code`), addressed by index; -1 stands for "no such token"."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.places = [i for i, token in enumerate(tokens) if token.kind not in BLANK]
        self.code = [tokens[i] for i in self.places]
        self.partner = match_brackets(self.code)

    def __len__(self) -> int:
        return len(self.code)

    def text(self, index: int) -> str:
        """The token's text, "" outside the source."""
        return self.code[index].text if 0 <= index < len(self.code) else ""

    def kind(self, index: int) -> str:
        return self.code[index].kind if 0 <= index < len(self.code) else ""

    def words(self, start: int, end: int) -> str:
        return " ".join(token.text for token in self.code[start:end])

    def snippet(self, start: int, end: int) -> str:
        """The source's own text from the token at `start` to the one before `end`, on one line."""
        tokens = self.tokens[self.places[start] : self.places[end - 1] + 1] if start < end else []
        return " ".join("".join(token.text for token in tokens if token.kind != "marker").split())

    def angle_end(self, start: int) -> int:
        """Index of the `>` that closes the `<` at `start`; -1 where that is a comparison."""
        depth, index = 0, start
        while index < min(len(self.code), start + _ANGLE_LENGTH) and depth < _ANGLE_DEPTH:
            text = self.text(index)
            if text in _CLOSER:
                index = self.partner[index]
            elif text in (";", "{", "}", "&&", "||", ")", "]"):
                return -1
            depth += (text == "<") - (text == ">")
            if depth == 0:
                return index
            index += 1
        return -1

    def angle_start(self, end: int) -> int:
        """Index of the `<` that opens the `>` at `end`; -1 where that is a comparison."""
        depth, index = 0, end
        while index >= max(0, end - _ANGLE_LENGTH) and depth < _ANGLE_DEPTH:
            text = self.text(index)
            if text in _OPENER and text != "}":
                index = self.partner[index]
            elif text in (";", "{", "}", "&&", "||", "(", "["):
                return -1
            depth += (text == ">") - (text == "<")
            if depth == 0:
                return index
            index -= 1
        return -1

    def split(self, start: int, end: int) -> list[tuple[int, int]]:
        """The ranges between the top-level commas of `start:end`, empty ones left out."""
        parts, first, index = [], start, start
        while index < end:
            text = self.text(index)
            if text in _CLOSER:
                index = self.partner[index]
            elif text == "<":
                close = self.angle_end(index)
                index = close if 0 <= close < end else index
            elif text == ",":
                parts.append((first, index))
                first = index + 1
            index += 1
        parts.append((first, end))
        return [(a, b) for a, b in parts if a < b]


def match_brackets(code: Sequence[Token]) -> list[int]:
    """The index of each bracket's partner, -1 for other tokens. Raises KernelError for a bracket without one."""
    partner = [-1] * len(code)
    stack: list[int] = []
    for index, token in enumerate(code):
        if token.kind != "punct":
            continue
        if token.text in _CLOSER:
            stack.append(index)
            if len(stack) > DEPTH_LIMIT:
                raise KernelError.of([token.problem(f"more than {DEPTH_LIMIT} nested brackets: split the expression")])
        elif token.text in _OPENER:
            if not stack:
                raise KernelError.of([token.problem(f"'{token.text}' closes nothing: delete it or open its bracket")])
            opener = code[stack[-1]]
            if opener.text != _OPENER[token.text]:
                text = (
                    f"'{token.text}' cannot close the '{opener.text}' of {opener.file}:{opener.line}: fix one of them"
                )
                raise KernelError.of([token.problem(text)])
            start = stack.pop()
            partner[index], partner[start] = start, index
    if stack:
        opener = code[stack[-1]]
        raise KernelError.of([opener.problem(f"'{opener.text}' is never closed: add '{_CLOSER[opener.text]}'")])
    return partner


class Edits:
    """Changes to a program's tokens, collected first and applied together."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._before: dict[int, str] = {}
        self._after: dict[int, str] = {}
        self._text: dict[int, str] = {}

    def before(self, index: int, text: str) -> None:
        """Put `text` in front of the token, and of what stands there already."""
        self._before[index] = text + self._before.get(index, "")

    def after(self, index: int, text: str) -> None:
        self._after[index] = self._after.get(index, "") + text

    def replace(self, index: int, text: str) -> None:
        """An erased token stays erased."""
        self._text.setdefault(index, text)

    def erase(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._text[index] = ""

    def render(self) -> str:
        """The edited source: every line still where it was."""
        out = [token.text for token in self._program.tokens]
        for index, place in enumerate(self._program.places):
            body = self._text.get(index, self._program.code[index].text)
            out[place] = self._before.get(index, "") + body + self._after.get(index, "")
        return "".join(out)
