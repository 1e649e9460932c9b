"""The numbers that fix a model's shape, under the names that Hugging Face checkpoints use."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantization:
    """How MLX packed the weights: `bits` per value, one scale and bias per `group_size` values of a row."""

    group_size: int
    bits: int


@dataclass(frozen=True)
class ModelConfig:
    """A Qwen3's shape. `head_dim` is independent of hidden_size / num_attention_heads."""

    hidden_size: int
    num_hidden_layers: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    tie_word_embeddings: bool
    quantization: Quantization | None = None
