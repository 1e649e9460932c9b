"""What a checkpoint folder holds, told from names, JSON files and safetensors headers; no tensor is read."""

import json
import math
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from course.checkpoint_json import Config, Index
from course.errors import CourseError

STORED_NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
LONGEST_HEADER = 100 * 2**20  # the limit of the safetensors library itself
T = TypeVar("T")


@dataclass(frozen=True)
class Contents:
    """Parameters as the model uses them (unpacked), and the float format that most of them are stored in."""

    parameters: int
    dtype: str


def read_json(path: Path) -> dict:
    """The object in a JSON file, {} where there is no file. Raises CourseError for anything else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise CourseError(f"cannot read {path} ({error}): download or copy it again") from None
    if not isinstance(value, dict):
        raise CourseError(f"{path} holds no JSON object: download or copy it again")
    return value


def read_as(kind: type[T], path: Path) -> T:
    """What `kind` names of a JSON file. Raises CourseError, naming file and key, for a value of another type."""
    try:
        return msgspec.convert(read_json(path), kind)
    except msgspec.ValidationError as error:
        raise CourseError(f"{path}: {str(error).replace('`', '')}: mend it or download it again") from None


def read_config(folder: Path) -> Config:
    """The folder's config.json."""
    return read_as(Config, folder / "config.json")


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that belong to the checkpoint, whether or not they are there."""
    index = read_as(Index, folder / "model.safetensors.index.json")
    names = {"model.safetensors"} if index.weight_map is None else set(index.weight_map.values())
    return [folder / name for name in sorted(names)]


def is_complete(folder: Path) -> bool:
    """Whether config.json and all weights are there, as after a download that was not interrupted."""
    return (folder / "config.json").is_file() and all(file.is_file() for file in weight_files(folder))


def contents(folder: Path) -> Contents:
    """Count the parameters. Raises CourseError, naming the file, for one that is missing, damaged or cut off."""
    packing = read_config(folder).quantization
    bits = packing.bits if packing else None
    parameters, formats = 0, Counter()
    for file in weight_files(folder):
        for name, (stored, count) in _header(file).items():
            if stored in STORED_NAMES:
                formats[STORED_NAMES[stored]] += count
            if bits and stored == "U32":
                parameters += count * 32 // bits
            elif not name.endswith((".scales", ".biases")):
                parameters += count
    return Contents(parameters, formats.most_common(1)[0][0] if formats else "float32")


def _header(file: Path) -> dict[str, tuple[str, int]]:
    """Name -> (format, elements) of every tensor in one file."""
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > LONGEST_HEADER:
                raise ValueError(f"a header of {length} bytes")
            header = json.loads(stream.read(length))
        header.pop("__metadata__", None)
        end = 8 + length + max(tensor["data_offsets"][1] for tensor in header.values())
        if file.stat().st_size < end:
            raise ValueError(f"{file.stat().st_size} bytes instead of {end}")
        return {name: (tensor["dtype"], math.prod(tensor["shape"])) for name, tensor in header.items()}
    except FileNotFoundError:
        raise CourseError(f"{file} is missing: give a folder with config.json and its safetensors files") from None
    except OSError as error:
        raise CourseError(f"cannot read {file} ({error.strerror}): give a folder that you may read") from None
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseError(f"{file} is damaged or was cut off ({error}): download or copy it again") from None
