"""Qwen3 in NumPy and float64, written for reading and not for speed: what the graded tests compare with.

A likely mistake is a subclass that overrides one step. Knows no MLX and no caches: what a cached model computes for
a token is what this one computes for the whole prefix.
"""

from collections.abc import Mapping

import numpy as np

from course.checkpoints import Shape


class Qwen3Float64:
    """The model. weights: by Hugging Face name, any float dtype."""

    def __init__(self, shape: Shape, weights: Mapping[str, np.ndarray]):
        self.shape = shape
        self.weights = {name: np.asarray(w, dtype=np.float64) for name, w in weights.items()}

    def layer(self, layer: int, name: str) -> np.ndarray:
        """One tensor of a layer, such as "mlp.up_proj"."""
        return self.weights[f"model.layers.{layer}.{name}.weight"]

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """tokens (B, L) -> (B, L, V)."""
        return self.head(self.stream(self.embed(tokens)))

    def embed(self, tokens: np.ndarray) -> np.ndarray:
        return self.weights["model.embed_tokens.weight"][tokens]

    def stream(self, x: np.ndarray) -> np.ndarray:
        """All blocks."""
        for layer in range(self.shape.layers):
            x = self.block(layer, x)
        return x

    def block(self, layer: int, x: np.ndarray, offset: int = 0) -> np.ndarray:
        x = x + self.attention(layer, self.norm(x, self.layer(layer, "input_layernorm")), offset)
        return x + self.mlp(layer, self.norm(x, self.layer(layer, "post_attention_layernorm")))

    def attention(self, layer: int, x: np.ndarray, offset: int = 0) -> np.ndarray:
        return self.output(layer, self.attend(*self.qkv(layer, x, offset)))

    def qkv(self, layer: int, x: np.ndarray, offset: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x (B, L, E), normalised -> q (B, H, L, D), k and v (B, H_kv, L, D)."""
        positions = offset + np.arange(x.shape[1])
        q = self.split(x @ self.layer(layer, "self_attn.q_proj").T, self.shape.heads)
        k = self.split(x @ self.layer(layer, "self_attn.k_proj").T, self.shape.kv_heads)
        v = self.split(x @ self.layer(layer, "self_attn.v_proj").T, self.shape.kv_heads)
        q = self.place(q, self.layer(layer, "self_attn.q_norm"), positions)
        return q, self.place(k, self.layer(layer, "self_attn.k_norm"), positions), v

    def split(self, x: np.ndarray, heads: int) -> np.ndarray:
        """(B, L, heads * D) -> (B, heads, L, D): a head owns D neighbouring columns."""
        return x.reshape(*x.shape[:2], heads, self.shape.head_dim).transpose(0, 2, 1, 3)

    def place(self, x: np.ndarray, norm: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Normalise each head, then rotate it to its position."""
        return self.rotate(self.norm(x, norm), positions)

    def rotate(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The pair (i, i + D / 2) of features is a complex number, and turns by position * theta^(-2i / D)."""
        half = self.shape.head_dim // 2
        angles = positions[:, None] * self.shape.rope_theta ** (-np.arange(half) / half)
        turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
        return np.concatenate([turned.real, turned.imag], axis=-1)

    def attend(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Causal grouped attention; the queries are the last L of the S positions."""
        k, v = self.share(k, q.shape[1]), self.share(v, q.shape[1])
        scores = q @ k.swapaxes(-1, -2) * self.scale()
        scores = np.where(self.visible(*scores.shape[-2:]), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v

    def share(self, x: np.ndarray, heads: int) -> np.ndarray:
        """Key/value heads -> one for each query head; neighbours share."""
        return x.repeat(heads // x.shape[1], axis=1)

    def scale(self) -> float:
        return self.shape.head_dim**-0.5

    def visible(self, L: int, S: int) -> np.ndarray:
        """True where a query may see a key."""
        return np.tri(L, S, S - L, dtype=bool)

    def output(self, layer: int, attended: np.ndarray) -> np.ndarray:
        """(B, H, L, D) -> (B, L, E)."""
        return self.join(attended) @ self.layer(layer, "self_attn.o_proj").T

    def join(self, x: np.ndarray) -> np.ndarray:
        """(B, H, L, D) -> (B, L, H * D)."""
        x = x.transpose(0, 2, 1, 3)
        return x.reshape(*x.shape[:2], -1)

    def mlp(self, layer: int, x: np.ndarray) -> np.ndarray:
        gate = x @ self.layer(layer, "mlp.gate_proj").T
        up = x @ self.layer(layer, "mlp.up_proj").T
        return (gate / (1 + np.exp(-gate)) * up) @ self.layer(layer, "mlp.down_proj").T

    def head(self, x: np.ndarray) -> np.ndarray:
        """Final norm and scores of the vocabulary."""
        return self.scores(self.norm(x, self.weights["model.norm.weight"]))

    def scores(self, x: np.ndarray) -> np.ndarray:
        name = "model.embed_tokens.weight" if self.shape.tied else "lm_head.weight"
        return x @ self.weights[name].T

    def norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.shape.rms_norm_eps) * weight
