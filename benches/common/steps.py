"""The steps of a block as works: a package's fused primitives beside MLX's own operators, each with its own weights."""

from collections.abc import Callable

import mlx.core as mx
from benches.common.works import Result, Work, random_array

from course.checkpoint_json import Packing
from course.memory import Format
from tiny_llm_ref.kernels.quantize import PackedMatrix
from tiny_llm_ref.model.norm import RMSNorm
from tiny_llm_ref.model.qwen3 import Qwen3

PACKED = Format("float32", Packing(4, 64)).bytes_per_weight


def block_steps(model: Qwen3, block: "MlxBlock", L: int) -> list[Work]:
    """qkv, output and mlp of every layer, for L tokens. model: on packed weights; `block` was made of it."""
    config, layers = model.config, model.layers
    E, I, D = config.hidden_size, config.intermediate_size, config.head_dim  # noqa: E741
    H, H_kv, N = config.num_attention_heads, config.num_key_value_heads, len(layers)
    x, attended = random_array((1, L, E)), random_array((1, H, L, D))
    sizes = {"qkv": (H + 2 * H_kv) * D * E, "output": E * H * D, "mlp": 3 * E * I}
    ours: dict[str, Callable[[int], Result]] = {
        "qkv": lambda i: model.ops.qkv(layers[i], x, 0),
        "output": lambda i: model.ops.output(layers[i], x, attended),
        "mlp": lambda i: model.ops.mlp(layers[i], x),
    }
    theirs: dict[str, Callable[[int], Result]] = {
        "qkv": lambda i: block.qkv(i, x),
        "output": lambda i: block.output(i, x, attended),
        "mlp": lambda i: block.mlp(i, x),
    }
    rows = f", {L} rows" if L > 1 else ""
    return [
        Work(f"{step}{rows}", "fused", ours[step], theirs[step], (N, N), 2.0 * L * size, size * PACKED + 8.0 * L * E)
        for step, size in sizes.items()
    ]


class MlxBlock:
    """The steps in MLX's own fast operators, on the float32 numbers that a packed model's weights stand for."""

    def __init__(self, model: Qwen3):
        self.config, self.layers = model.config, model.layers
        self.weights = [
            {
                **{n: _unpacked(getattr(layer.attention, f"w_{n}").packed) for n in "qkvo"},
                **{n: _unpacked(getattr(layer.mlp, f"w_{n}").packed) for n in ("gate", "up", "down")},
            }
            for layer in model.layers
        ]
        mx.eval(self.weights)

    def qkv(self, i: int, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm, projections, norms of the heads, rotation."""
        layer, w, dims = self.layers[i], self.weights[i], self.config.head_dim
        x = _norm(x, layer.input_norm)
        q, k, v = (mx.unflatten(x @ w[n].T, -1, (-1, dims)) for n in "qkv")
        q, k = _norm(q, layer.attention.q_norm), _norm(k, layer.attention.k_norm)
        q, k = (self._rope(heads.swapaxes(1, 2)) for heads in (q, k))
        return q, k, v.swapaxes(1, 2)

    def output(self, i: int, x: mx.array, attended: mx.array) -> mx.array:
        """Join the heads, project, add."""
        return x + attended.swapaxes(1, 2).flatten(2) @ self.weights[i]["o"].T

    def mlp(self, i: int, x: mx.array) -> mx.array:
        """Norm, gate and up, SwiGLU, down, add."""
        w = self.weights[i]
        n = _norm(x, self.layers[i].post_attention_norm)
        gate, up = n @ w["gate"].T, n @ w["up"].T
        return x + (gate * mx.sigmoid(gate) * up) @ w["down"].T

    def _rope(self, x: mx.array) -> mx.array:
        base = self.config.rope_theta
        return mx.fast.rope(x, self.config.head_dim, traditional=False, base=base, scale=1.0, offset=0)


def _norm(x: mx.array, norm: RMSNorm) -> mx.array:
    return mx.fast.rms_norm(x, norm.weight, norm.eps)


def _unpacked(packed: PackedMatrix) -> mx.array:
    scales, biases = packed.scales.astype(mx.float32), packed.biases.astype(mx.float32)
    return mx.dequantize(packed.words, scales, biases, group_size=packed.group_size, bits=packed.bits)
