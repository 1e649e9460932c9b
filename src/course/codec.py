"""Plain values as bytes and back: JSON for the structure, NumPy's npy format for the arrays, never pickle.

The bytes may come from a learner's program, so reading them runs no code, and takes no more memory than a small
multiple of their number: nothing is compressed, and no array is used twice. Packing an array evaluates it.

Layout: 4 bytes length of the JSON text (little-endian), the JSON text, then the arrays in the order in which the text
names them. Numbers, strings, booleans and None stand for themselves; everything else is `[tag, ...]`."""

import base64
import io
import json
import math
import struct

import mlx.core as mx
import numpy as np
from numpy.lib import format as npy

PLAIN = "None, bool, int, float, str, bytes, list, tuple, dict, mx.array, np.ndarray and numpy scalars"

MOST_TEXT = 16 << 20
"""bytes of JSON text: a value takes about thirty times as much"""
_MOST_HEADER = 10_000
_INTEGERS = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_DTYPES = frozenset((*_INTEGERS, "float16", "float32", "float64", "complex64"))


class NotPlain(TypeError):
    """A value that cannot be copied; the text names its type and where it is."""


def pack(value: object) -> bytes:
    """Bytes of a plain value; raises `NotPlain`."""
    writer = _Writer()
    try:
        text = json.dumps(writer.encode(value, "value")).encode()
    except RecursionError:
        raise NotPlain("value is nested too deeply or contains itself") from None
    return struct.pack("<I", len(text)) + text + writer.arrays.getvalue()


def unpack(data: bytes) -> object:
    """The value that `pack` was given; raises ValueError for bytes that are no such value."""
    try:
        (length,) = struct.unpack("<I", data[:4])
        if length > min(MOST_TEXT, len(data) - 4):
            raise ValueError(f"{length} bytes of structure are more than {min(MOST_TEXT, len(data) - 4)}")
        arrays = _Arrays(data, 4 + length)
        value = _decode(json.loads(data[4 : 4 + length]), arrays)
        arrays.end()
        return value
    except Exception as error:  # the bytes may be anything at all
        raise ValueError(f"not a packed value: {type(error).__name__}: {error}") from error


class _Writer:
    def __init__(self) -> None:
        self.arrays = io.BytesIO()

    def encode(self, value: object, path: str) -> object:
        match value:
            case np.ndarray() | np.generic():
                self._store(np.asarray(value), path)
                return ["scalar" if isinstance(value, np.generic) else "np"]
            case None | bool():
                return value
            case int():
                return int(value)
            case float():
                return float(value)
            case str():
                return str(value)
            case bytes():
                return ["bytes", base64.b64encode(value).decode()]
            case mx.array():
                mx.eval(value)  # np.array alone would hide what a kernel throws, and give what happens to be in memory
                raw = np.array(value.view(mx.uint16) if value.dtype == mx.bfloat16 else value)
                self._store(raw, path)
                return ["mx", str(value.dtype).removeprefix("mlx.core.")]
            case list() | tuple():
                tag = "list" if isinstance(value, list) else "tuple"
                return [tag, [self.encode(item, f"{path}[{i}]") for i, item in enumerate(value)]]
            case dict():
                items = [
                    [self.encode(k, f"key {k!r} of {path}"), self.encode(v, f"{path}[{k!r}]")] for k, v in value.items()
                ]
                return ["dict", items]
        raise NotPlain(f"{path} is a {_type_name(value)}: use plain values ({PLAIN})")

    def _store(self, array: np.ndarray, path: str) -> None:
        if array.dtype.hasobject:
            raise NotPlain(f"{path} is a numpy array of Python objects: use plain values ({PLAIN})")
        npy.write_array(self.arrays, array, version=(1, 0), allow_pickle=False)


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class _Arrays:
    """The arrays behind the JSON text, one after another."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._file = data, io.BytesIO(data)
        self._file.seek(start)

    def next(self) -> np.ndarray:
        if npy.read_magic(self._file) != (1, 0):
            raise ValueError("an array of another version")
        shape, fortran, dtype = npy.read_array_header_1_0(self._file, max_header_size=_MOST_HEADER)
        if dtype.hasobject:
            raise ValueError("an array of Python objects would need pickle")
        count = math.prod(shape)
        if not count:
            return np.zeros(shape, dtype)
        array = np.frombuffer(self._data, dtype, count, self._file.tell())  # refuses what is not there
        self._file.seek(count * dtype.itemsize, io.SEEK_CUR)
        return array.reshape(shape, order="F" if fortran else "C").copy()

    def end(self) -> None:
        """Raises ValueError if some were not asked for."""
        if self._file.tell() != len(self._data):
            raise ValueError("bytes are left behind the last array")


def _decode(node: object, arrays: _Arrays) -> object:
    match node:
        case None | bool() | int() | float() | str():
            return node
        case ["np"]:
            return arrays.next()
        case ["scalar"]:
            return arrays.next()[()]
        case ["mx", "bfloat16"]:
            return mx.array(arrays.next()).view(mx.bfloat16)
        case ["mx", str(dtype)] if dtype in _DTYPES:
            return mx.array(arrays.next(), dtype=getattr(mx, "bool_" if dtype == "bool" else dtype))
        case ["bytes", str(text)]:
            return base64.b64decode(text, validate=True)
        case ["list", list(items)]:
            return [_decode(item, arrays) for item in items]
        case ["tuple", list(items)]:
            return tuple(_decode(item, arrays) for item in items)
        case ["dict", list(items)]:
            return {_decode(key, arrays): _decode(item, arrays) for key, item in items}
    raise ValueError(f"unknown node {str(node)[:60]}")
