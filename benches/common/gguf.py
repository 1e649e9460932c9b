"""Writes a Qwen3 checkpoint as GGUF, the file format of llama.cpp: matrices in its 4-bit blocks Q4_0, norms in float32.

Only what `llama-bench` needs: there is no vocabulary, so nothing can talk to such a file. Layout: GGUF version 3.
"""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import mlx.core as mx
import numpy as np

from tiny_llm_ref.model.config import ModelConfig

BLOCK = 32  # weights that share a scale
BLOCK_BYTES = 2 + BLOCK // 2
ALIGNMENT = 32
ROWS = 8192  # quantised at a time
F32, Q4_0 = 0, 2  # tensor types
UINT32, FLOAT32, STRING = 4, 6, 8  # types of metadata
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
OTHER_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


@dataclass(frozen=True)
class Tensor:
    """One entry of the file."""

    name: str
    weight: mx.array

    @property
    def kind(self) -> int:
        return Q4_0 if self.weight.ndim == 2 else F32

    @property
    def nbytes(self) -> int:
        return self.weight.size // BLOCK * BLOCK_BYTES if self.kind == Q4_0 else self.weight.size * 4

    def write(self, file: BinaryIO) -> None:
        """The values, quantised a few rows at a time."""
        step = ROWS if self.kind == Q4_0 else len(self.weight)
        for row in range(0, len(self.weight), step):
            part = np.array(self.weight[row : row + step].astype(mx.float32))
            file.write(quantize_q4_0(part) if self.kind == Q4_0 else part.tobytes())
        file.write(bytes(-self.nbytes % ALIGNMENT))


def write_gguf(path: Path, config: ModelConfig, weights: dict[str, mx.array]) -> None:
    """Write the model to `path`. weights: under their Hugging Face names; rows of matrices are multiples of 32 long."""
    tensors = [Tensor(gguf_name(name), weight) for name, weight in weights.items()]
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(b"".join(_header(config, tensors)))
        file.write(bytes(-file.tell() % ALIGNMENT))
        for tensor in tensors:
            tensor.write(file)
    part.replace(path)


def gguf_name(name: str) -> str:
    """llama.cpp's name for a tensor of a Hugging Face checkpoint."""
    stem = name.removesuffix(".weight")
    if stem in OTHER_NAMES:
        return f"{OTHER_NAMES[stem]}.weight"
    layer, _, rest = stem.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{LAYER_NAMES[rest]}.weight"


def quantize_q4_0(values: np.ndarray) -> bytes:
    """Blocks of 32 numbers: a float16 scale, then 16 bytes; byte i holds number i low and number i + 16 high.

    A number is scale * (level - 8), level in 0 .. 15; the one of largest magnitude gets level 0.
    """
    blocks = values.reshape(-1, BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1, keepdims=True), axis=1)
    scale = largest / -8
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)
    levels = np.clip(blocks * inverse + 8.5, 0, 15).astype(np.uint8)
    packed = levels[:, : BLOCK // 2] | (levels[:, BLOCK // 2 :] << 4)
    return np.concatenate([scale.astype(np.float16).view(np.uint8), packed], axis=1).tobytes()


def _header(config: ModelConfig, tensors: list[Tensor]) -> Iterator[bytes]:
    metadata = list(_metadata(config))
    yield b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    yield from metadata
    offset = 0
    for tensor in tensors:
        shape = tensor.weight.shape[::-1]  # the axis that varies fastest comes first
        yield _string(tensor.name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, tensor.kind, offset)
        offset += math.ceil(tensor.nbytes / ALIGNMENT) * ALIGNMENT


def _metadata(config: ModelConfig) -> Iterator[bytes]:
    strings = {"general.architecture": "qwen3", "tokenizer.ggml.model": "none"}
    integers = {
        "general.file_type": 2,
        "qwen3.context_length": config.max_position_embeddings,
        "qwen3.embedding_length": config.hidden_size,
        "qwen3.block_count": config.num_hidden_layers,
        "qwen3.feed_forward_length": config.intermediate_size,
        "qwen3.attention.head_count": config.num_attention_heads,
        "qwen3.attention.head_count_kv": config.num_key_value_heads,
        "qwen3.attention.key_length": config.head_dim,
        "qwen3.attention.value_length": config.head_dim,
        "qwen3.vocab_size": config.vocab_size,
    }
    floats = {
        "qwen3.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "qwen3.rope.freq_base": config.rope_theta,
    }
    for key, text in strings.items():
        yield _string(key) + struct.pack("<I", STRING) + _string(text)
    for key, value in integers.items():
        yield _string(key) + struct.pack("<II", UINT32, value)
    for key, value in floats.items():
        yield _string(key) + struct.pack("<If", FLOAT32, value)


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()
