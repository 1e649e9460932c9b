"""Plain values as bytes and back: JSON for the structure, npz for the arrays, never pickle.

The bytes may come from a learner's program, so reading them runs no code. Packing an array evaluates it.

Layout: 4 bytes length of the JSON text (little-endian), the JSON text, the npz file (absent without arrays).
Numbers, strings, booleans and None stand for themselves; everything else is `[tag, ...]`."""

import base64
import io
import json
import struct

import mlx.core as mx
import numpy as np

PLAIN = "None, bool, int, float, str, bytes, list, tuple, dict, mx.array, np.ndarray and numpy scalars"


class NotPlain(TypeError):
    """A value that cannot be copied; the text names its type and where it is."""


def pack(value: object) -> bytes:
    """Bytes of a plain value; raises `NotPlain`."""
    writer = _Writer()
    try:
        text = json.dumps(writer.encode(value, "value")).encode()
    except RecursionError:
        raise NotPlain("value is nested too deeply or contains itself") from None
    archive = io.BytesIO()
    if writer.arrays:
        np.savez(archive, allow_pickle=False, **writer.arrays)
    return struct.pack("<I", len(text)) + text + archive.getvalue()


def unpack(data: bytes) -> object:
    """The value that `pack` was given; raises ValueError for bytes that are no such value."""
    try:
        (length,) = struct.unpack("<I", data[:4])
        text, archive = data[4 : 4 + length], data[4 + length :]
        arrays = dict(np.load(io.BytesIO(archive), allow_pickle=False)) if archive else {}
        return _decode(json.loads(text), arrays)
    except Exception as error:  # the bytes may be anything at all
        raise ValueError(f"not a packed value: {type(error).__name__}: {error}") from error


class _Writer:
    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: object, path: str) -> object:
        match value:
            case np.ndarray() | np.generic():
                return ["scalar" if isinstance(value, np.generic) else "np", self._store(np.asarray(value), path)]
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
                return ["mx", self._store(raw, path), str(value.dtype).removeprefix("mlx.core.")]
            case list() | tuple():
                tag = "list" if isinstance(value, list) else "tuple"
                return [tag, [self.encode(item, f"{path}[{i}]") for i, item in enumerate(value)]]
            case dict():
                items = [
                    [self.encode(k, f"key {k!r} of {path}"), self.encode(v, f"{path}[{k!r}]")] for k, v in value.items()
                ]
                return ["dict", items]
        raise NotPlain(f"{path} is a {_type_name(value)}: use plain values ({PLAIN})")

    def _store(self, array: np.ndarray, path: str) -> str:
        if array.dtype.hasobject:
            raise NotPlain(f"{path} is a numpy array of Python objects: use plain values ({PLAIN})")
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _decode(node: object, arrays: dict[str, np.ndarray]) -> object:
    match node:
        case None | bool() | int() | float() | str():
            return node
        case ["np", name]:
            return arrays[name]
        case ["scalar", name]:
            return arrays[name][()]
        case ["mx", name, "bfloat16"]:
            return mx.array(arrays[name]).view(mx.bfloat16)
        case ["mx", name, dtype]:
            return mx.array(arrays[name], dtype=getattr(mx, "bool_" if dtype == "bool" else dtype))
        case ["bytes", text]:
            return base64.b64decode(text)
        case ["list", items]:
            return [_decode(item, arrays) for item in items]
        case ["tuple", items]:
            return tuple(_decode(item, arrays) for item in items)
        case ["dict", items]:
            return {_decode(key, arrays): _decode(item, arrays) for key, item in items}
    raise ValueError(f"unknown node {str(node)[:60]}")
