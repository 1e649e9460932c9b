"""What a C++ compiler's message means for a Metal source, and what to do about it."""

import re
from difflib import get_close_matches

from course.emulator.translate.attributes import ARGUMENTS

_FLAG = r" \[-W[^\]]*\]$"
_SAME_TYPE = "Metal has `{0}` only for arguments of one type: convert them, e.g. `{0}(float(a), b)`"
_BFLOAT = "Metal narrows to bfloat only when told: `bfloat16_t(value)`"
_READ_ONLY = "inputs, constant and const memory cannot be written"
_ELEMENTS = "no vector is made of these: give one number per element, of its type"
_VECTOR = "Metal converts vectors only when told: e.g. `float3(value)`"

# (what the compiler says, what it means; {0} is the first group)
_RULES: tuple[tuple[str, str], ...] = (
    (r"(?:overloaded|function for call to) '(?:metal::)?vec\b", _ELEMENTS),
    (r"no matching constructor for initialization of '(?:\w+[234]|(?:metal::)?vec<.*)'", _ELEMENTS),
    (r"call of overloaded '(\w+)\(.*is ambiguous", _SAME_TYPE),
    (r"call to '(\w+)' is ambiguous", _SAME_TYPE),
    (r"no matching function for call to '(max|min|clamp|pow|fma|mix|select|fmax|fmin)\b", _SAME_TYPE),
    (r"conversion from '.*' to (?:non-scalar type )?'(?:metal::)?bfloat'", _BFLOAT),
    (r"cannot convert '.*' to '(?:metal::)?bfloat'", _BFLOAT),
    (r"no match for 'operator='.*operand types are '(?:metal::)?bfloat(?:16_t)?'", _BFLOAT),
    (r"no viable overloaded '='", "the two sides have different types: if one is a bfloat, write `bfloat16_t(value)`"),
    (r"conversion from '(?:metal::)?vec<.*to (?:non-scalar type )?'(?:metal::)?vec<", _VECTOR),
    (r"assignment of read-only|(?:in|de)crement of read-only|is not assignable", _READ_ONLY),
    (r"invalid conversion from 'const (\w+)\s*\*.*to '\w+\s*\*'", "it points to const memory: make the pointer const"),
    (r"expected '?;'?|expected ',' or ';'", "a ';' is missing here or on the line before"),
    (r"variable length array|variable-sized object", "the size of an array must be known to the compiler"),
    (r"no return statement in function|does not return a value", "every path must return a value"),
    (r"does not have a constant initializer", "a constant outside functions needs a value known to the compiler"),
    (r"narrowing conversion|cannot be narrowed", "convert it, e.g. `int(value)`"),
)


def explain(text: str) -> str:
    """The message, and the fix where it is one of those that learners meet."""
    text = text.replace("\u2018", "'").replace("\u2019", "'")
    missing = re.search(r"'(\w+)' (?:was not declared in this scope|has not been declared)", text) or re.search(
        r"use of undeclared identifier '(\w+)'", text
    )
    if missing:
        return f"unknown name `{missing[1]}`: {_unknown(missing[1])}"
    for pattern, fix in _RULES:
        match = re.search(pattern, text)
        if match:
            return f"{re.sub(_FLAG, '', text)}: {fix.format(*match.groups())}"
    return re.sub(_FLAG, "", text)


def _unknown(name: str) -> str:
    similar = [known for known in ARGUMENTS if known.startswith(name)] or get_close_matches(name, ARGUMENTS, 1, 0.7)
    if name.endswith(("_shape", "_strides", "_ndim")):
        return "it exists only for an input with at least one dimension, spelled as in input_names"
    return f"did you mean {similar[0]}?" if similar else "declare it, or check its spelling and template arguments"
