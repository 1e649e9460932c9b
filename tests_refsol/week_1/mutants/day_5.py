"""Plausible wrong solutions of Week 1 Day 5, and the case that catches each."""

from course.mutants import Mutant

EMBEDDING, QWEN3, CHECKPOINT = "model/embedding.py", "model/qwen3.py", "model/checkpoint.py"


def embedding(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 1, EMBEDDING, old, new, message, killer)


def attention(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 2, QWEN3, old, new, message, killer)


def model(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 3, QWEN3, old, new, message, killer)


def loader(name: str, old: str, new: str, message: str, killer: str) -> Mutant:
    return Mutant(name, 4, CHECKPOINT, old, new, message, killer)


LOOKUP = "self.weight[tokens]\n"
AS_HEAD = "return linear(x, self.weight)"
_EMBEDDING = [
    embedding(
        "lookup-scaled",
        LOOKUP,
        "self.weight[tokens] * self.weight.shape[-1] ** 0.5\n",
        "the rows were scaled by sqrt(E)",
        "EmbeddingLooksUpRows",
    ),
    embedding("lookup-flat", LOOKUP, "mx.take(self.weight, tokens)\n", "the shape is wrong", "EmbeddingLooksUpRows"),
    embedding(
        "lookup-float32",
        LOOKUP,
        "self.weight[tokens].astype(mx.float32)\n",
        "the dtype is wrong",
        "EmbeddingLooksUpRows",
    ),
    embedding(
        "head-not-transposed",
        AS_HEAD,
        "return x @ self.weight",
        "the table was not transposed",
        "EmbeddingScoresEveryRow",
    ),
    embedding(
        "head-scaled",
        AS_HEAD,
        "return linear(x, self.weight) * self.weight.shape[-1] ** -0.5",
        "the logits were divided by sqrt(E)",
        "EmbeddingScoresEveryRow",
    ),
    embedding(
        "head-float32",
        AS_HEAD,
        "return linear(x, self.weight).astype(mx.float32)",
        "the dtype is wrong",
        "EmbeddingScoresEveryRow",
    ),
]

QKV = "return self.rope(self.q_norm(q), offset), self.rope(self.k_norm(k), offset), v"
SPLIT = "mx.unflatten(x, -1, (heads, self.head_dim)).swapaxes(1, 2)"
JOIN = "attended.swapaxes(1, 2).flatten(2)"
MASK = "causal_mask(q.shape[-2], k.shape[-2], q.dtype)"
_ATTENTION = [
    attention(
        "no-qk-norm",
        QKV,
        "return self.rope(q, offset), self.rope(k, offset), v",
        "q_norm and k_norm were left out",
        "QkvMatchesFloat64",
    ),
    attention(
        "norm-after-rope",
        QKV,
        "return self.q_norm(self.rope(q, offset)), self.k_norm(self.rope(k, offset)), v",
        "the heads were rotated before their norm",
        "QkvMatchesFloat64",
    ),
    attention(
        "norms-swapped",
        QKV,
        "return self.rope(self.k_norm(q), offset), self.rope(self.q_norm(k), offset), v",
        "q_norm and k_norm were swapped",
        "QkvMatchesFloat64",
    ),
    attention(
        "values-normed",
        QKV,
        "return self.rope(self.q_norm(q), offset), self.rope(self.k_norm(k), offset), self.k_norm(v)",
        "the values were normalised",
        "QkvMatchesFloat64",
    ),
    attention(
        "values-rotated",
        QKV,
        "return self.rope(self.q_norm(q), offset), self.rope(self.k_norm(k), offset), self.rope(v, offset)",
        "the values were rotated",
        "QkvMatchesFloat64",
    ),
    attention(
        "offset-ignored",
        QKV,
        "return self.rope(self.q_norm(q)), self.rope(self.k_norm(k)), v",
        "the offset was ignored",
        "QkvStartsAtTheOffset",
    ),
    attention("values-by-w-k", "linear(x, self.w_v)", "linear(x, self.w_k)", "w_k was used", "QkvMatchesFloat64"),
    attention(
        "split-by-reshape",
        SPLIT,
        "x.reshape(x.shape[0], heads, -1, self.head_dim)",
        "the heads were split by a reshape alone",
        "QkvMatchesFloat64",
    ),
    attention(
        "join-by-reshape",
        JOIN,
        "attended.reshape(attended.shape[0], attended.shape[2], -1)",
        "the heads were joined by a reshape alone",
        "OutputJoinsTheHeads",
    ),
    attention(
        "w-o-not-transposed",
        f"linear({JOIN}, self.w_o)",
        f"{JOIN} @ self.w_o",
        "w_o was not transposed",
        "OutputJoinsTheHeads",
    ),
    attention("no-mask", f", mask={MASK}", "", "nothing was masked", "AttendIsCausalAndGrouped"),
    attention(
        "mask-queries-first",
        MASK,
        "causal_mask(k.shape[-2], k.shape[-2], q.dtype)[: q.shape[-2]]",
        "as if they stood before the cached ones",
        "AttendSeesTheCache",
    ),
    attention(
        "empty-cache-is-none",
        "if cache is not None:\n            k, v =",
        "if cache:\n            k, v =",
        "an empty cache was taken for no cache",
        "AttendSeesTheCache",
    ),
    attention(
        "cache-not-read",
        "k, v = cache.update(k, v)",
        "cache.update(k, v)",
        "only the new keys and values were used",
        "AttendSeesTheCache",
    ),
    attention(
        "cache-updated-twice",
        "k, v = cache.update(k, v)",
        "cache.update(k, v)\n            k, v = cache.update(k, v)",
        "the cache was updated 2 times",
        "AttendSeesTheCache",
    ),
]

