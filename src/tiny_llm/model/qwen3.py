# This file is yours to edit. Read book/src/week1-05-model.md.
"""Qwen3: embed the tokens, pass them through identical blocks, and score the vocabulary (Qwen Team, 2025).

A model is built from a flat dict of weights under their Hugging Face names. What a block computes is stated by an
`Ops` table; another table may compute the same with other kernels. Knows nothing of files, text or sampling.
"""

from typing import Protocol

import mlx.core as mx

from .config import ModelConfig
from .embedding import Embedding
from .mlp import SwiGLU
from .norm import RMSNorm
from .rope import RoPE


# ANCHOR: cache
class LayerCache(Protocol):
    """The keys and values one layer has seen. `offset` counts them."""

    offset: int

    def update(self, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array]:
        """Append k, v: (B, H_kv, L, D). Returns all keys and values so far: (B, H_kv, S, D)."""
        ...

    # ANCHOR_END: cache


class Qwen3Attention:
    """The projections around attention, with a norm on each query and key head.

    weights: `self_attn.{q,k,v,o}_proj.weight`, `self_attn.{q,k}_norm.weight`; q_proj is (H*D, E), o_proj (E, H*D).
    """

    def __init__(self, config: ModelConfig, weights: dict[str, mx.array], rope: RoPE):
        self.num_heads, self.num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = config.head_dim
        self.rope = rope
        self.w_q, self.w_k, self.w_v, self.w_o = (weights[f"self_attn.{name}_proj.weight"] for name in "qkvo")
        self.q_norm = RMSNorm(weights["self_attn.q_norm.weight"], config.rms_norm_eps)
        self.k_norm = RMSNorm(weights["self_attn.k_norm.weight"], config.rms_norm_eps)

    def qkv(self, x: mx.array, offset: int = 0) -> tuple[mx.array, mx.array, mx.array]:
        """Project, split into heads, normalise each query and key head, then rotate them.

        x: (B, L, E), already normalised. offset: position of the first token.
        Returns q (B, H, L, D), k and v (B, H_kv, L, D) in the dtype of `x`.
        """
        raise NotImplementedError("Week 1 Day 5 Task 2: Qwen3Attention.qkv - see book/src/week1-05-model.md#task-2")

    def output(self, attended: mx.array) -> mx.array:
        """Join the heads and project back. attended: (B, H, L, D). Returns (B, L, E)."""
        raise NotImplementedError("Week 1 Day 5 Task 2: Qwen3Attention.output - see book/src/week1-05-model.md#task-2")


class Ops:
    """What a block computes, step by step, from plain array operations.

    A step may be computed in another way by a subclass, as long as its result stays the same.
    """

    def embedding(self, weight: mx.array) -> Embedding:
        """The embedding made of `weight`: (V, E), the first thing a model of this table does with tokens."""
        return Embedding(weight)

    def qkv(self, layer: "Qwen3Block", x: mx.array, offset: int) -> tuple[mx.array, mx.array, mx.array]:
        """Input norm, then `Qwen3Attention.qkv`. x: (B, L, E), the residual stream."""
        raise NotImplementedError("Week 1 Day 5 Task 3: Ops.qkv - see book/src/week1-05-model.md#task-3")

    def attend(self, q: mx.array, k: mx.array, v: mx.array, cache: LayerCache | None = None) -> mx.array:
        """Causal grouped attention over the cached keys and values and the new ones, which the cache keeps.

        q: (B, H, L, D). k, v: (B, H_kv, L, D), new. Without a cache they are all there is.
        Returns (B, H, L, D).
        """
        raise NotImplementedError("Week 1 Day 5 Task 2: Ops.attend - see book/src/week1-05-model.md#task-2")

    def output(self, layer: "Qwen3Block", x: mx.array, attended: mx.array) -> mx.array:
        """Add the projected attention to the residual stream `x`: (B, L, E)."""
        raise NotImplementedError("Week 1 Day 5 Task 3: Ops.output - see book/src/week1-05-model.md#task-3")

    def mlp(self, layer: "Qwen3Block", x: mx.array) -> mx.array:
        """Add the MLP of the normalised stream to the residual stream `x`: (B, L, E)."""
        raise NotImplementedError("Week 1 Day 5 Task 3: Ops.mlp - see book/src/week1-05-model.md#task-3")

    def head(self, model: "Qwen3", x: mx.array) -> mx.array:
        """Final norm, then logits. x: (B, L, E). Returns (B, L, V).

        The head is `model.lm_head` (V, E), or the embedding table where that is None (tied).
        """
        raise NotImplementedError("Week 1 Day 5 Task 3: Ops.head - see book/src/week1-05-model.md#task-3")


