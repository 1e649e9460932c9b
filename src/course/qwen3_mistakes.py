"""What well-known wrong solutions of Qwen3 compute: the float64 model with one step taken wrongly, by the mistake.

The graded tests compare a wrong result with these, to say what went wrong rather than that something did.
"""

import math
from collections.abc import Callable

import numpy as np

from course.qwen3_float64 import Qwen3Float64


def mistaken(**steps: Callable) -> type:
    """A float64 model that takes some step wrongly."""
    return type("Mistaken", (Qwen3Float64,), steps)


def swapped_norms(self, layer, x, offset=0):
    """A qkv that looks up each head norm under the other's name."""
    names = {"self_attn.q_norm": "self_attn.k_norm", "self_attn.k_norm": "self_attn.q_norm"}
    other = type(self)(self.shape, {})
    other.weights = self.weights
    other.layer = lambda layer, name: self.layer(layer, names.get(name, name))
    return Qwen3Float64.qkv(other, layer, x, offset)


def treated_values(treat: Callable) -> Callable:
    """A qkv that also does to the values what belongs to queries and keys."""

    def qkv(self, layer, x, offset=0):
        q, k, v = Qwen3Float64.qkv(self, layer, x, offset)
        return q, k, treat(self, layer, v, offset + np.arange(x.shape[1]))

    return qkv


def kept(self, name: str, x: np.ndarray, heads: int) -> np.ndarray:
    """Heads that were projected and split, and nothing else."""
    return self.split(x @ self.layer(0, name).T, heads)


QKV_MISTAKES = {
    "q_norm and k_norm were left out": mistaken(place=lambda self, x, norm, at: self.rotate(x, at)),
    "the heads were rotated before their norm: the norm comes first": mistaken(
        place=lambda self, x, norm, at: self.norm(self.rotate(x, at), norm)
    ),
    "nothing was rotated": mistaken(place=lambda self, x, norm, at: self.norm(x, norm)),
    "the offset was ignored: the first token always stood at position 0": mistaken(
        rotate=lambda self, x, at: Qwen3Float64.rotate(self, x, at - at[0])
    ),
    "q_norm and k_norm were swapped": mistaken(qkv=swapped_norms),
    "the weight of the head norm was left out": mistaken(
        place=lambda self, x, norm, at: self.rotate(self.norm(x, np.ones_like(norm)), at)
    ),
    "the values were normalised: only queries and keys are": mistaken(
        qkv=treated_values(lambda self, layer, v, at: self.norm(v, self.layer(layer, "self_attn.k_norm")))
    ),
    "the values were rotated: only queries and keys are": mistaken(
        qkv=treated_values(lambda self, layer, v, at: self.rotate(v, at))
    ),
    "the values were normalised and rotated: only queries and keys are": mistaken(
        qkv=treated_values(lambda self, layer, v, at: self.place(v, self.layer(layer, "self_attn.k_norm"), at))
    ),
    "the heads were split by a reshape alone: it does not move the head axis before L": mistaken(
        split=lambda self, x, heads: x.reshape(x.shape[0], heads, x.shape[1], self.shape.head_dim)
    ),
    "the heads are interleaved: head h owns D neighbouring columns": mistaken(
        split=lambda self, x, heads: x.reshape(*x.shape[:2], self.shape.head_dim, heads).transpose(0, 3, 1, 2)
    ),
    "the rotation ran along the head axis or another axis than L: swap H and L first": mistaken(
        rotate=lambda self, x, at: Qwen3Float64.rotate(self, x.swapaxes(1, 2), at[0] + np.arange(x.shape[1])).swapaxes(
            1, 2
        )
    ),
    "w_k was used for the values": mistaken(
        qkv=lambda self, layer, x, offset=0: (
            *Qwen3Float64.qkv(self, layer, x, offset)[:2],
            kept(self, "self_attn.k_proj", x, self.shape.kv_heads),
        )
    ),
}


