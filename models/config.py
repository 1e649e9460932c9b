"""The model's shape and the training recipe, shared by both backends, and the seeded initial weights."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Shape:
    """Shape of a Qwen3 with tied embeddings."""

    vocab_size: int = 2048
    hidden_size: int = 256
    layers: int = 4
    intermediate_size: int = 768
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    rope_theta: float = 1e6
    rms_norm_eps: float = 1e-6
    max_positions: int = 2048

    def hugging_face(self, tokens: dict[str, int]) -> dict[str, object]:
        """The `config.json` of this shape; `tokens` maps special tokens to ids."""
        return {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.layers,
            "intermediate_size": self.intermediate_size,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "rope_theta": self.rope_theta,
            "rms_norm_eps": self.rms_norm_eps,
            "max_position_embeddings": self.max_positions,
            "tie_word_embeddings": True,
            "attention_bias": False,
            "hidden_act": "silu",
            "initializer_range": 0.02,
            "torch_dtype": "bfloat16",
            "use_sliding_window": False,
            "eos_token_id": tokens["<|im_end|>"],
            "pad_token_id": tokens["<|endoftext|>"],
        }


@dataclass(frozen=True)
class Recipe:
    """How to train: Muon on the layers' matrices, AdamW on embeddings and norms, a flat rate that falls to zero."""

    mix: str = "broad"
    seed: int = 1
    documents: int = 65_000
    row_length: int = 512
    batch: int = 8
    steps: int = 1200
    warmup: int = 50
    fall_from: int = 1040  # step at which the rate begins to fall
    fall_to: int = 2600  # step at which it would reach zero; the next run may take over before
    muon_rate: float = 0.02
    adam_rate: float = 3e-3
    weight_decay: float = 0.01
    compile: bool = True  # let the backend fuse the operations of a step
    log_every: int = 100

    def rate(self, step: int) -> float:
        """The learning rate of `step` as a share of its peak: linear up, flat, linear down."""
        fall = (self.fall_to - step) / (self.fall_to - self.fall_from)
        return min((step + 1) / self.warmup, 1.0, max(0.0, fall))


RECIPES = {  # three runs, each from the weights of the one before
    "broad": Recipe(),
    "drill": Recipe(
        mix="drill", seed=2, documents=32_000, steps=800, fall_from=20, fall_to=1300, muon_rate=0.008, adam_rate=1e-3
    ),
    "polish": Recipe(
        mix="polish", seed=3, documents=22_000, steps=900, fall_from=50, fall_to=900, muon_rate=0.005, adam_rate=5e-4
    ),
}


def initial_weights(shape: Shape, seed: int) -> dict[str, np.ndarray]:
    """Seeded start: normal matrices of deviation 0.02 (products back into the residual scaled down), norms of one."""
    rng = np.random.default_rng(seed)
    hidden, wide = shape.hidden_size, shape.intermediate_size
    query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes = {"model.embed_tokens.weight": (shape.vocab_size, hidden), "model.norm.weight": (hidden,)}
    for i in range(shape.layers):
        layer = f"model.layers.{i}."
        sizes |= {
            f"{layer}self_attn.q_proj.weight": (query, hidden),
            f"{layer}self_attn.k_proj.weight": (key, hidden),
            f"{layer}self_attn.v_proj.weight": (key, hidden),
            f"{layer}self_attn.o_proj.weight": (hidden, query),
            f"{layer}self_attn.q_norm.weight": (shape.head_dim,),
            f"{layer}self_attn.k_norm.weight": (shape.head_dim,),
            f"{layer}mlp.gate_proj.weight": (wide, hidden),
            f"{layer}mlp.up_proj.weight": (wide, hidden),
            f"{layer}mlp.down_proj.weight": (hidden, wide),
            f"{layer}input_layernorm.weight": (hidden,),
            f"{layer}post_attention_layernorm.weight": (hidden,),
        }
    weights = {}
    for name, size in sizes.items():
        scale = 0.02 / (2 * shape.layers) ** 0.5 if name.endswith(("o_proj.weight", "down_proj.weight")) else 0.02
        draw = rng.standard_normal(size) * scale if len(size) == 2 else np.ones(size)
        weights[name] = draw.astype(np.float32)
    return weights
