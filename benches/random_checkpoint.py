"""Makes a checkpoint with random weights in the exact shape of a published Qwen3, in the user's cache folder.

It has the embedded model's tokenizer, so programs that speak to it work, although it has nothing to say.
"""

import argparse
from pathlib import Path

import numpy as np

from course.checkpoints import SHAPES, Quantization, make_checkpoint
from course.folder import is_complete
from course.models import EMBEDDED, locate
from course.options import number
from course.paths import cache_folder

HELP = "make a random checkpoint in the shape of a published model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    parser.add_argument("--shape", choices=list(SHAPES), default="0.6b", help="which Qwen3 (default 0.6b)")
    shards = number(int, "from 1 to 99", lambda x: 1 <= x <= 99, 2)
    parser.add_argument("--shards", type=shards, default=1, help="number of safetensors files (default 1)")
    parser.add_argument("--packed", action="store_true", help="4 bits in groups of 64, as MLX packs them")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Make it, and say where it is."""
    folder = random_checkpoint(args.shape, args.shards, packed=args.packed)
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    return {"folder": str(folder), "bytes": size}, [f"{folder}: {size / 1e9:.2f} GB"]


def random_checkpoint(shape: str, shards: int = 1, *, packed: bool = False) -> Path:
    """The folder of the checkpoint, which is made on the first call: bfloat16, seed 0, packed from the same weights."""
    folder = cache_folder() / f"random-qwen3-{shape}-{shards}{'-4bit' if packed else ''}"
    if not is_complete(folder):
        make_checkpoint(
            folder,
            np.random.default_rng(0),
            SHAPES[shape],
            dtype="bfloat16",
            shards=shards,
            quantization=Quantization() if packed else None,
            tokenizer=EMBEDDED["tiny"],
        )
    return folder


def folders(model: str | None, shape: str) -> tuple[Path, Path]:
    """A checkpoint for plain weights and one for packed weights: twice the same `model`, or two random ones."""
    if model:
        return locate(model), locate(model)
    return random_checkpoint(shape), random_checkpoint(shape, packed=True)