OUTPUT_MISTAKES = {
    "the heads were joined by a reshape alone: swap H and L back first": mistaken(
        join=lambda self, x: x.reshape(x.shape[0], x.shape[2], -1)
    ),
    "the heads were joined interleaved: head h owns D neighbouring columns": mistaken(
        join=lambda self, x: x.transpose(0, 2, 3, 1).reshape(x.shape[0], x.shape[2], -1)
    ),
    "w_o was left out": mistaken(output=lambda self, layer, x: self.join(x)),
    "w_o was not transposed": mistaken(
        output=lambda self, layer, x: self.join(x) @ self.layer(layer, "self_attn.o_proj")
    ),
    "the heads were added up instead of joined": mistaken(join=lambda self, x: np.tile(x.sum(1), (1, 1, x.shape[1]))),
}


ATTEND_MISTAKES = {
    "nothing was masked: a token saw the tokens after it": mistaken(
        visible=lambda self, L, S: np.ones((L, S), dtype=bool)
    ),
    "the new tokens were masked as if they stood before the cached ones": mistaken(
        visible=lambda self, L, S: np.tri(L, S, dtype=bool)
    ),
    "a token did not see itself": mistaken(visible=lambda self, L, S: np.tri(L, S, S - L - 1, dtype=bool)),
    "query head h was given kv head h % H_kv, but neighbours share one": mistaken(
        share=lambda self, x, heads: np.tile(x, (1, heads // x.shape[1], 1, 1))
    ),
    "the scores were not scaled": mistaken(scale=lambda self: 1.0),
    "the scale is 1 / sqrt(E / H), not 1 / sqrt(D)": mistaken(
        scale=lambda self: (self.shape.hidden / self.shape.heads) ** -0.5
    ),
    "only the new keys and values were used, not the cached ones": mistaken(
        attend=lambda self, q, k, v: Qwen3Float64.attend(self, q, k[:, :, -q.shape[2] :], v[:, :, -q.shape[2] :])
    ),
    "keys and values were swapped": mistaken(attend=lambda self, q, k, v: Qwen3Float64.attend(self, q, v, k)),
}


class NotNormed(Qwen3Float64):
    """Norm weights are applied to vectors of any size."""

    def norm(self, x, weight):
        return x if len(weight) == self.shape.hidden else super().norm(x, weight)


def one_norm(self, layer, x, offset=0):
    """A block that uses its input norm twice."""
    x = x + self.attention(layer, self.norm(x, self.layer(layer, "input_layernorm")), offset)
    return x + self.mlp(layer, self.norm(x, self.layer(layer, "input_layernorm")))


def swapped_block_norms(self, layer, x, offset=0):
    """A block that looks up each of its norms under the other's name."""
    x = x + self.attention(layer, self.norm(x, self.layer(layer, "post_attention_layernorm")), offset)
    return x + self.mlp(layer, self.norm(x, self.layer(layer, "input_layernorm")))


def stream_normed(self, layer, x, offset=0):
    """The sum is taken with the normalised copy."""
    x = self.norm(x, self.layer(layer, "input_layernorm"))
    x = x + self.attention(layer, x, offset)
    x = self.norm(x, self.layer(layer, "post_attention_layernorm"))
    return x + self.mlp(layer, x)


def no_stream(self, layer, x, offset=0):
    """Nothing is added."""
    x = self.attention(layer, self.norm(x, self.layer(layer, "input_layernorm")), offset)
    return self.mlp(layer, self.norm(x, self.layer(layer, "post_attention_layernorm")))


def post_norm(self, layer, x, offset=0):
    """The norm follows the sum, as in the first transformers."""
    x = self.norm(x + self.attention(layer, x, offset), self.layer(layer, "input_layernorm"))
    return self.norm(x + self.mlp(layer, x), self.layer(layer, "post_attention_layernorm"))


def parallel(self, layer, x, offset=0):
    """Attention and MLP read the same stream."""
    attended = self.attention(layer, self.norm(x, self.layer(layer, "input_layernorm")), offset)
    return x + attended + self.mlp(layer, self.norm(x, self.layer(layer, "post_attention_layernorm")))


def mlp_first(self, layer, x, offset=0):
    """The halves in the other order."""
    x = x + self.mlp(layer, self.norm(x, self.layer(layer, "post_attention_layernorm")))
    return x + self.attention(layer, self.norm(x, self.layer(layer, "input_layernorm")), offset)


BLOCK_MISTAKES = {
    "the norms of the block were left out": NotNormed,
    "the input norm was used for the MLP too": mistaken(block=one_norm),
    "the two norms of the block were swapped": mistaken(block=swapped_block_norms),
    "the normalised copy was added to, not the stream itself": mistaken(block=stream_normed),
    "nothing was added to the stream: each half replaced it": mistaken(block=no_stream),
    "the norm came after the sum, not before attention and MLP": mistaken(block=post_norm),
    "the MLP read the stream as it was before attention": mistaken(block=parallel),
    "the MLP ran before attention": mistaken(block=mlp_first),
    "the MLP was left out": mistaken(mlp=lambda self, layer, x: np.zeros_like(x)),
    "attention was left out": mistaken(attention=lambda self, layer, x, offset=0: np.zeros_like(x)),
    "the MLP was not added to the stream: it replaced it": mistaken(
        block=lambda self, layer, x, offset=0: (
            Qwen3Float64.block(self, layer, x, offset) - after_attention(self, layer, x, offset)
        )
    ),
    "attention was not added to the stream: it replaced it": mistaken(
        block=lambda self, layer, x, offset=0: mlp_half(self, layer, after_attention(self, layer, x, offset) - x)
    ),
}


def after_attention(self, layer, x, offset=0):
    """The first half of a right block."""
    return x + self.attention(layer, self.norm(x, self.layer(layer, "input_layernorm")), offset)


def mlp_half(self, layer, x):
    """The second half of a right block."""
    return x + self.mlp(layer, self.norm(x, self.layer(layer, "post_attention_layernorm")))


MODEL_MISTAKES = BLOCK_MISTAKES | {
    "the final norm was left out": mistaken(head=lambda self, x: self.scores(x)),
    "the layers ran in reverse order": mistaken(
        block=lambda self, layer, x, offset=0: Qwen3Float64.block(self, self.shape.layers - 1 - layer, x, offset)
    ),
    "only the first layer ran": mistaken(stream=lambda self, x: self.block(0, x)),
    "the last layer was left out": mistaken(
        block=lambda self, layer, x, offset=0: (
            x if layer == self.shape.layers - 1 else Qwen3Float64.block(self, layer, x, offset)
        )
    ),
    "every layer ran on the embedding, not on what the layer before it made": mistaken(
        stream=lambda self, x: self.block(self.shape.layers - 1, x)
    ),
    "the embedding was scaled by sqrt(E): some models do, Qwen3 does not": mistaken(
        embed=lambda self, tokens: Qwen3Float64.embed(self, tokens) * math.sqrt(self.shape.hidden)
    ),
    "nothing was masked: a token saw the tokens after it": mistaken(
        visible=lambda self, L, S: np.ones((L, S), dtype=bool)
    ),
    "only the last position was scored": mistaken(head=lambda self, x: Qwen3Float64.head(self, x[:, -1:])),
}


def forgetful(sizes: list[int], remembers: bool) -> type:
    """A model that is given chunks of a prompt and places each at 0; it may see the older chunks or not."""
    chunk = np.repeat(np.arange(len(sizes)), sizes)
    at = np.concatenate([np.arange(size) for size in sizes])
    steps = {"rotate": lambda self, x, positions: Qwen3Float64.rotate(self, x, at)}
    if not remembers:
        steps["visible"] = lambda self, L, S: np.tri(L, dtype=bool) & (chunk[:, None] == chunk)
    return mistaken(**steps)
