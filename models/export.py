"""Write weights as Hugging Face files in bf16, and read them.

This module knows the safetensors file format; it needs numpy alone.
"""

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from models.config import Shape
from models.tokenizer import SPECIAL


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Round float32 to bfloat16, to nearest with ties to even; the result holds the bits as uint16."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def save_bfloat16(weights: dict[str, np.ndarray], path: Path) -> None:
    """Write float32 `weights` as bf16 safetensors: header length, JSON header, then the data in name order."""
    header: dict[str, object] = {"__metadata__": {"format": "mlx"}}
    blobs, offset = [], 0
    for name in sorted(weights):
        blob = to_bfloat16(weights[name]).tobytes()
        header[name] = {
            "dtype": "BF16",
            "shape": list(weights[name].shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"".join(blobs))


def load_bfloat16(path: Path) -> dict[str, np.ndarray]:
    """Read bf16 safetensors as float32 arrays by name."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    weights = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            bits = np.frombuffer(data[start + begin : start + end], dtype=np.uint16).astype(np.uint32) << 16
            weights[name] = bits.view(np.float32).reshape(entry["shape"])
    return weights


def token_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """The id of each special token."""
    return {token: tokenizer.token_to_id(token) for token in SPECIAL}


def save_model(weights: dict[str, np.ndarray], shape: Shape, tokenizer: Tokenizer, folder: Path) -> None:
    """Write `model.safetensors`, `config.json` and `generation_config.json` into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    save_bfloat16(weights, folder / "model.safetensors")
    tokens = token_ids(tokenizer)
    config = json.dumps(shape.hugging_face(tokens), indent=1)
    (folder / "config.json").write_text(config + "\n", encoding="utf-8")
    ends = [tokens["<|im_end|>"], tokens["<|endoftext|>"]]
    generation = {"do_sample": False, "eos_token_id": ends, "pad_token_id": tokens["<|endoftext|>"]}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=1) + "\n", encoding="utf-8")
