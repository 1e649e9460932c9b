"""Single tokens that mean something else in C++: address spaces, numbers, swizzles."""

import re

from course.emulator.translate.attributes import Attributes
from course.emulator.translate.program import Edits, Program
from course.emulator.translate.scopes import Scopes
from course.emulator.translate.spaces import SPACES
from course.emulator.translate.structs import StructMembers

_FLOAT = re.compile(
    r"(?:0[xX][\da-fA-F']*\.?[\da-fA-F']*[pP][+-]?\d+"
    r"|(?:\d[\d']*\.[\d']*|\.\d[\d']*|\d[\d']*(?=[eE]))(?:[eE][+-]?\d+)?)(?P<suffix>bf|BF|[fFhH]?)"
)
_INTEGER_HALF = re.compile(r"\d+[hH]")
_SWIZZLE = re.compile(r"[xyzw]{2,4}|[rgba]{2,4}")
_ASSIGNMENT = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})


def number(text: str) -> str:
    """A literal as C++: one without suffix is a float, never a double; `h` is half, `bf` is bfloat."""
    match = _FLOAT.fullmatch(text)
    if _INTEGER_HALF.fullmatch(text) and not text.startswith("0x"):
        return f"half({text[:-1]}.0f)"
    if not match:
        return text
    suffix = match["suffix"].lower()
    if suffix == "h":
        return f"half({text[:-1]}f)"
    if suffix == "bf":
        return f"bfloat({text[:-2]}f)"
    return text if suffix else f"{text}f"


def rewrite_words(program: Program, attributes: Attributes, scopes: Scopes, edits: Edits) -> None:
    """Address spaces go, `constant` becomes const, literals lose their doubles, `v.xy` becomes a call."""
    members = StructMembers(program)
    edits.erase(attributes.inside)
    for index, token in enumerate(program.code):
        if token.text == "constant":
            edits.replace(index, _constant(program, scopes, index))
        elif token.text in SPACES or token.text == "kernel":
            edits.replace(index, "")
        elif token.kind == "number":
            edits.replace(index, number(token.text))
        elif _is_swizzle(program, index) and not members.is_member(index):
            edits.replace(index, _swizzle(token.text, program.text(index + 1) in _ASSIGNMENT))


def _is_swizzle(program: Program, index: int) -> bool:
    accessed = program.text(index - 1) in (".", "->") and program.text(index + 1) != "("
    return accessed and bool(_SWIZZLE.fullmatch(program.text(index)))


def _swizzle(text: str, written: bool) -> str:
    letters = "xyzw" if text[0] in "xyzw" else "rgba"
    indices = ",".join(str(letters.index(letter)) for letter in text)
    return f"template {'swzref' if written else 'swz'}<{indices}>()"


def _constant(program: Program, scopes: Scopes, index: int) -> str:
    """`const`, unless the type has one already.

    A variable outside functions also becomes constinit: its value must be known to the compiler, so that loading
    a kernel runs none of its code.
    """
    around: set[str] = set()
    for step in (-1, 1):
        place = index + step
        while program.kind(place) == "name" or program.text(place) == "::":
            around.add(program.text(place))
            place += step
    if "constexpr" in around:
        return ""
    word = "" if "const" in around else "const"
    return f"constinit {word}" if scopes.kind_at(index) == "namespace" and scopes.is_variable(index) else word
