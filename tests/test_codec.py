"""Plain values survive the codec unchanged; everything else is refused by name and place."""

import io
import math
import struct
from collections import OrderedDict
from enum import IntEnum, StrEnum

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.codec import NotPlain, pack, unpack

_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
_KEYS = st.integers() | st.text() | st.tuples(st.integers(), st.text())
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(_KEYS, inner),
    max_leaves=20,
)


def alike(a: object, b: object) -> bool:
    """Equality that also tells True from 1 and a list from a tuple."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a.items(), b.items(), strict=True))
    return a == b


@settings(max_examples=200, deadline=None)
@given(_VALUES)
def test_round_trip_of_containers(value: object):
    assert alike(unpack(pack(value)), value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, -0.0, 1e-320, 2**200, "\ud800", "\0", b"", [], (), {}])
def test_round_trip_of_edges(value: object):
    assert repr(unpack(pack(value))) == repr(value)


def test_nan_survives():
    assert math.isnan(unpack(pack({"x": [math.nan]}))["x"][0])


_INTEGERS = ["bool_", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
_DTYPES = [*_INTEGERS, "float16", "bfloat16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("name", _DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_mlx_arrays_keep_dtype_shape_and_values(name: str, shape: tuple[int, ...]):
    with mx.stream(mx.cpu):
        array = (mx.arange(math.prod(shape) or 1)[: math.prod(shape)].reshape(shape) * 1.5).astype(getattr(mx, name))
        copy = unpack(pack([array]))[0]
        assert isinstance(copy, mx.array)
        assert (copy.dtype, copy.shape) == (array.dtype, array.shape)
        assert mx.array_equal(copy, array)


def test_bfloat16_keeps_its_bits():
    bits = mx.array([0x7FC1, 0xFF80, 0x0001, 0x8000, 0x3F80], dtype=mx.uint16)
    assert mx.array_equal(unpack(pack(bits.view(mx.bfloat16))).view(mx.uint16), bits)


def test_numpy_arrays_and_scalars():
    values = [np.arange(3, dtype=np.int8), np.float32(1.5), np.bool_(True), np.array(["a"]), np.zeros((0, 2))]
    for value, copy in zip(values, unpack(pack(values)), strict=True):
        assert type(copy) is type(value)
        assert copy.dtype == value.dtype
        assert np.array_equal(copy, value)


def test_copies_are_independent():
    array, items = np.zeros(2), [1]
    copy = unpack(pack([array, items]))
    copy[0][0] = 1
    copy[1].append(2)
    assert array[0] == 0
    assert items == [1]


def test_packing_evaluates():
    with pytest.raises(Exception, match="boom"):
        pack(mx.vmap(lambda x: (_ for _ in ()).throw(ValueError("boom")))(mx.ones(2)))


def test_subclasses_become_plain():
    class Reason(StrEnum):
        STOP = "stop"

    class Number(IntEnum):
        ONE = 1

    copy = unpack(pack([Reason.STOP, Number.ONE, OrderedDict(a=1)]))
    assert [type(value) for value in copy] == [str, int, dict]
    assert copy == ["stop", 1, {"a": 1}]


class _Thing:
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (_Thing(), "value is a .*_Thing"),
        ({"a": [1, _Thing()]}, r"value\['a'\]\[1\] is a .*_Thing"),
        ({(1, _Thing): 2}, "key .* of value"),
        ([{1, 2}], r"value\[0\] is a set"),
        ((x for x in "ab"), "value is a generator"),
        (mx.float32, "value is a mlx.core.Dtype"),
        (np.array([_Thing()]), "value is a numpy array of Python objects"),
        (1j, "value is a complex"),
        (_Thing, "value is a type"),
    ],
)
def test_other_values_are_refused_by_type_and_place(value: object, text: str):
    with pytest.raises(NotPlain, match=text):
        pack(value)


def test_a_value_that_contains_itself_is_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(NotPlain, match="contains itself"):
        pack(loop)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        b"\xff\xff\xff\xff{}",
        b"\x02\0\0\0[]",
        b'\x06\0\0\0["np"]',
        b'\x08\0\0\0["evil"]',
        pack(mx.ones(3))[:-30],
        b"\x04\0\0\0nullPK\x03\x04garbage",
    ],
)
def test_other_bytes_are_refused(data: bytes):
    with pytest.raises(ValueError, match=r"\S"):
        unpack(data)


def test_pickles_are_never_read():
    text, arrays = b'["np"]', io.BytesIO()
    np.lib.format.write_array(arrays, np.array([_Thing()], dtype=object), version=(1, 0))
    with pytest.raises(ValueError, match="pickle"):
        unpack(struct.pack("<I", len(text)) + text + arrays.getvalue())
