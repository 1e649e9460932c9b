"""Reading a Hugging Face checkpoint: `config.json` and weight files into a config and named arrays.

Knows names, shapes and dtypes; what the tensors are for is `qwen3`'s business, how files are laid out `safetensors`'s.
"""

from pathlib import Path

import mlx.core as mx

from .config import ModelConfig, Quantization
from .qwen3 import Qwen3
from .safetensors import read_json, read_safetensors, weight_files

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
    raw = read_json(folder / "config.json")
    if raw.get("model_type") != "qwen3":
        raise ValueError(f"model_type {raw.get('model_type')!r} is not supported: only 'qwen3' is")
    if raw.get("attention_bias"):
        raise ValueError("attention_bias true is not supported: Qwen3 has no biases")
    rope = raw.get("rope_parameters") or {}
    scaling = raw.get("rope_scaling") or rope
    rope_type = scaling.get("rope_type", scaling.get("type", "default"))
    if rope_type != "default":
        raise ValueError(f"rope_type {rope_type!r} is not supported: only 'default' is")
    try:
        return ModelConfig(
            hidden_size=raw["hidden_size"],
            num_hidden_layers=raw["num_hidden_layers"],
            intermediate_size=raw["intermediate_size"],
            num_attention_heads=raw["num_attention_heads"],
            num_key_value_heads=raw["num_key_value_heads"],
            head_dim=raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"],
            vocab_size=raw["vocab_size"],
            rms_norm_eps=raw["rms_norm_eps"],
            rope_theta=float(raw["rope_theta"] if "rope_theta" in raw else rope["rope_theta"]),
            max_position_embeddings=raw["max_position_embeddings"],
            tie_word_embeddings=raw.get("tie_word_embeddings", False),
            quantization=_quantization(raw),
        )
    except KeyError as missing:
        raise ValueError(f"{folder / 'config.json'} has no key {missing}") from None


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
    shapes = expected_shapes(config)
    stored = {name: w for file in weight_files(folder) for name, w in read_safetensors(file).items()}
    weights = _dequantize(stored, config.quantization)
    if config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    if missing := sorted(shapes.keys() - weights.keys()):
        raise ValueError(f"{len(missing)} tensors are missing in {folder}, the first is {missing[0]}")
    if extra := sorted(weights.keys() - shapes.keys()):
        raise ValueError(f"{len(extra)} unexpected tensors in {folder}, the first is {extra[0]}")
    for name, shape in shapes.items():
        if weights[name].shape != shape:
            raise ValueError(f"{name} has shape {weights[name].shape}, config.json implies {shape}")
        if weights[name].dtype not in FLOATS:
            raise ValueError(f"{name} is stored as {weights[name].dtype}: expected float32, float16 or bfloat16")
    weights = {name: weights[name].astype(dtype or weights[name].dtype) for name in shapes}
    needed = sum(w.nbytes for w in weights.values())  # known from the headers: MLX has read no values yet
    if memory_limit is not None and needed > memory_limit:
        raise MemoryError(
            f"the weights need {needed / 1e9:.3g} GB, the limit is {memory_limit / 1e9:.3g} GB: "
            "take a smaller model or dtype"
        )
    return weights


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


def _quantization(raw: dict) -> Quantization | None:
    packed = raw.get("quantization") or raw.get("quantization_config")
    if not packed:
        return None
    affine = packed.get("mode", "affine") == "affine" and "quant_method" not in packed
    whole_model = not any(isinstance(value, dict) for value in packed.values())
    sizes = packed.get("group_size") in (32, 64, 128) and packed.get("bits") in (4, 8)
    if not (affine and whole_model and sizes):
        raise ValueError(
            f"quantization {packed} is not supported: only MLX's affine 4 or 8 bits for the whole model are"
        )
    return Quantization(packed["group_size"], packed["bits"])


def _dequantize(stored: dict[str, mx.array], packing: Quantization | None) -> dict[str, mx.array]:
    """Unpack `X.weight` with `X.scales` and `X.biases`; leave other tensors as they are."""
    weights = {}
    for name, w in stored.items():
        stem, _, kind = name.rpartition(".")
        if packing is None or f"{stem}.scales" not in stored:
            weights[name] = w
        elif kind == "weight":
            scales, biases = stored[f"{stem}.scales"], stored.get(f"{stem}.biases")
            try:
                weights[name] = mx.dequantize(w, scales, biases, packing.group_size, packing.bits)
            except ValueError as error:
                raise ValueError(f"{name} cannot be dequantised with {packing}: {error}") from None
    return weights
