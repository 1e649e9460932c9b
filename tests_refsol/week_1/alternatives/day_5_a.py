# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 5 in another style: einsum on reshaped weights, lookups by take, a loader that checks one tensor at a time."""


# file: model/embedding.py
def _look_up(self: Embedding, tokens: mx.array) -> mx.array:
    """Take rows along axis 0."""
    return mx.take(self.weight, tokens, axis=0)


def _score(self: Embedding, x: mx.array) -> mx.array:
    """Sum over the shared axis."""
    return mx.einsum("...e,ve->...v", x, self.weight)


Embedding.__call__ = _look_up
Embedding.as_linear = _score


# file: model/qwen3.py
def _qkv(self: Qwen3Attention, x: mx.array, offset: int = 0) -> tuple[mx.array, mx.array, mx.array]:
    """One einsum per projection: the head axis is an axis of the weight."""
    D = self.head_dim
    q, k, v = (mx.einsum("ble,hde->bhld", x, w.reshape(-1, D, w.shape[-1])) for w in (self.w_q, self.w_k, self.w_v))
    positions = slice(offset, offset + x.shape[1])
    return self.rope(self.q_norm(q), positions), self.rope(self.k_norm(k), positions), v


def _output(self: Qwen3Attention, attended: mx.array) -> mx.array:
    """Sum over heads and features at once."""
    _, H, _, D = attended.shape
    return mx.einsum("bhld,ehd->ble", attended, self.w_o.reshape(-1, H, D))


class Ops(Ops):
    """Attention query by query, which needs no mask."""

    def qkv(self, layer: "Qwen3Block", x: mx.array, offset: int) -> tuple[mx.array, mx.array, mx.array]:
        """Norm, then the projections."""
        normed = layer.input_norm(x)
        return layer.attention.qkv(normed, offset=offset)

    def attend(self, q: mx.array, k: mx.array, v: mx.array, cache: LayerCache | None = None) -> mx.array:
        """Each query sees a prefix of the keys."""
        L = q.shape[2]
        if cache is not None:
            k, v = cache.update(k, v)
        ends = [k.shape[2] - L + i + 1 for i in range(L)]
        rows = [grouped_attention(q[:, :, i : i + 1], k[:, :, :end], v[:, :, :end]) for i, end in enumerate(ends)]
        return mx.concatenate(rows, axis=2)

    def output(self, layer: "Qwen3Block", x: mx.array, attended: mx.array) -> mx.array:
        """The sum, the other way round."""
        return layer.attention.output(attended) + x

    def mlp(self, layer: "Qwen3Block", x: mx.array) -> mx.array:
        """The sum, the other way round."""
        return layer.mlp(layer.post_attention_norm(x)) + x

    def head(self, model: "Qwen3", x: mx.array) -> mx.array:
        """One table or the other."""
        table = model.embedding.weight if model.lm_head is None else model.lm_head
        return mx.einsum("ble,ve->blv", model.norm(x), table)


def _block(self: Qwen3Block, x: mx.array, cache: LayerCache | None = None) -> mx.array:
    """Every step on a line."""
    offset = cache.offset if cache is not None else 0
    queries, keys, values = self.ops.qkv(self, x, offset)
    attended = self.ops.attend(queries, keys, values, cache=cache)
    y = self.ops.output(self, x, attended)
    return self.ops.mlp(self, y)


def _hidden(self: Qwen3, tokens: mx.array, cache: list[LayerCache] | None = None) -> mx.array:
    """Layers and caches side by side."""
    x = self.embedding(tokens)
    for layer, layer_cache in zip(self.layers, cache or [None] * len(self.layers), strict=True):
        x = layer(x, layer_cache)
    return x


Qwen3Attention.qkv, Qwen3Attention.output = _qkv, _output
Qwen3Block.__call__, Qwen3.hidden = _block, _hidden


# file: model/checkpoint.py
import json  # noqa: E402
import os  # noqa: E402


