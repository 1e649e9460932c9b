# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 5 in another style: loops over heads, float32 inside, one-hot lookups, and NumPy for reading and unpacking."""


# file: model/embedding.py
class Embedding(Embedding):
    """Lookup as a product with one-hot rows, scores as a sum of products."""

    def __call__(self, tokens: mx.array) -> mx.array:
        """One row of ones and zeros per token."""
        V = self.weight.shape[0]
        one_hot = (tokens[..., None].astype(mx.int32) == mx.arange(V, dtype=mx.int32)).astype(self.weight.dtype)
        return (one_hot.reshape(-1, V) @ self.weight).reshape(*tokens.shape, self.weight.shape[1])

    def as_linear(self, x: mx.array) -> mx.array:
        """In float32."""
        wide, table = x.astype(mx.float32), self.weight.astype(mx.float32)
        return mx.sum(wide[..., None, :] * table, axis=-1).astype(x.dtype)


# file: model/qwen3.py
from .basics import softmax  # noqa: E402


class Qwen3Attention(Qwen3Attention):
    """Head after head."""

    def qkv(self, x: mx.array, offset: int = 0) -> tuple[mx.array, mx.array, mx.array]:
        """Cut each projection's rows into heads, and treat each head alone."""

        def heads(w: mx.array, treat) -> mx.array:
            return mx.stack([treat(linear(x, part)) for part in mx.split(w, w.shape[0] // self.head_dim)], axis=1)

        def place(norm: RMSNorm):
            return lambda head: self.rope(norm(head), offset)

        return heads(self.w_q, place(self.q_norm)), heads(self.w_k, place(self.k_norm)), heads(self.w_v, lambda h: h)

    def output(self, attended: mx.array) -> mx.array:
        """Each head has its own columns of w_o; their results add up."""
        D, wide = self.head_dim, mx.float32
        parts = [
            attended[:, h].astype(wide) @ self.w_o[:, h * D : (h + 1) * D].T.astype(wide)
            for h in range(attended.shape[1])
        ]
        return sum(parts[1:], parts[0]).astype(attended.dtype)


class Ops(Ops):
    """Attention in float32, one query head at a time, masked by positions."""

    def qkv(self, layer: "Qwen3Block", x: mx.array, offset: int) -> tuple[mx.array, mx.array, mx.array]:
        """Not changed."""
        return layer.attention.qkv(layer.input_norm(x), offset)

    def attend(self, q: mx.array, k: mx.array, v: mx.array, cache: LayerCache | None = None) -> mx.array:
        """Loop over the query heads."""
        if cache is not None:
            k, v = cache.update(k, v)
        L, S, group = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
        hidden = mx.arange(S) > mx.arange(S - L, S)[:, None]
        heads = []
        for h in range(q.shape[1]):
            scores = q[:, h].astype(mx.float32) @ k[:, h // group].astype(mx.float32).swapaxes(1, 2)
            weights = softmax(mx.where(hidden, -mx.inf, scores / q.shape[-1] ** 0.5))
            heads.append(weights @ v[:, h // group].astype(mx.float32))
        return mx.stack(heads, axis=1).astype(q.dtype)

    def output(self, layer: "Qwen3Block", x: mx.array, attended: mx.array) -> mx.array:
        """Summed in float32."""
        return (x.astype(mx.float32) + layer.attention.output(attended).astype(mx.float32)).astype(x.dtype)

    def mlp(self, layer: "Qwen3Block", x: mx.array) -> mx.array:
        """Summed in float32."""
        change = layer.mlp(layer.post_attention_norm(x))
        return (x.astype(mx.float32) + change.astype(mx.float32)).astype(x.dtype)

    def head(self, model: "Qwen3", x: mx.array) -> mx.array:
        """Position after position."""
        scores = model.embedding.as_linear if model.lm_head is None else lambda row: linear(row, model.lm_head)
        normed = model.norm(x)
        return mx.stack([scores(normed[:, i]) for i in range(x.shape[1])], axis=1)


class Qwen3Block(Qwen3Block):
    """Written out twice."""

    def __call__(self, x: mx.array, cache: LayerCache | None = None) -> mx.array:
        """With a cache, and without."""
        if cache is None:
            attended = self.ops.attend(*self.ops.qkv(self, x, 0))
        else:
            attended = self.ops.attend(*self.ops.qkv(self, x, cache.offset), cache)
        return self.ops.mlp(self, self.ops.output(self, x, attended))


class Qwen3(Qwen3):
    """Recursive."""

    def hidden(self, tokens: mx.array, cache: list[LayerCache] | None = None) -> mx.array:
        """Down to the embedding and back."""

        def stream(n: int) -> mx.array:
            if n == 0:
                return self.embedding(tokens)
            return self.layers[n - 1](stream(n - 1), cache[n - 1] if cache is not None else None)

        return stream(len(self.layers))


# file: model/checkpoint.py
import numpy as np  # noqa: E402


class _Raw(dict):
    """A dict that names the key it lacks."""

    def __missing__(self, key: str) -> None:
        raise ValueError(f"config.json: {key} is missing")


def load_config(folder: Path) -> ModelConfig:
    """Field by field, from a dict that complains."""
    raw = _Raw(read_json(Path(folder) / "config.json"))
    if raw["model_type"] != "qwen3":
        raise ValueError("model_type: " + str(raw["model_type"]))
    if raw.get("attention_bias", False) is not False:
        raise ValueError(f"attention_bias: {raw['attention_bias']}")
    nested = _Raw(raw.get("rope_parameters") or {})
    kinds = [d[key] for d in (nested, raw.get("rope_scaling") or {}) for key in ("rope_type", "type") if key in d]
    if any(kind != "default" for kind in kinds):
        raise ValueError(f"rope_type: {kinds}")
    packed = raw.get("quantization") or raw.get("quantization_config")
    if packed and not (
        packed.keys() <= {"group_size", "bits", "mode"}
        and packed.get("mode", "affine") == "affine"
        and packed.get("bits") in {4, 8}
        and packed.get("group_size") in {32, 64, 128}
    ):
        raise ValueError(f"quantization: {packed}")
    return ModelConfig(
        *(raw[key] for key in ("hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads")),
        raw["num_key_value_heads"],
        raw["head_dim"] if raw.get("head_dim") else raw["hidden_size"] // raw["num_attention_heads"],
        raw["vocab_size"],
        raw["rms_norm_eps"],
        nested["rope_theta"] if nested else raw["rope_theta"],
        raw["max_position_embeddings"],
        raw.get("tie_word_embeddings") is True,
        Quantization(packed["group_size"], packed["bits"]) if packed else None,
    )


def load_weights(
    folder: Path, config: ModelConfig, dtype: mx.Dtype | None = None, memory_limit: int | None = None
) -> dict[str, mx.array]:
    """Collect every complaint before anything is unpacked."""
    stored = {}
    for file in weight_files(Path(folder)):
        stored |= read_safetensors(file)
    shapes, packing = expected_shapes(config), config.quantization
    parts = {name: _parts(stored, name, packing) for name in shapes}
    known = {part for names in parts.values() for part in names}
    spare = {f"lm_head.{part}" for part in ("weight", "scales", "biases")} if config.tie_word_embeddings else set()
    complaints = [f"missing {name}" for name in sorted(known - stored.keys())]
    complaints += [f"unexpected {name}" for name in sorted(stored.keys() - known - spare)]
    if complaints:
        raise ValueError("; ".join(complaints))
    total = 0
    for name, shape in shapes.items():
        w, *rest = (stored[part] for part in parts[name])
        if _unpacked_shape(w, rest, packing) != shape or any(x.dtype not in FLOATS for x in rest or [w]):
            raise ValueError(f"{name}: shape {w.shape} or dtype {w.dtype} is wrong")
        total += int(np.prod(shape)) * (dtype or (rest or [w])[0].dtype).size
    if memory_limit is not None and not total <= memory_limit:
        raise MemoryError(f"{total} bytes, {memory_limit} allowed")
    arrays = {name: [stored[part] for part in names] for name, names in parts.items()}
    weights = {name: _unpack(*x, packing.bits) if len(x) > 1 else x[0] for name, x in arrays.items()}
    return weights if dtype is None else {name: w.astype(dtype) for name, w in weights.items()}


def _parts(stored: dict[str, mx.array], name: str, packing: Quantization | None) -> list[str]:
    stem = name.removesuffix("weight")
    if packing is None or (stem + "scales" not in stored and stem + "biases" not in stored):
        return [name]
    return [name, stem + "scales", stem + "biases"]


def _unpacked_shape(w: mx.array, rest: list[mx.array], packing: Quantization | None) -> tuple[int, ...]:
    if not rest:
        return w.shape
    scales, biases = rest
    columns = w.shape[1] * 32 // packing.bits
    fits = w.dtype == mx.uint32 and scales.shape == biases.shape == (w.shape[0], columns // packing.group_size)
    return (w.shape[0], columns) if fits else ()


def _unpack(w: mx.array, scales: mx.array, biases: mx.array, bits: int) -> mx.array:
    """Bytes or half bytes of each word, lowest first."""
    levels = np.array(w).view(np.uint8)
    if bits == 4:
        levels = np.stack([levels & 15, levels >> 4], axis=-1)
    levels = mx.array(levels.reshape(*scales.shape, -1).astype(np.float32))
    rows = levels * scales[..., None].astype(mx.float32) + biases[..., None].astype(mx.float32)
    return rows.reshape(w.shape[0], -1).astype(scales.dtype)
