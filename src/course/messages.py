"""What the grader asks a process that runs `observe`, and what that answers: values or a failure.

A request has a number, which its answer repeats: else one that comes too late, or twice, would be taken for the next.
Requests are packed as `{"number", "case", "inputs", "forbidden", "timeout"}`; an answer is one letter, the number and
a packed value."""

import secrets
import struct

from course.case import Case
from course.codec import pack, unpack
from course.failure import Failure, from_child
from course.guard import ForbiddenNames

_HEAD = struct.Struct("<cQ")
_VALUES, _FAILURE = b"v", b"f"


def request(case: Case, inputs: object, forbidden: ForbiddenNames) -> tuple[int, bytes]:
    """The number of a new request, and its bytes. Raises `NotPlain`."""
    number = secrets.randbits(63)
    names = {name: list(files) for name, files in forbidden.items()}
    asked = {"number": number, "case": case.name, "inputs": inputs, "forbidden": names, "timeout": case.timeout}
    return number, pack(asked)


def values(number: int, value: object) -> bytes:
    """The answer of one that got through. Raises `NotPlain`."""
    return _HEAD.pack(_VALUES, number) + pack(value)


def failure(number: int, failed: Failure) -> bytes:
    """The answer of one that did not."""
    return _HEAD.pack(_FAILURE, number) + pack(failed.plain())


def answer(data: bytes, number: int) -> tuple[object] | Failure:
    """The values in a tuple, or what went wrong. Raises ValueError for what is no answer to request `number`."""
    if len(data) < _HEAD.size:
        raise ValueError("it is too short")
    sign, answered = _HEAD.unpack_from(data)
    if answered != number:
        raise ValueError("it answers what nobody had asked for")
    value = unpack(data[_HEAD.size :])
    return (value,) if sign == _VALUES else from_child(value)
