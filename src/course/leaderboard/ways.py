"""Which ways a submission may have to run the embedded model, and the float64 model that judges each."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mlx.core as mx
import numpy as np

from course.checkpoint_files import wide
from course.checkpoints import Shape
from course.folder import read_config, weight_files
from course.models import EMBEDDED
from course.qwen3_float64 import Qwen3Float64
from course.variant import COMPILED, OPS, UNPACKED

FOLDERS = {False: EMBEDDED["tiny"], True: EMBEDDED["tiny-4bit"]}
"""The same model, by whether its matrices are packed."""


@dataclass(frozen=True)
class Way:
    """A table of operations and a cache."""

    ops: str
    cache: str

    @property
    def packed(self) -> bool:
        return self.ops not in UNPACKED

    @property
    def compiled(self) -> bool:
        """Whether it needs the submission's C++ library."""
        return self.ops in COMPILED

    @property
    def folder(self) -> Path:
        return FOLDERS[self.packed]

    def plain(self) -> dict[str, object]:
        """What the workload gets."""
        return {"folder": str(self.folder), "ops": self.ops, "packed": self.packed, "cache": self.cache}

    def __str__(self) -> str:
        return f"--ops {self.ops} --cache {self.cache}"


WAYS = tuple(Way(ops, cache) for ops in reversed(OPS) if not ops.startswith("metal") for cache in ("dense", "none"))
"""All but those whose kernels the emulator runs, whose speed says nothing. The most advanced come first."""


@cache
def oracle(packed: bool) -> Qwen3Float64:
    """The embedded model in float64, from the very numbers that the files hold."""
    folder = FOLDERS[packed]
    config = read_config(folder)
    stored = {name: array for file in weight_files(folder) for name, array in mx.load(str(file)).items()}
    shape = Shape(
        hidden=config.hidden_size,
        layers=config.num_hidden_layers,
        intermediate=config.intermediate_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        vocab=config.vocab_size,
        tied=config.tie_word_embeddings,
        rope_theta=config.rope_theta,
        rms_norm_eps=config.rms_norm_eps,
        max_positions=config.max_position_embeddings,
    )
    return Qwen3Float64(shape, _unpacked(stored, config.quantization))


def _unpacked(stored: dict[str, mx.array], packing: "object | None") -> dict[str, np.ndarray]:
    found = {}
    for name, array in stored.items():
        stem, _, part = name.rpartition(".")
        if part in ("scales", "biases"):
            continue
        if f"{stem}.scales" in stored:
            parts = stored[f"{stem}.scales"], stored[f"{stem}.biases"]
            array = mx.dequantize(array, *(p.astype(mx.float32) for p in parts), packing.group_size, packing.bits)
        found[name] = wide(array)
    return found