def load_config(folder: Path) -> ModelConfig:
    """Check first, then build."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        raw = json.load(file)
    fixed = {"model_type": "qwen3", "attention_bias": False}
    for key, only in fixed.items():
        if raw.get(key, None if key == "model_type" else only) != only:
            raise ValueError(f"{key} = {raw.get(key)} (only {only} works)")
    scaling = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
    for key in ("rope_type", "type"):
        if scaling.get(key, "default") != "default":
            raise ValueError(f"cannot scale RoPE: {key} (that is, rope_type) = {scaling[key]}")
    values = {
        "head_dim": raw.get("head_dim") or raw.get("hidden_size", 0) // raw.get("num_attention_heads", 1),
        "tie_word_embeddings": bool(raw.get("tie_word_embeddings")),
        "rope_theta": raw.get("rope_theta", (raw.get("rope_parameters") or {}).get("rope_theta")),
        "quantization": _packing(raw.get("quantization", raw.get("quantization_config"))),
    }
    for field in ModelConfig.__dataclass_fields__:
        values.setdefault(field, raw.get(field))
        if values[field] is None and field != "quantization":
            raise ValueError(f"config.json lacks {field}")
    return ModelConfig(**values)


def _packing(packed: dict | None) -> Quantization | None:
    if packed is None:
        return None
    allowed = {"group_size": (32, 64, 128), "bits": (4, 8), "mode": ("affine",)}
    for key, value in packed.items():
        if value not in allowed.get(key, ()):
            raise ValueError(f"quantization: {key} = {value} is not supported")
    if "group_size" not in packed or "bits" not in packed:
        raise ValueError("quantization needs group_size and bits")
    return Quantization(packed["group_size"], packed["bits"])


def load_weights(
    folder: Path, config: ModelConfig, dtype: mx.Dtype | None = None, memory_limit: int | None = None
) -> dict[str, mx.array]:
    """Takes tensor after tensor out of a pool; what is left over is too much."""
    pool: dict[str, mx.array] = {}
    for file in weight_files(folder):
        pool.update(read_safetensors(file))
    weights = {name: _take(pool, name, shape, config.quantization) for name, shape in expected_shapes(config).items()}
    if config.tie_word_embeddings:
        for part in ("weight", "scales", "biases"):
            pool.pop(f"lm_head.{part}", None)
    for name in pool:
        raise ValueError(f"{name} does not belong into this model")
    if dtype is not None:
        weights = {name: w.astype(dtype) for name, w in weights.items()}
    if memory_limit is not None:
        total = sum(w.size * w.dtype.size for w in weights.values())
        if total > memory_limit:
            raise MemoryError(f"{total} bytes are more than {memory_limit}")
    return weights


def _take(pool: dict[str, mx.array], name: str, shape: tuple[int, ...], packing: Quantization | None) -> mx.array:
    if name not in pool:
        raise ValueError(f"there is no tensor {name}")
    w, stem = pool.pop(name), name.removesuffix("weight")
    if packing and stem + "scales" in pool:
        if stem + "biases" not in pool:
            raise ValueError(f"there is no tensor {stem}biases")
        scales, biases = pool.pop(stem + "scales"), pool.pop(stem + "biases")
        if w.dtype != mx.uint32 or w.ndim != 2 or scales.shape != (w.shape[0], shape[-1] // packing.group_size):
            raise ValueError(f"{name} is not packed in groups of {packing.group_size}")
        if w.shape[1] * 32 != shape[-1] * packing.bits:
            raise ValueError(f"{name} is not packed in {packing.bits} bits")
        w = mx.dequantize(w, scales, biases, group_size=packing.group_size, bits=packing.bits)
    if w.shape != shape:
        raise ValueError(f"{name} is {w.shape} and should be {shape}")
    if not mx.issubdtype(w.dtype, mx.floating):
        raise ValueError(f"{name} holds {w.dtype}")
    return w
