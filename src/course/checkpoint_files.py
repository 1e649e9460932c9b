"""The weight files of a checkpoint as bytes, whole, in shards or packed, written without MLX's own writer.

So a test can hand a checkpoint to the code under test as plain values, and damage it first.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mlx.core as mx
import numpy as np

STORED = {
    mx.float32: "F32",
    mx.float16: "F16",
    mx.bfloat16: "BF16",
    mx.uint32: "U32",
    mx.int32: "I32",
    mx.uint8: "U8",
}


def wide(x: mx.array) -> np.ndarray:
    """The values of an array of any dtype, in float64."""
    return np.array(x.astype(mx.float32)).astype(np.float64)


def safetensors(tensors: dict[str, mx.array]) -> bytes:
    """A file as Hugging Face writes it: 8 bytes length, a JSON header padded with spaces, then the values."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    values = b""
    for name, x in tensors.items():
        raw = np.array(x.view(mx.uint16) if x.dtype == mx.bfloat16 else x).tobytes()
        offsets = [len(values), len(values) + len(raw)]
        header[name] = {"dtype": STORED[x.dtype], "shape": list(x.shape), "data_offsets": offsets}
        values += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + values


def files_of(tensors: dict[str, mx.array], shards: int = 1) -> dict[str, bytes]:
    """The weight files of a checkpoint, by name."""
    if shards == 1:
        return {"model.safetensors": safetensors(tensors)}
    names = list(tensors)
    parts = {f"model-{i + 1:05}-of-{shards:05}.safetensors": names[i::shards] for i in range(shards)}
    index = {"metadata": {}, "weight_map": {name: file for file, part in parts.items() for name in part}}
    files = {file: safetensors({name: tensors[name] for name in part}) for file, part in parts.items()}
    return files | {"model.safetensors.index.json": json.dumps(index).encode()}


@contextmanager
def folder_of(files: dict[str, bytes]) -> Iterator[Path]:
    """A folder that holds these files for a while."""
    with tempfile.TemporaryDirectory() as name:
        for file, content in files.items():
            (Path(name) / file).write_bytes(content)
        yield Path(name)


def packed(
    tensors: dict[str, mx.array], group_size: int, bits: int, leave: tuple[str, ...] = ()
) -> dict[str, mx.array]:
    """Every matrix but those named in `leave`, as MLX packs it: weight, scales and biases."""
    result = {}
    for name, x in tensors.items():
        if x.ndim == 1 or name in leave:
            result[name] = x
        else:
            parts = mx.quantize(x, group_size=group_size, bits=bits)
            stem = name.removesuffix("weight")
            result |= {stem + part: array for part, array in zip(("weight", "scales", "biases"), parts, strict=True)}
    return result


def unpacked(tensors: dict[str, mx.array], bits: int) -> dict[str, np.ndarray]:
    """The weights in float64. The first value of a row stands in the lowest bits of its first word."""
    result = {}
    for name, x in tensors.items():
        stem = name.removesuffix("weight")
        if name.endswith("weight") and stem + "scales" in tensors:
            words, shifts = np.array(x)[..., None], np.arange(0, 32, bits, dtype=np.uint32)
            levels = (words >> shifts & (2**bits - 1)).reshape(len(x), -1).astype(np.float64)
            scales, biases = wide(tensors[stem + "scales"]), wide(tensors[stem + "biases"])
            groups = levels.reshape(*scales.shape, -1)
            result[name] = (groups * scales[..., None] + biases[..., None]).reshape(levels.shape)
        elif name.endswith("weight"):
            result[name] = wide(x)
    return result
