"""Bytes from a learner's process are read within bounds, whatever they are."""

import json
import resource
import struct
import tracemalloc

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from course import codec
from course.codec import pack, unpack

_SAMPLE = pack(
    {"a": [mx.ones((2, 3)), np.arange(4), np.float32(2), b"xyz", None], 7: (1.5, "é", mx.ones(3, mx.bfloat16))}
)


def message(text: str, arrays: bytes = b"") -> bytes:
    return struct.pack("<I", len(text)) + text.encode() + arrays


def refused(data: bytes) -> str:
    with pytest.raises(ValueError, match="not a packed value") as caught:
        unpack(data)
    return str(caught.value)


def header(description: str) -> bytes:
    """An array that consists of a header only."""
    text = description.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_changed_bytes_give_a_value_or_a_value_error(data: st.DataObject):
    changed = bytearray(_SAMPLE)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 1))
        match data.draw(st.sampled_from(("set", "cut", "insert"))):
            case "set":
                changed[place] = data.draw(st.integers(0, 255))
            case "cut":
                del changed[place : place + data.draw(st.integers(1, 30))]
            case "insert":
                changed[place:place] = data.draw(st.binary(min_size=1, max_size=9))
    try:
        unpack(bytes(changed))
    except ValueError:
        return


_NODES = st.recursive(
    st.none()
    | st.integers()
    | st.text()
    | st.sampled_from([["np"], ["scalar"], ["mx", "float32"], ["mx", "eval"], []]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(st.sampled_from(["list", "tuple", "dict", "bytes", "mx"]), inner).map(list)
    ),
    max_leaves=8,
)
_HEADERS = st.builds(
    "{{'descr': '{}', 'fortran_order': {}, 'shape': ({},)}}".format,
    st.sampled_from(["<f4", "<i8", "|O", "|S0", "<U0", "|V0", "<c16", "M8[s]", "|b1", "('<f4', 3)"]),
    st.booleans(),
    st.sampled_from(["", "0", "3", "-1", "2**70", "4611686018427387904", "0, 4611686018427387904", "1," * 40, "True"]),
)


@settings(max_examples=400, deadline=None)
@given(_NODES, st.lists(_HEADERS, max_size=2), st.binary(max_size=16))
@example(["mx", "float32"], ["{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904)}"], b"")
def test_forged_structures_give_a_value_or_a_value_error(node: object, headers: list[str], rest: bytes):
    try:
        unpack(message(json.dumps(node), b"".join(map(header, headers)) + rest))
    except ValueError:
        return


@pytest.mark.parametrize(
    ("text", "arrays"),
    [
        ('["list", [["np"], ["np"]]]', pack(np.ones(3))[10:]),
        ('["np"]', header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}")),
        ("[" * 1_000_000, b""),
        ('["list",[' * 10_000 + "1" + "]]" * 10_000, b""),
        ("9" * 5000, b""),
        ('["mx", "load"]', pack(np.ones(3))[10:]),
        ('["dict", [[["list", []], 1]]]', b""),
        ("null", b"more"),
        ('["bytes", "****"]', b""),
    ],
    ids=[
        "one array twice",
        "array of 8 TB",
        "deep",
        "deep lists",
        "long number",
        "no dtype",
        "bad key",
        "rest",
        "base64",
    ],
)
def test_forgeries_are_refused_at_once(text: str, arrays: bytes):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(message(text, arrays))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_structure_has_a_size():
    assert f"are more than {codec.MOST_TEXT}" in refused(message('"' + "x" * codec.MOST_TEXT + '"'))


def test_memory_is_a_small_multiple_of_the_message():
    text = "[" + ",".join(['["list",[]]'] * 100_000) + "]"
    data = message('["list",' + text + "]")
    tracemalloc.start()
    unpack(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * len(data)
