"""A complete small checkpoint for tests that run programs: random weights, and a tokenizer with one token per byte."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from course.checkpoints import Shape, make_checkpoint

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


# Rows that divide into groups of 64, as packing needs them.
PACKABLE = Shape(hidden=64, intermediate=128, heads=4, kv_heads=2, head_dim=64)


def small_model(folder: Path, *, max_positions: int, shards: int = 1, shape: Shape = Shape()) -> Path:  # noqa: B008
    """Write it to `folder`, in bfloat16."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({character: i for i, character in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    shape = replace(shape, vocab=tokenizer.get_vocab_size(), max_positions=max_positions)
    return make_checkpoint(folder, np.random.default_rng(0), shape, dtype="bfloat16", shards=shards)
