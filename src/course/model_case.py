"""What cases about a whole Qwen3 share: random weights, the solution's model made of them, and the float64 oracle."""

from dataclasses import asdict

import mlx.core as mx
import numpy as np

from course.checkpoint_files import wide
from course.checkpoints import Shape, random_weights
from course.qwen3_float64 import Qwen3Float64
from course.solution import Solution

TOLERANCE = {mx.float32: 3e-5, mx.float16: 1.2e-2, mx.bfloat16: 8e-2}
"""Of logits, after the roundings of a whole model, by the dtype of its weights."""

SMALL = {"hidden": 24, "heads": 4, "kv_heads": 2, "head_dim": 8, "intermediate": 20, "vocab": 31}
MULTI_QUERY = {"hidden": 20, "layers": 3, "heads": 3, "kv_heads": 1, "head_dim": 6, "intermediate": 14, "vocab": 17}


def model_inputs(rng: np.random.Generator, sizes: dict, dtype: mx.Dtype = mx.float32) -> dict[str, object]:
    """The sizes of a model (those of `Shape` that matter) and random weights for it, as plain values."""
    shape = Shape(**{"rope_theta": 1e4, "max_positions": 64, **sizes})
    weights = {name: mx.array(w).astype(dtype) for name, w in random_weights(rng, shape)}
    return {"sizes": asdict(shape), "weights": weights}


def tokens_of(rng: np.random.Generator, inputs: dict, shape: tuple[int, ...]) -> mx.array:
    """Random tokens of the model's vocabulary."""
    return mx.array(rng.integers(0, inputs["sizes"]["vocab"], shape).astype(np.int32))


def config_of(solution: Solution, sizes: dict, quantization: tuple[int, int] | None = None):
    """The solution's own ModelConfig. quantization: group size and bits."""
    config = solution.module("model.config")
    return config.ModelConfig(
        hidden_size=sizes["hidden"],
        num_hidden_layers=sizes["layers"],
        intermediate_size=sizes["intermediate"],
        num_attention_heads=sizes["heads"],
        num_key_value_heads=sizes["kv_heads"],
        head_dim=sizes["head_dim"],
        vocab_size=sizes["vocab"],
        rms_norm_eps=sizes["rms_norm_eps"],
        rope_theta=sizes["rope_theta"],
        max_position_embeddings=sizes["max_positions"],
        tie_word_embeddings=sizes["tied"],
        quantization=config.Quantization(*quantization) if quantization else None,
    )


def model_of(solution: Solution, inputs: dict, ops=None):
    """The solution's Qwen3 of these inputs. ops: a table of the solution's, None for that of Week 1."""
    return solution.module("model.qwen3").Qwen3(config_of(solution, inputs["sizes"]), inputs["weights"], ops)


def oracle(inputs: dict, kind: type[Qwen3Float64] = Qwen3Float64) -> Qwen3Float64:
    """The float64 model of the inputs, or one with a mistake in it."""
    return kind(Shape(**inputs["sizes"]), {name: wide(w) for name, w in inputs["weights"].items()})
