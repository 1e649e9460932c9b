"""Qwen3 training in PyTorch: bf16 products over float32 weights. The fast path on a Linux CPU.

PyTorch is no dependency of the course: this file is imported only by `train.py --backend torch`.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.config import Recipe, Shape


class Attention(nn.Module):
    """Grouped-query attention with a norm on each head's query and key."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s = s
        self.q_proj = nn.Linear(s.hidden_size, s.heads * s.head_dim, bias=False)
        self.k_proj = nn.Linear(s.hidden_size, s.kv_heads * s.head_dim, bias=False)
        self.v_proj = nn.Linear(s.hidden_size, s.kv_heads * s.head_dim, bias=False)
        self.o_proj = nn.Linear(s.heads * s.head_dim, s.hidden_size, bias=False)
        self.q_norm = nn.RMSNorm(s.head_dim, eps=s.rms_norm_eps)
        self.k_norm = nn.RMSNorm(s.head_dim, eps=s.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """`x` `[B, L, hidden]`; `cos`, `sin` `[L, D]`."""
        batch, length, _ = x.shape
        q = self.q_norm(self.q_proj(x).view(batch, length, -1, self.s.head_dim).float()).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(batch, length, -1, self.s.head_dim).float()).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, -1, self.s.head_dim).transpose(1, 2)
        q, k = (rotate(t, cos, sin).to(v.dtype) for t in (q, k))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of `x` `[B, H, L, D]`, pairing each dimension with the one half a head away."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


class MLP(nn.Module):
    """SwiGLU feed-forward network."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(s.hidden_size, s.intermediate_size, bias=False)
        self.up_proj = nn.Linear(s.hidden_size, s.intermediate_size, bias=False)
        self.down_proj = nn.Linear(s.intermediate_size, s.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """`x` `[B, L, hidden]`."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """One pre-norm transformer layer."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.self_attn = Attention(s)
        self.mlp = MLP(s)
        self.input_layernorm = nn.RMSNorm(s.hidden_size, eps=s.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(s.hidden_size, eps=s.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """`x` `[B, L, hidden]`."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Qwen3(nn.Module):
    """The whole model; parameter names under `model.` are Hugging Face's."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s = s
        self.embed_tokens = nn.Embedding(s.vocab_size, s.hidden_size)
        self.layers = nn.ModuleList(Block(s) for _ in range(s.layers))
        self.norm = nn.RMSNorm(s.hidden_size, eps=s.rms_norm_eps)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits `[B, L, V]` of `ids` `[B, L]`."""
        half = torch.arange(0, self.s.head_dim, 2, dtype=torch.float32) / self.s.head_dim
        angles = torch.outer(torch.arange(ids.shape[1], dtype=torch.float32), self.s.rope_theta**-half)
        cos, sin = (torch.cat((t, t), dim=-1) for t in (angles.cos(), angles.sin()))
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return F.linear(self.norm(x), self.embed_tokens.weight)


class TorchTrainer:
    """Model and optimizers; `step` is one update."""

    def __init__(self, shape: Shape, recipe: Recipe, weights: dict[str, np.ndarray]) -> None:
        self.recipe = recipe
        self.model = Qwen3(shape)
        self.model.load_state_dict({k.removeprefix("model."): torch.from_numpy(w) for k, w in weights.items()})
        self.forward = torch.compile(self.model) if recipe.compile else self.model
        matrices = [p for name, p in self.model.named_parameters() if p.ndim == 2 and "embed" not in name]
        others = [p for name, p in self.model.named_parameters() if p.ndim != 2 or "embed" in name]
        self.muon = torch.optim.Muon(matrices, momentum=0.95, weight_decay=recipe.weight_decay, adjust_lr_fn="original")
        self.adam = torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0.0)

    def _loss(self, ids: np.ndarray, weights: np.ndarray) -> Tensor:
        tokens, scale = torch.from_numpy(ids).long(), torch.from_numpy(weights[:, 1:])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = self.forward(tokens[:, :-1])
        losses = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        return (losses * scale.flatten()).sum() / scale.sum()

    def step(self, ids: np.ndarray, weights: np.ndarray, rate: float) -> float:
        """One update on `ids`, `weights` `[B, L + 1]`; `rate` in 0..1 scales the learning rates. Returns the loss."""
        for optimizer, base in ((self.muon, self.recipe.muon_rate), (self.adam, self.recipe.adam_rate)):
            for group in optimizer.param_groups:
                group["lr"] = base * rate
        loss = self._loss(ids, weights)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in (self.muon, self.adam):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def loss(self, ids: np.ndarray, weights: np.ndarray) -> float:
        """Weighted mean loss without an update."""
        with torch.no_grad():
            return self._loss(ids, weights).item()

    def weights(self) -> dict[str, np.ndarray]:
        """The weights by Hugging Face name, float32."""
        return {f"model.{name}": p.detach().numpy().copy() for name, p in self.model.state_dict().items()}
