"""What a C++ compiler's message means for a Metal source, and what to do about it."""

import re

from course.emulator.translate.attributes import ARGUMENTS

_RULES: tuple[tuple[str, str], ...] = (
    (r"call of overloaded '(\w+)\(.*is ambiguous", "the arguments of `{0}` have different types: convert one of them"),
    (
        r"no matching function for call to '(max|min|clamp|pow|fma|mix|select|fmax|fmin)\(",
        "Metal has `{0}` only for arguments of one type: convert them, e.g. `{0}(float(a), b)`",
    ),
    (
        r"conversion from '.*' to (?:non-scalar type )?'bfloat'",
        "Metal narrows to bfloat only when told: `bfloat16_t(value)`",
    ),
    (r"cannot convert '.*' to '(?:metal::)?bfloat'", "Metal narrows to bfloat only when told: `bfloat16_t(value)`"),
    (
        r"assignment of read-only|increment of read-only|decrement of read-only",
        "constant and const memory cannot be written",
    ),
    (
        r"invalid conversion from 'const (\w+)\*.*to '\w+\*'",
        "it points to constant memory: declare the pointer `const`",
    ),
    (r"expected '?;'?|expected ',' or ';'", "a ';' is missing here or on the line before"),
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
            return f"{text}: {fix.format(*match.groups())}"
    return text


def _unknown(name: str) -> str:
    similar = [known for known in ARGUMENTS if name in known or known in name]
    if name.endswith(("_shape", "_strides", "_ndim")):
        return "it exists only for an input with at least one dimension, spelled as in input_names"
    return f"did you mean {similar[0]}?" if similar else "declare it, or check its spelling and template arguments"
