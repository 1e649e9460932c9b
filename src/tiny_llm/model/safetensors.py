"""The files of a checkpoint: which there are, and how one is laid out.

A safetensors file is 8 bytes with the length of a header (little-endian), the header, and the values of all tensors
one after another. The header is JSON: {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ...},
with offsets counted from the end of the header. Knows nothing of models.
"""

import json
from pathlib import Path

import mlx.core as mx


def read_json(path: Path) -> dict:
    """The object in a JSON file. Raises FileNotFoundError, or ValueError where there is none in it."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: {path.parent} is not a checkpoint folder")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not an object with keys")
    return content


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a checkpoint: the shards of its index, or the one file.

    Raises FileNotFoundError for a file that is missing, ValueError for an index that names none.
    """
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.exists():
        try:
            names = sorted(set(read_json(index)["weight_map"].values()))
        except (KeyError, AttributeError, TypeError):
            raise ValueError(f"{index} has no weight_map of tensors to files: download it again") from None
    for name in names:
        if not (folder / name).exists():
            raise FileNotFoundError(f"{folder / name} is missing: download the checkpoint again")
    return [folder / name for name in names]


# ANCHOR: header
def read_header(path: Path) -> dict[str, dict]:
    """What one file says of its tensors. Raises ValueError where it is cut short or no safetensors file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        header_size = int.from_bytes(file.read(8), "little")
        header = file.read(min(header_size, size))
    if len(header) < header_size or size < 8:
        raise ValueError(f"{path} is damaged: its header needs {8 + header_size} bytes, the file has {size}")
    try:
        tensors = json.loads(header)
        tensors.pop("__metadata__", None)
        end = max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise ValueError(f"{path} is damaged: its header is not that of a safetensors file") from None
    if 8 + header_size + end > size:
        raise ValueError(f"{path} is truncated: it needs {8 + header_size + end} bytes and has {size}")
    return tensors
    # ANCHOR_END: header


def read_safetensors(path: Path) -> dict[str, mx.array]:
    """The named arrays of one file, which are read when first used. Raises ValueError where the file is damaged."""
    read_header(path)
    try:
        return mx.load(str(path))
    except RuntimeError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
