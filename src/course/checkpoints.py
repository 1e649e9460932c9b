"""Random Qwen3 checkpoints in Hugging Face layout, for tests, golden values and benchmarks.

Weights come from a NumPy generator alone, so a program without MLX draws the same ones from the same seed; only
`make_checkpoint` imports MLX, to write the files. The scales are chosen so that logits have about unit standard
deviation.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "vocab.json", "merges.txt")


@dataclass(frozen=True)
class Shape:
    """The sizes that make one Qwen3 model differ from another. Defaults are small, and no two sizes are equal."""

    hidden: int = 48
    layers: int = 2
    intermediate: int = 80
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    vocab: int = 97
    tied: bool = True
    rope_theta: float = 1e6
    rms_norm_eps: float = 1e-6
    max_positions: int = 512


# The published sizes of the Qwen3 family.
SHAPES = {
    "0.6b": Shape(1024, 28, 3072, 16, 8, 128, 151936, max_positions=40960),
    "1.7b": Shape(2048, 28, 6144, 16, 8, 128, 151936, max_positions=40960),
    "4b": Shape(2560, 36, 9728, 32, 8, 128, 151936, max_positions=40960),
    "8b": Shape(4096, 36, 12288, 32, 8, 128, 151936, tied=False, max_positions=40960),
}


@dataclass(frozen=True)
class Quantization:
    """MLX's affine group quantisation."""

    group_size: int = 64
    bits: int = 4


def random_weights(rng: np.random.Generator, shape: Shape) -> Iterator[tuple[str, np.ndarray]]:
    """Every tensor of the model by its Hugging Face name, float32: matrices [out, in], norm weights in 0.5 .. 1.5."""

    def matrix(name: str, rows: int, columns: int) -> tuple[str, np.ndarray]:
        values = rng.standard_normal((rows, columns), dtype=np.float32)
        return f"{name}.weight", values * np.float32(columns**-0.5)

    def norm(name: str, size: int) -> tuple[str, np.ndarray]:
        return f"{name}.weight", rng.random(size, dtype=np.float32) + np.float32(0.5)

    query, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    yield matrix("model.embed_tokens", shape.vocab, shape.hidden)
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}"
        yield norm(f"{prefix}.input_layernorm", shape.hidden)
        yield matrix(f"{prefix}.self_attn.q_proj", query, shape.hidden)
        yield matrix(f"{prefix}.self_attn.k_proj", kv, shape.hidden)
        yield matrix(f"{prefix}.self_attn.v_proj", kv, shape.hidden)
        yield matrix(f"{prefix}.self_attn.o_proj", shape.hidden, query)
        yield norm(f"{prefix}.self_attn.q_norm", shape.head_dim)
        yield norm(f"{prefix}.self_attn.k_norm", shape.head_dim)
        yield norm(f"{prefix}.post_attention_layernorm", shape.hidden)
        yield matrix(f"{prefix}.mlp.gate_proj", shape.intermediate, shape.hidden)
        yield matrix(f"{prefix}.mlp.up_proj", shape.intermediate, shape.hidden)
        yield matrix(f"{prefix}.mlp.down_proj", shape.hidden, shape.intermediate)
    yield norm("model.norm", shape.hidden)
    if not shape.tied:
        yield matrix("lm_head", shape.vocab, shape.hidden)


def hf_config(shape: Shape, *, dtype: str = "float32", nested_rope: bool = False) -> dict[str, object]:
    """The content of config.json. `nested_rope` writes rope_theta where transformers 5 does, in rope_parameters."""
    if nested_rope:
        rope = {"rope_parameters": {"rope_theta": shape.rope_theta, "rope_type": "default"}}
    else:
        rope = {"rope_theta": shape.rope_theta, "rope_scaling": None}
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "max_position_embeddings": shape.max_positions,
        "model_type": "qwen3",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": shape.rms_norm_eps,
        "tie_word_embeddings": shape.tied,
        "torch_dtype": dtype,
        "use_sliding_window": False,
        "vocab_size": shape.vocab,
        **rope,
    }


def make_checkpoint(
    folder: Path,
    rng: np.random.Generator,
    shape: Shape,
    *,
    dtype: str = "float32",
    shards: int = 1,
    nested_rope: bool = False,
    quantization: Quantization | None = None,
    tokenizer: Path | None = None,
) -> Path:
    """Write a random checkpoint to `folder` and return it: config.json and one or several safetensors files.

    `dtype` is float32, float16 or bfloat16; `quantization` packs every matrix as MLX does; `tokenizer` is a folder
    whose tokenizer files are copied.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = hf_config(shape, dtype=dtype, nested_rope=nested_rope)
    if quantization is not None:
        config["quantization"] = {"group_size": quantization.group_size, "bits": quantization.bits}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    if tokenizer is not None:
        for name in TOKENIZER_FILES:
            if (tokenizer / name).exists():
                shutil.copy(tokenizer / name, folder / name)
    _write_tensors(folder, rng, shape, dtype, shards, quantization)
    return folder


def _write_tensors(
    folder: Path, rng: np.random.Generator, shape: Shape, dtype: str, shards: int, quantization: Quantization | None
) -> None:
    import mlx.core as mx

    from course.checkpoint_files import packed

    stored: dict[str, mx.array] = {}
    for name, values in random_weights(rng, shape):
        tensors = {name: mx.array(values).astype(getattr(mx, dtype))}
        if quantization is not None:
            tensors = packed(tensors, quantization.group_size, quantization.bits)
        mx.eval(tensors)  # now, so that the float32 values can go
        stored |= tensors
    if shards == 1:
        mx.save_safetensors(str(folder / "model.safetensors"), stored, {"format": "pt"})
        return
    names, weight_map = list(stored), {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = names[len(names) * shard // shards : len(names) * (shard + 1) // shards]
        mx.save_safetensors(str(folder / file), {name: stored[name] for name in part}, {"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": sum(a.nbytes for a in stored.values())}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
