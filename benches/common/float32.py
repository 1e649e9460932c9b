"""A checkpoint with the numbers of another one, unpacked and in float32, for programs that run what is stored."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mlx.core as mx

from course.folder import read_json
from tiny_llm_ref.model.checkpoint import load_config, load_weights


@contextmanager
def float32_copy(folder: Path) -> Iterator[Path]:
    """A temporary folder with the float32 copy, tokenizer included."""
    with tempfile.TemporaryDirectory(prefix="float32-") as name:
        copy = Path(name)
        for file in folder.glob("*token*.json"):
            shutil.copy(file, copy)
        config = {k: v for k, v in read_json(folder / "config.json").items() if not k.startswith("quantization")}
        (copy / "config.json").write_text(json.dumps(config | {"torch_dtype": "float32"}))
        weights = load_weights(folder, load_config(folder), mx.float32)
        mx.save_safetensors(str(copy / "model.safetensors"), dict(weights), {"format": "mlx"})
        yield copy