class Qwen3Block:
    """One layer: attention, then MLP, each on a normalised copy of the residual stream and added back to it.

    weights: those of this layer, named without `model.layers.N.`.
    """

    def __init__(self, config: ModelConfig, weights: dict[str, mx.array], rope: RoPE, ops: Ops):
        self.ops = ops
        self.input_norm = RMSNorm(weights["input_layernorm.weight"], config.rms_norm_eps)
        self.attention = Qwen3Attention(config, weights, rope)
        self.post_attention_norm = RMSNorm(weights["post_attention_layernorm.weight"], config.rms_norm_eps)
        self.mlp = SwiGLU(*(weights[f"mlp.{name}_proj.weight"] for name in ("gate", "up", "down")))

    def __call__(self, x: mx.array, cache: LayerCache | None = None) -> mx.array:
        """Run the block by its `ops`: qkv, attend, output, mlp.

        x: (B, L, E), at positions cache.offset .. cache.offset + L - 1 (from 0 without a cache).
        Returns (B, L, E) in the dtype of `x`.
        """
        raise NotImplementedError("Week 1 Day 5 Task 3: Qwen3Block.__call__ - see book/src/week1-05-model.md#task-3")


class Qwen3:
    """The whole model. weights: every tensor of the checkpoint under its Hugging Face name.

    `lm_head.weight` is used only where config.tie_word_embeddings is False.
    """

    def __init__(self, config: ModelConfig, weights: dict[str, mx.array], ops: Ops | None = None):
        self.config = config
        self.ops = ops or Ops()
        self.embedding = self.ops.embedding(weights["model.embed_tokens.weight"])
        self.norm = RMSNorm(weights["model.norm.weight"], config.rms_norm_eps)
        self.lm_head = None if config.tie_word_embeddings else weights["lm_head.weight"]
        rope = RoPE(config.head_dim, config.max_position_embeddings, config.rope_theta)
        self.layers = [
            Qwen3Block(config, layer_weights(weights, i), rope, self.ops) for i in range(config.num_hidden_layers)
        ]

    def __call__(self, tokens: mx.array, cache: list[LayerCache] | None = None) -> mx.array:
        """Score the next token after each of `tokens`: the head on `hidden`.

        tokens: (B, L) integers. cache: one entry per layer, or None to start at position 0 and keep nothing.
        Returns logits (B, L, V) in the dtype of the weights.
        """
        raise NotImplementedError("Week 1 Day 5 Task 3: Qwen3.__call__ - see book/src/week1-05-model.md#task-3")

    def hidden(self, tokens: mx.array, cache: list[LayerCache] | None = None) -> mx.array:
        """The residual stream after the last block, which the head would score. Arguments as for a call.

        Returns (B, L, E) in the dtype of the weights.
        """
        raise NotImplementedError("Week 1 Day 5 Task 3: Qwen3.hidden - see book/src/week1-05-model.md#task-3")


def layer_weights(weights: dict[str, mx.array], layer: int) -> dict[str, mx.array]:
    """The tensors of one layer, named without the prefix `model.layers.N.`."""
    prefix = f"model.layers.{layer}."
    return {name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)}
