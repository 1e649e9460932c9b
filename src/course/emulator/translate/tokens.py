"""Preprocessed Metal source as tokens that know their file and line."""

import re
from dataclasses import dataclass
from typing import Literal

from course.emulator.errors import KernelError, Problem

Kind = Literal["marker", "newline", "space", "string", "char", "name", "number", "punct"]

BLANK = ("marker", "newline", "space")

_TOKEN = re.compile(
    r"""(?P<marker>^[ \t]*\#[^\n]*$)
      | (?P<newline>\n)
      | (?P<space>[ \t\r\f\v]+)
      | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
      | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
      | (?P<punct><<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|<<|[^\s\w])""",
    re.MULTILINE | re.VERBOSE,
)
_LINE = re.compile(r'\s*#\s*(?:line\s+)?(\d+)\s+"((?:\\.|[^"\\])*)"')
_PUNCTUATION = frozenset("()[]{}<>.,:;+-*/%&|^=!~?#")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of source text; `>>` is always two tokens, so that template brackets can be matched."""

    kind: Kind
    text: str
    file: str
    line: int

    def problem(self, text: str) -> Problem:
        return Problem(self.file, self.line, text)


def tokenize(source: str, file: str = "kernel") -> list[Token]:
    """Every token of `source`, spaces and line ends included: joined, their texts are the source again.

    Line markers (`# 3 "file"`) set the file and line of what follows and become `#line` directives; pragmas
    are dropped. Raises KernelError for a character that no Metal source holds.
    """
    tokens: list[Token] = []
    line = 1
    place = 0
    for match in _TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if match.start() != place:
            raise KernelError.of([Problem(file, line, f"cannot read {source[place : match.start()]!r}: delete it")])
        place = match.end()
        if kind == "marker":
            number = _LINE.match(text)
            if number:
                line, file = int(number.group(1)) - 1, number.group(2)
                text = f'#line {number.group(1)} "{file}"'
            else:
                text = ""
        elif kind == "punct" and text[0] not in _PUNCTUATION:
            raise KernelError.of([Problem(file, line, f"unexpected {text!r}: Metal sources hold no such character")])
        tokens.append(Token(kind, text, file, line))  # type: ignore[arg-type]
        line += kind == "newline"
    return tokens