OUTPUT = "return x + layer.attention.output(attended)"
MLP = "return x + layer.mlp(layer.post_attention_norm(x))"
HEAD = "return model.embedding.as_linear(x) if model.lm_head is None else linear(x, model.lm_head)"
BLOCK = "        x = self.ops.output(self, x, self.ops.attend(q, k, v, cache))\n        return self.ops.mlp(self, x)\n"
CACHES = "x = layer(x, None if cache is None else cache[i])"
_MODEL = [
    model(
        "qkv-not-normed",
        "layer.attention.qkv(layer.input_norm(x), offset)",
        "layer.attention.qkv(x, offset)",
        "the input norm was left out",
        "OpsQkvReadsANormedCopy",
    ),
    model(
        "output-replaces",
        OUTPUT,
        "return layer.attention.output(attended)",
        "the stream was left out",
        "OpsOutputAddsToTheStream",
    ),
    model(
        "output-in-place",
        OUTPUT,
        "x += layer.attention.output(attended)\n        return x",
        "x after the call was changed",
        "OpsOutputAddsToTheStream",
    ),
    model("mlp-replaces", MLP, MLP.replace("x + ", ""), "the stream was left out", "OpsMlpAddsToTheStream"),
    model(
        "mlp-adds-to-copy",
        MLP,
        "x = layer.post_attention_norm(x)\n        return x + layer.mlp(x)",
        "the MLP was added to the normalised copy",
        "OpsMlpAddsToTheStream",
    ),
    model(
        "mlp-wrong-norm",
        MLP,
        MLP.replace("post_attention_norm", "input_norm"),
        "the input norm was used for the MLP",
        "OpsMlpAddsToTheStream",
    ),
    model("no-final-norm", "        x = model.norm(x)\n", "", "the final norm was left out", "OpsHeadIsTiedOrNot"),
    model(
        "head-always-tied",
        HEAD,
        "return model.embedding.as_linear(x)",
        "the embedding was used, not lm_head",
        "OpsHeadIsTiedOrNot",
    ),
    model(
        "mlp-beside-attention",
        BLOCK,
        "        y = self.ops.output(self, x, self.ops.attend(q, k, v, cache))\n"
        "        return y + self.ops.mlp(self, x) - x\n",
        "the MLP read the stream as it was before attention",
        "BlockMatchesFloat64",
    ),
    model(
        "block-mlp-first",
        BLOCK,
        "        x = self.ops.mlp(self, x)\n"
        "        q, k, v = self.ops.qkv(self, x, 0 if cache is None else cache.offset)\n"
        "        return self.ops.output(self, x, self.ops.attend(q, k, v, cache))\n",
        "the MLP ran before attention",
        "BlockMatchesFloat64",
    ),
    model(
        "block-bypasses-ops",
        "return self.ops.mlp(self, x)\n",
        "return x + self.mlp(self.post_attention_norm(x))\n",
        "the block should call the steps",
        "BlockRunsItsOps",
    ),
    model(
        "block-offset-zero",
        "0 if cache is None else cache.offset",
        "0",
        "the first token of each chunk was placed at 0",
        "CachedChunksEqualTheWhole",
    ),
    model(
        "block-forgets-cache",
        "self.ops.attend(q, k, v, cache)",
        "self.ops.attend(q, k, v)",
        "attend was not given the cache",
        "BlockRunsItsOps",
    ),
    model(
        "one-cache-for-all",
        CACHES,
        CACHES.replace("cache[i]", "cache[0]"),
        "each layer has its own",
        "CachedChunksEqualTheWhole",
    ),
    model(
        "last-layer-left-out",
        "enumerate(self.layers)",
        "enumerate(self.layers[:-1])",
        "the last layer was left out",
        "ModelMatchesFloat64",
    ),
    model(
        "layers-reversed",
        "enumerate(self.layers)",
        "enumerate(self.layers[::-1])",
        "the layers ran in reverse order",
        "ModelMatchesTransformers",
    ),
    model(
        "last-position-only",
        "return self.ops.head(self, self.hidden(tokens, cache))",
        "return self.ops.head(self, self.hidden(tokens, cache)[:, -1:])",
        "only the last position was scored",
        "ModelMatchesFloat64",
    ),
    model(
        "plain-head",
        "return self.ops.head(self, self.hidden(tokens, cache))",
        "return Ops().head(self, self.hidden(tokens, cache))",
        "the head of the ops was not used",
        "ModelRunsTheOpsItWasGiven",
    ),
]

