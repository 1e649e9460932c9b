# This file is yours to edit. Read book/src/week1-05-model.md.
"""Reading a Hugging Face checkpoint: `config.json` and weight files into a config and named arrays.

Knows names, shapes and dtypes; what the tensors are for is `qwen3`'s business, how files are laid out `safetensors`'s.
"""

from pathlib import Path

import mlx.core as mx

from .config import ModelConfig
from .qwen3 import Qwen3

FLOATS = (mx.float32, mx.float16, mx.bfloat16)


def load_config(folder: Path) -> ModelConfig:
    """Read `config.json`.

    `rope_theta` stands at the top level, or in `rope_parameters` (newer files); `head_dim`, absent or null,
    defaults to hidden_size / num_attention_heads; `tie_word_embeddings` to False; `quantization` (or
    `quantization_config`) is MLX's {group_size, bits}.
    Raises FileNotFoundError without the file; ValueError for a file that is not JSON, and, naming key and value, for a
    `model_type` other than qwen3, a missing key, scaled RoPE (a `rope_type`, or `type` in older files, other than
    default), `attention_bias`, or quantisation other than MLX's affine 4 or 8 bits in groups of 32, 64 or 128.
    """
    raise NotImplementedError("Week 1 Day 5 Task 4: load_config - see book/src/week1-05-model.md#task-4")


def load_weights(
    folder: Path, config: ModelConfig, dtype: mx.Dtype | None = None, memory_limit: int | None = None
) -> dict[str, mx.array]:
    """Read every tensor of the checkpoint, dequantise what is packed, and check that nothing is missing or odd.

    Reads `model.safetensors`, or the files named in `model.safetensors.index.json`.
    dtype: convert to it, after dequantising; None keeps what is stored (dequantised weights take the dtype of their
    scales).
    memory_limit: bytes that the weights returned may take, None for any number.
    Returns the tensors of `expected_shapes(config)`, under the same names.
    Raises ValueError, naming the tensor, for missing, unexpected, wrongly shaped or non-float tensors and damaged
    files; FileNotFoundError for a missing file; MemoryError where the weights would not fit, before they are read. A
    `lm_head.weight` beside tied embeddings is ignored.
    """
    raise NotImplementedError("Week 1 Day 5 Task 4: load_weights - see book/src/week1-05-model.md#task-4")


def load_model(folder: Path, dtype: mx.Dtype | None = None, memory_limit: int | None = None) -> Qwen3:
    """`load_config`, `load_weights`, and the model made of them, with its weights in memory."""
    config = load_config(folder)
    weights = load_weights(folder, config, dtype, memory_limit)
    mx.eval(weights)
    return Qwen3(config, weights)


# ANCHOR: shapes
def expected_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor in a Qwen3 checkpoint."""
    E, D, I = config.hidden_size, config.head_dim, config.intermediate_size  # noqa: E741
    H, H_kv = config.num_attention_heads, config.num_key_value_heads
    layer = {
        "input_layernorm": (E,),
        "self_attn.q_proj": (H * D, E),
        "self_attn.k_proj": (H_kv * D, E),
        "self_attn.v_proj": (H_kv * D, E),
        "self_attn.o_proj": (E, H * D),
        "self_attn.q_norm": (D,),
        "self_attn.k_norm": (D,),
        "post_attention_layernorm": (E,),
        "mlp.gate_proj": (I, E),
        "mlp.up_proj": (I, E),
        "mlp.down_proj": (E, I),
    }
    shapes = {"model.embed_tokens.weight": (config.vocab_size, E), "model.norm.weight": (E,)}
    for i in range(config.num_hidden_layers):
        shapes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in layer.items()}
    if not config.tie_word_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, E)
    return shapes
    # ANCHOR_END: shapes