HEAD_DIM = 'raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"]'
CAST = ".astype(dtype or weights[name].dtype)"
_CONFIG = [
    loader(
        "head-dim-derived",
        HEAD_DIM,
        'raw["hidden_size"] // raw["num_attention_heads"]',
        "head_dim should be",
        "ConfigIsRead",
    ),
    loader(
        "head-dim-null",
        HEAD_DIM,
        'raw.get("head_dim", raw["hidden_size"] // raw["num_attention_heads"])',
        "head_dim should be",
        "ConfigHasDefaults",
    ),
    loader("head-dim-required", HEAD_DIM, 'raw["head_dim"]', "has no key 'head_dim'", "ConfigHasDefaults"),
    loader(
        "theta-at-top-only",
        'raw["rope_theta"] if "rope_theta" in raw else rope["rope_theta"]',
        'raw["rope_theta"]',
        "has no key 'rope_theta'",
        "ConfigIsRead",
    ),
    loader(
        "theta-default",
        'raw["rope_theta"] if "rope_theta" in raw else rope["rope_theta"]',
        'raw.get("rope_theta", 1e6)',
        "was accepted",
        "ConfigNamesTheMissingKey",
    ),
    loader(
        "tied-by-default",
        '"tie_word_embeddings", False',
        '"tie_word_embeddings", True',
        "tie_word_embeddings should be False",
        "ConfigHasDefaults",
    ),
    loader(
        "any-model-type",
        'if raw.get("model_type") != "qwen3":',
        'if "model_type" not in raw:',
        "a config with another model_type was accepted",
        "ConfigRefusesWhatItCannotRun",
    ),
    loader(
        "rope-scaling-ignored",
        'scaling = raw.get("rope_scaling") or rope',
        "scaling = rope",
        "a config with scaled RoPE was accepted",
        "ConfigRefusesWhatItCannotRun",
    ),
    loader(
        "any-bits",
        ' and packed.get("bits") in (4, 8)',
        "",
        "a config with 3 bits was accepted",
        "ConfigRefusesWhatItCannotRun",
    ),
    loader(
        "packing-swapped",
        'Quantization(packed["group_size"], packed["bits"])',
        'Quantization(packed["bits"], packed["group_size"])',
        "quantization should be",
        "ConfigReadsTheQuantization",
    ),
]
_WEIGHTS = [
    loader(
        "first-shard-only",
        "in weight_files(folder)",
        "in weight_files(folder)[:1]",
        "tensors are missing in",
        "WeightsAreRead",
    ),
    loader(
        "all-files-of-the-folder",
        "in weight_files(folder)",
        'in sorted(folder.glob("*.safetensors"))',
        "a safetensors file that the index does not name, should be ignored",
        "WhatIsNotAskedForIsIgnored",
    ),
    loader(
        "unchecked-file",
        "read_safetensors(file)",
        "mx.load(str(file))",
        "raised RuntimeError, not ValueError",
        "DamagedFilesAreRefused",
    ),
    loader(
        "spare-head-kept",
        'weights.pop("lm_head.weight", None)',
        "pass",
        "an lm_head.weight beside tied embeddings, as Qwen3-0.6B has, should be ignored",
        "WhatIsNotAskedForIsIgnored",
    ),
    loader(
        "missing-unchecked",
        "if missing := sorted(shapes.keys() - weights.keys()):",
        "if missing := []:",
        "raised KeyError, not ValueError",
        "MissingTensorsAreNamed",
    ),
    loader(
        "missing-counted-only",
        "if missing := sorted(shapes.keys() - weights.keys()):\n"
        '        raise ValueError(f"{len(missing)} tensors are missing in {folder}, the first is {missing[0]}")',
        "if missing := sorted(shapes.keys() - weights.keys()):\n"
        '        raise ValueError(f"{len(missing)} tensors are missing in {folder}")',
        "should name",
        "MissingTensorsAreNamed",
    ),
    loader(
        "extra-unchecked",
        "if extra := sorted(weights.keys() - shapes.keys()):",
        "if extra := []:",
        "was accepted",
        "UnexpectedTensorsAreNamed",
    ),
    loader("shape-unchecked", "if weights[name].shape != shape:", "if False:", "was accepted", "WrongShapesAreNamed"),
    loader(
        "only-size-checked",
        "if weights[name].shape != shape:",
        "if sorted(weights[name].shape) != sorted(shape):",
        "was accepted",
        "WrongShapesAreNamed",
    ),
    loader(
        "integers-cast",
        "if weights[name].dtype not in FLOATS:",
        "if False:",
        "made of integers was accepted",
        "IntegersAreRefused",
    ),
    loader("dtype-ignored", CAST, "", "the dtype is wrong", "WeightsTakeTheDtypeAskedFor"),
    loader(
        "always-float32",
        CAST,
        ".astype(dtype or mx.float32)",
        "the dtype is wrong",
        "WeightsTakeTheDtypeAskedFor",
    ),
    loader(
        "packed-error-unnamed",
        'raise ValueError(f"{name} cannot be dequantised with {packing}: {error}") from None',
        "raise",
        "a packed tensor with scales of another shape should name",
        "HalfPackedTensorsAreNamed",
    ),
    loader(
        "always-four-bits",
        "packing.group_size, packing.bits)",
        "packing.group_size, 4)",
        "cannot be dequantised",
        "PackedWeightsAreUnpacked",
    ),
    loader(
        "scales-converted-first",
        "weights = _dequantize(stored, config.quantization)",
        'stored = {n: w.astype(dtype) if dtype and n[-1] == "s" else w for n, w in stored.items()}  # scales, biases\n'
        "    weights = _dequantize(stored, config.quantization)",
        "were scales and biases converted before they were used?",
        "UnpackedWeightsAreRoundedOnce",
    ),
    loader(
        "memory-of-the-files",
        "sum(w.nbytes for w in weights.values())",
        "sum(w.nbytes for w in stored.values())",
        "bytes of weights fit into",
        "WhatDoesNotFitIsRefused",
    ),
    loader(
        "memory-ignored",
        "memory_limit is not None and needed > memory_limit",
        "memory_limit and needed > memory_limit",
        "under a limit of 0 was accepted",
        "WhatDoesNotFitIsRefused",
    ),
    loader(
        "memory-read-first",
        "    needed = sum(",
        "    mx.eval(weights)\n    needed = sum(",
        "were read before the MemoryError",
        "TooLargeIsRefusedBeforeItIsRead",
    ),
]

MUTANTS = [*_EMBEDDING, *_ATTENTION, *_MODEL, *_CONFIG, *_WEIGHTS]
