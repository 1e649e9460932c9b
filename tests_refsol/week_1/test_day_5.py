"""Day 5, the model: Qwen3 in float64, transformers' logits, MLX's own attention and our own safetensors writer."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict

import mlx.core as mx
import numpy as np

from course.case import case, error_of
from course.checkpoint_files import files_of, folder_of, packed, safetensors, unpacked, wide
from course.checkpoints import Shape, hf_config
from course.compare import close
from course.golden import GOLDEN_SHAPES, load_golden
from course.model_case import TOLERANCE, config_of, model_inputs, model_of, oracle, tokens_of
from course.qwen3_float64 import Qwen3Float64
from course.qwen3_mistakes import (
    ATTEND_MISTAKES,
    BLOCK_MISTAKES,
    MODEL_MISTAKES,
    OUTPUT_MISTAKES,
    QKV_MISTAKES,
    NotNormed,
    forgetful,
)

FLOATS = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}
# After several roundings.
STEP = {mx.float32: 2e-5, mx.float16: 4e-3, mx.bfloat16: 2.5e-2}

GQA = {"hidden": 24, "heads": 4, "kv_heads": 2, "head_dim": 8, "intermediate": 20, "vocab": 31}
MQA = {"hidden": 20, "heads": 5, "kv_heads": 1, "head_dim": 6, "intermediate": 14, "vocab": 17}
MHA = {"hidden": 12, "heads": 3, "kv_heads": 3, "head_dim": 4, "intermediate": 18, "vocab": 12}  # H * D = E = V
WIDE = {"hidden": 10, "heads": 6, "kv_heads": 3, "head_dim": 12, "intermediate": 9, "vocab": 23}

EMPTY_IS_NO_CACHE = "an empty cache was taken for no cache: it can be false, so ask `cache is not None`"


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: mx.Dtype = mx.float32) -> mx.array:
    return mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)


def parts_of(solution, inputs: dict):
    """What a layer is made from: its config, its weights, a RoPE."""
    config, qwen3 = config_of(solution, inputs["sizes"]), solution.module("model.qwen3")
    rope = solution.module("model.rope").RoPE(config.head_dim, config.max_position_embeddings, config.rope_theta)
    return config, qwen3.layer_weights(inputs["weights"], 0), rope


def attention_of(solution, inputs: dict):
    return solution.module("model.qwen3").Qwen3Attention(*parts_of(solution, inputs))


def block_of(solution, inputs: dict, ops=None):
    qwen3 = solution.module("model.qwen3")
    return qwen3.Qwen3Block(*parts_of(solution, inputs), ops or qwen3.Ops())


class Cache:
    """A layer cache that joins what it is given, and notes it. Empty, it is false, as containers are."""

    def __init__(self):
        self.offset, self.given = 0, []

    def __len__(self) -> int:
        return self.offset

    def update(self, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array]:
        self.given.append((k, v))
        self.offset += k.shape[2]
        return tuple(mx.concatenate([pair[i] for pair in self.given], axis=2) for i in (0, 1))


def suspects_of(inputs: dict, mistakes: dict[str, type], run: Callable[[Qwen3Float64], np.ndarray]) -> dict:
    """What each mistaken model returns, by its mistake."""
    return {text: lambda kind=kind: run(oracle(inputs, kind)) for text, kind in mistakes.items()}


@case(
    task=1,
    params=[
        {"shape": (), "V": 9, "E": 4},
        {"shape": (7,), "V": 6, "E": 6},
        {"shape": (2, 5), "V": 11, "E": 3, "tokens": "uint32"},
        {"shape": (2, 1, 4), "V": 4, "E": 8, "tokens": "int64"},
        {"shape": (3, 4), "V": 9, "E": 5, "dtype": mx.float16},
        {"shape": (3, 4), "V": 9, "E": 5, "dtype": mx.bfloat16},
    ],
)
class EmbeddingLooksUpRows:
    """Each token becomes its row of the table, unchanged, for any shape of tokens."""

    def inputs(rng, shape, V, E, tokens="int32", dtype=mx.float32):
        chosen = rng.integers(0, V, shape)
        if shape:
            chosen.flat[0], chosen.flat[-1] = V - 1, 0
        return {"weight": normal(rng, (V, E), dtype), "tokens": mx.array(chosen.astype(tokens))}

    def observe(solution, inputs):
        return solution.module("model.embedding").Embedding(inputs["weight"])(inputs["tokens"])

    def verify(inputs, got):
        table, tokens = wide(inputs["weight"]), np.array(inputs["tokens"])
        want = table[tokens]
        suspects = {
            "the rows were scaled by sqrt(E): some models do, Qwen3 does not": want * math.sqrt(table.shape[1]),
            "the tokens were taken to start at 1": table[tokens.astype(int) - 1],
            "columns were looked up, not rows": lambda: table.T[tokens],
            "the rows were normalised": want / np.linalg.norm(want, axis=-1, keepdims=True),
        }
        close(got, want, tol=0.0, dtype=inputs["weight"].dtype, suspects=suspects, what="Embedding(weight)(tokens)")


@case(
    task=1,
    params=[
        {"leading": (), "V": 9, "E": 4},
        {"leading": (3,), "V": 6, "E": 6},
        {"leading": (2, 5), "V": 11, "E": 3},
        {"leading": (2, 1, 4), "V": 4, "E": 8},
        {"leading": (3, 4), "V": 9, "E": 5, "dtype": mx.float16},
        {"leading": (3, 4), "V": 9, "E": 5, "dtype": mx.bfloat16},
    ],
)
class EmbeddingScoresEveryRow:
    """As a head, the table gives the dot product of x with each of its rows: raw logits, in the dtype of x."""

    def inputs(rng, leading, V, E, dtype=mx.float32):
        return {"weight": normal(rng, (V, E), dtype), "x": normal(rng, (*leading, E), dtype)}

    def observe(solution, inputs):
        return solution.module("model.embedding").Embedding(inputs["weight"]).as_linear(inputs["x"])

    def verify(inputs, got):
        table, x = wide(inputs["weight"]), wide(inputs["x"])
        want = x @ table.T
        exponentials = np.exp(want - want.max(-1, keepdims=True))
        suspects = {
            "the table was not transposed: the logits are x with its rows": lambda: x @ table,
            "the logits went through softmax: a head returns raw scores": exponentials
            / exponentials.sum(-1, keepdims=True),
            "the logits were divided by sqrt(E)": want / math.sqrt(table.shape[1]),
            "the rows were normalised": want / np.linalg.norm(table, axis=-1),
        }
        dtype = inputs["x"].dtype
        close(got, want, tol=STEP[dtype], dtype=dtype, suspects=suspects, what="Embedding(weight).as_linear(x)")


LAYERS = [
    {"sizes": GQA, "B": 2, "L": 5},
    {"sizes": MQA, "B": 1, "L": 6},
    {"sizes": MHA, "B": 2, "L": 3},
    {"sizes": WIDE, "B": 3, "L": 4},
    {"sizes": GQA, "B": 2, "L": 1},
    {"sizes": GQA, "B": 2, "L": 5, "dtype": mx.float16},
    {"sizes": WIDE, "B": 2, "L": 5, "dtype": mx.bfloat16},
]


def check_qkv(inputs: dict, got: list, run: Callable[[Qwen3Float64], tuple], what: str) -> None:
    dtype = inputs["x"].dtype
    for i, (name, want) in enumerate(zip("qkv", run(oracle(inputs)), strict=True)):
        suspects = suspects_of(inputs, QKV_MISTAKES, lambda model, i=i: run(model)[i])
        close(got[i], want, tol=STEP[dtype], dtype=dtype, suspects=suspects, what=f"{name} of {what}")


@case(task=2, params=LAYERS)
class QkvMatchesFloat64:
    """Queries and keys are projected, split, normalised per head and rotated; values are only projected and split."""

    def inputs(rng, sizes, B, L, dtype=mx.float32):
        inputs = model_inputs(rng, sizes | {"layers": 1}, dtype)
        return inputs | {"x": normal(rng, (B, L, sizes["hidden"]), dtype)}

    def observe(solution, inputs):
        return list(attention_of(solution, inputs).qkv(inputs["x"]))

    def verify(inputs, got):
        check_qkv(inputs, got, lambda model: model.qkv(0, wide(inputs["x"])), "Qwen3Attention.qkv(x)")


@case(task=2, params=[{"offset": 1}, {"offset": 7, "L": 1}, {"offset": 58}])
class QkvStartsAtTheOffset:
    """The first token stands at position `offset`, the next one after it, and so on."""

    def inputs(rng, offset, L=5):
        inputs = model_inputs(rng, GQA | {"layers": 1, "rope_theta": 50.0})
        return inputs | {"x": normal(rng, (2, L, 24)), "offset": offset}

    def observe(solution, inputs):
        return list(attention_of(solution, inputs).qkv(inputs["x"], inputs["offset"]))

    def verify(inputs, got):
        x, offset = wide(inputs["x"]), inputs["offset"]
        check_qkv(inputs, got, lambda model: model.qkv(0, x, offset), f"Qwen3Attention.qkv(x, {offset})")


@case(task=2, params=LAYERS)
class OutputJoinsTheHeads:
    """The heads of each token stand side by side again and are projected back to E."""

    def inputs(rng, sizes, B, L, dtype=mx.float32):
        inputs = model_inputs(rng, sizes | {"layers": 1}, dtype)
        return inputs | {"x": normal(rng, (B, sizes["heads"], L, sizes["head_dim"]), dtype)}

    def observe(solution, inputs):
        return attention_of(solution, inputs).output(inputs["x"])

    def verify(inputs, got):
        dtype, x = inputs["x"].dtype, wide(inputs["x"])
        suspects = suspects_of(inputs, OUTPUT_MISTAKES, lambda model: model.output(0, x))
        want = oracle(inputs).output(0, x)
        close(got, want, tol=STEP[dtype], dtype=dtype, suspects=suspects, what="Qwen3Attention.output(attended)")


def heads_of(rng: np.random.Generator, sizes: dict, B: int, S: int, L: int, dtype: mx.Dtype) -> dict[str, mx.array]:
    """q of the last L, k and v of all S positions."""
    counts = {"q": (sizes["heads"], L), "k": (sizes["kv_heads"], S), "v": (sizes["kv_heads"], S)}
    return {name: normal(rng, (B, *count, sizes["head_dim"]), dtype) for name, count in counts.items()}


def check_attended(inputs: dict, got: object) -> None:
    q, k, v = (inputs[name] for name in "qkv")
    exact = [x.astype(mx.float32) for x in (q, k, v)]
    want = mx.fast.scaled_dot_product_attention(*exact, scale=q.shape[-1] ** -0.5, mask="causal")
    suspects = suspects_of(inputs, ATTEND_MISTAKES, lambda model: model.attend(wide(q), wide(k), wide(v)))
    close(got, want, tol=STEP[q.dtype], dtype=q.dtype, suspects=suspects, what="Ops.attend(q, k, v)")


@case(task=2, params=LAYERS)
class AttendIsCausalAndGrouped:
    """Without a cache, each token attends to itself and to what came before it, as in MLX's own operator."""

    def inputs(rng, sizes, B, L, dtype=mx.float32):
        return {"sizes": asdict(Shape(**sizes)), "weights": {}} | heads_of(rng, sizes, B, L, L, dtype)

    def observe(solution, inputs):
        return solution.module("model.qwen3").Ops().attend(inputs["q"], inputs["k"], inputs["v"])

    def verify(inputs, got):
        check_attended(inputs, got)


@case(
    task=2,
    params=[
        {"sizes": GQA, "old": 4, "L": 3},
        {"sizes": MQA, "old": 6, "L": 1},
        {"sizes": WIDE, "old": 2, "L": 5},
        {"sizes": MHA, "old": 0, "L": 4},
        {"sizes": GQA, "old": 5, "L": 2, "dtype": mx.bfloat16},
    ],
)
class AttendSeesTheCache:
    """With a cache, the new keys and values go into it once, and the queries attend to all that it then holds."""

    def inputs(rng, sizes, old, L, dtype=mx.float32):
        heads = heads_of(rng, sizes, 2, old + L, L, dtype)
        return {"sizes": asdict(Shape(**sizes)), "weights": {}, "old": old} | heads

    def observe(solution, inputs):
        cache, old = Cache(), inputs["old"]
        if old:
            cache.update(inputs["k"][:, :, :old], inputs["v"][:, :, :old])
        before = len(cache.given)
        new = [inputs[name][:, :, old:] for name in "kv"]
        got = solution.module("model.qwen3").Ops().attend(inputs["q"], *new, cache)
        return {"attended": got, "given": [list(pair) for pair in cache.given[before:]]}

    def verify(inputs, got):
        assert got["given"], (
            "the cache was not updated with the new keys and values" if inputs["old"] else EMPTY_IS_NO_CACHE
        )
        assert len(got["given"]) == 1, f"the cache was updated {len(got['given'])} times in one call: once is right"
        for name, x in zip("kv", got["given"][0], strict=True):
            close(x, inputs[name][:, :, inputs["old"] :], tol=0.0, what=f"{name} given to the cache")
        check_attended(inputs, got["attended"])


def untouched(inputs: dict, x: mx.array, what: str) -> None:
    close(x, inputs["x"], tol=0.0, what=f"{what}: x after the call was changed (x += ... writes into it); x")


def stream_inputs(rng, sizes: dict, B: int, L: int, dtype: mx.Dtype = mx.float32) -> dict[str, object]:
    """A one-layer model and a residual stream of no particular size."""
    inputs = model_inputs(rng, sizes | {"layers": 1}, dtype)
    return inputs | {"x": (3 * normal(rng, (B, L, sizes["hidden"]))).astype(dtype)}


@case(task=3, params=[{"offset": 0}, {"offset": 5, "sizes": WIDE}, {"offset": 3, "dtype": mx.bfloat16}])
class OpsQkvReadsANormedCopy:
    """Ops.qkv normalises the stream by the input norm and makes q, k, v of it; the stream stays as it is."""

    def inputs(rng, offset, sizes=GQA, dtype=mx.float32):
        return stream_inputs(rng, sizes, 2, 4, dtype) | {"offset": offset}

    def observe(solution, inputs):
        x, ops = inputs["x"], solution.module("model.qwen3").Ops()
        return {"qkv": list(ops.qkv(block_of(solution, inputs), x, inputs["offset"])), "x": x}

    def verify(inputs, got):
        x, offset, dtype = wide(inputs["x"]), inputs["offset"], inputs["x"].dtype

        def run(model, name="input_layernorm", offset=offset):
            return model.qkv(0, model.norm(x, model.layer(0, name)), offset)

        for i, (name, want) in enumerate(zip("qkv", run(oracle(inputs)), strict=True)):
            suspects = {
                "the input norm was left out": lambda i=i: run(oracle(inputs, NotNormed))[i],
                "the post-attention norm was used": lambda i=i: run(oracle(inputs), "post_attention_layernorm")[i],
                "the offset was ignored": lambda i=i: run(oracle(inputs), offset=0)[i],
            }
            what = f"{name} of Ops.qkv(layer, x, {offset})"
            close(got["qkv"][i], want, tol=STEP[dtype], dtype=dtype, suspects=suspects, what=what)
        untouched(inputs, got["x"], "Ops.qkv")


@case(task=3, params=[{"sizes": GQA}, {"sizes": WIDE, "L": 1}, {"sizes": MHA, "dtype": mx.bfloat16}])
class OpsOutputAddsToTheStream:
    """Ops.output returns the stream plus the projected heads, and changes neither."""

    def inputs(rng, sizes, L=4, dtype=mx.float32):
        attended = normal(rng, (2, sizes["heads"], L, sizes["head_dim"]), dtype)
        return stream_inputs(rng, sizes, 2, L, dtype) | {"attended": attended}

    def observe(solution, inputs):
        x, ops = inputs["x"], solution.module("model.qwen3").Ops()
        return {"sum": ops.output(block_of(solution, inputs), x, inputs["attended"]), "x": x}

    def verify(inputs, got):
        x, dtype, model = wide(inputs["x"]), inputs["x"].dtype, oracle(inputs)
        output = model.output(0, wide(inputs["attended"]))
        suspects = {
            "the stream was left out: add to x": output,
            "the stream was normalised before the sum": lambda: (
                output + model.norm(x, model.layer(0, "input_layernorm"))
            ),
            "the sum was normalised: the norm belongs in front of the MLP": lambda: model.norm(
                x + output, model.layer(0, "post_attention_layernorm")
            ),
        }
        what = "Ops.output(layer, x, attended)"
        close(got["sum"], x + output, tol=STEP[dtype], dtype=dtype, suspects=suspects, what=what)
        untouched(inputs, got["x"], "Ops.output")


@case(task=3, params=[{"sizes": GQA}, {"sizes": WIDE, "L": 1}, {"sizes": MHA, "dtype": mx.bfloat16}])
class OpsMlpAddsToTheStream:
    """Ops.mlp returns the stream plus the MLP of its normalised copy, and leaves the stream as it is."""

    def inputs(rng, sizes, L=4, dtype=mx.float32):
        return stream_inputs(rng, sizes, 2, L, dtype)

    def observe(solution, inputs):
        x, ops = inputs["x"], solution.module("model.qwen3").Ops()
        return {"sum": ops.mlp(block_of(solution, inputs), x), "x": x}

    def verify(inputs, got):
        x, dtype, model = wide(inputs["x"]), inputs["x"].dtype, oracle(inputs)
        normed = model.norm(x, model.layer(0, "post_attention_layernorm"))
        suspects = {
            "the stream was left out: add to x": lambda: model.mlp(0, normed),
            "the MLP read the stream without its norm": lambda: x + model.mlp(0, x),
            "the MLP was added to the normalised copy, not to the stream": lambda: normed + model.mlp(0, normed),
            "the input norm was used for the MLP": lambda: (
                x + model.mlp(0, model.norm(x, model.layer(0, "input_layernorm")))
            ),
            "the norm came after the MLP": lambda: (
                x + model.norm(model.mlp(0, x), model.layer(0, "post_attention_layernorm"))
            ),
        }
        want = x + model.mlp(0, normed)
        close(got["sum"], want, tol=STEP[dtype], dtype=dtype, suspects=suspects, what="Ops.mlp(layer, x)")
        untouched(inputs, got["x"], "Ops.mlp")


HEADS = [
    {"sizes": GQA | {"tied": True}},
    {"sizes": GQA | {"tied": False}},
    {"sizes": MHA | {"tied": True}},
    {"sizes": MHA | {"tied": False}},
]


@case(task=3, params=[*HEADS, {"sizes": GQA | {"tied": False}, "dtype": mx.bfloat16}])
class OpsHeadIsTiedOrNot:
    """Logits are the finally normalised stream with each row of lm_head, or of the embedding where they are tied."""

    def inputs(rng, sizes, dtype=mx.float32):
        inputs = stream_inputs(rng, sizes, 2, 4, dtype)
        spare = normal(rng, (sizes["vocab"], sizes["hidden"]), dtype)
        return inputs | {"weights": {"lm_head.weight": spare} | inputs["weights"]}

    def observe(solution, inputs):
        x, model = inputs["x"], model_of(solution, inputs)
        return {"logits": solution.module("model.qwen3").Ops().head(model, x), "x": x}

    def verify(inputs, got):
        x, dtype, model = wide(inputs["x"]), inputs["x"].dtype, oracle(inputs)
        tied = inputs["sizes"]["tied"]
        other = {"sizes": inputs["sizes"] | {"tied": not tied}, "weights": inputs["weights"]}
        wrong = "lm_head was used, but the embeddings are tied" if tied else "the embedding was used, not lm_head"
        suspects = {
            "the final norm was left out": lambda: model.scores(x),
            wrong: lambda: oracle(other).head(x),
            "only the last position was scored": lambda: model.head(x[:, -1:]),
        }
        want = model.head(x)
        close(got["logits"], want, tol=STEP[dtype], dtype=dtype, suspects=suspects, what="Ops.head(model, x)")
        untouched(inputs, got["x"], "Ops.head")


@case(task=3, params=LAYERS)
class BlockMatchesFloat64:
    """A block adds attention, then MLP, to the stream, each computed from a normalised copy."""

    def inputs(rng, sizes, B, L, dtype=mx.float32):
        return stream_inputs(rng, sizes, B, L, dtype)

    def observe(solution, inputs):
        x, block = inputs["x"], block_of(solution, inputs)
        return {"y": block(x), "x": x}

    def verify(inputs, got):
        x, dtype = wide(inputs["x"]), inputs["x"].dtype
        suspects = suspects_of(inputs, BLOCK_MISTAKES, lambda model: model.block(0, x))
        want = oracle(inputs).block(0, x)
        close(got["y"], want, tol=STEP[dtype], dtype=dtype, suspects=suspects, what="Qwen3Block(x)")
        untouched(inputs, got["x"], "Qwen3Block")


@case(task=3, params=[{"offset": 0}, {"offset": 9}])
class BlockRunsItsOps:
    """The block computes nothing itself: it calls qkv, attend, output and mlp of its ops, which may be replaced."""

    def inputs(rng, offset):
        return stream_inputs(rng, GQA, 2, 4) | {"offset": offset}

    def observe(solution, inputs):
        calls = []

        class Numbers(solution.module("model.qwen3").Ops):
            """Steps that are easy to follow."""

            def qkv(self, layer, x, offset):
                calls.append("qkv")
                return x + offset, 2 * x, 3 * x

            def attend(self, q, k, v, cache=None):
                calls.append("attend")
                return q + 10 * k + 100 * v + (0 if cache is None else 1000)

            def output(self, layer, x, attended):
                calls.append("output")
                return x - attended

            def mlp(self, layer, x):
                calls.append("mlp")
                return x * x

        args = []
        if inputs["offset"]:
            args = [Cache()]
            args[0].offset = inputs["offset"]
        y = block_of(solution, inputs, Numbers())(inputs["x"], *args)
        return {"y": y, "calls": calls}

    def verify(inputs, got):
        calls = ["qkv", "attend", "output", "mlp"]
        assert got["calls"] == calls, f"the block should call the steps {calls} of its ops, it called {got['calls']}"
        x, offset = wide(inputs["x"]), inputs["offset"]

        def y(offset, cached):
            return (x - (x + offset + 320 * x + 1000 * cached)) ** 2

        cached = offset > 0
        suspects = {
            "the offset was 0, though the cache holds keys": y(0, cached),
            "attend was not given the cache": y(offset, False),
            "qkv was given 0 and attend no cache": y(0, False),
        }
        close(got["y"], y(offset, cached), suspects=suspects, what="a block with other ops")


MODELS = [
    {"sizes": GQA | {"layers": 3}},
    {"sizes": GQA | {"tied": False}, "B": 3, "L": 5},
    {"sizes": MQA | {"tied": False, "rope_theta": 500.0}, "L": 9},
    {"sizes": MHA | {"layers": 1}, "B": 1, "L": 1},
    {"sizes": WIDE | {"layers": 3, "rms_norm_eps": 1e-2}},
    {"sizes": WIDE | {"tied": False}, "tokens": mx.uint32},
]


@case(task=3, params=MODELS)
class ModelMatchesFloat64:
    """The logits are right for GQA and MQA, tied and untied heads, and a head dimension that is not E / H."""

    def inputs(rng, sizes, B=2, L=7, tokens=mx.int32):
        inputs = model_inputs(rng, sizes)
        return inputs | {"tokens": tokens_of(rng, inputs, (B, L)).astype(tokens)}

    def observe(solution, inputs):
        return model_of(solution, inputs)(inputs["tokens"])

    def verify(inputs, got):
        tokens = np.array(inputs["tokens"])
        suspects = suspects_of(inputs, MODEL_MISTAKES, lambda model: model.logits(tokens))
        want = oracle(inputs).logits(tokens)
        close(got, want, tol=TOLERANCE[mx.float32], dtype=mx.float32, suspects=suspects, what="logits of Qwen3(tokens)")


@case(task=3, params=[{"name": name} for name in GOLDEN_SHAPES])
class ModelMatchesTransformers:
    """The logits are those of the transformers library, within 1e-4, on random models in Hugging Face's layout."""

    def inputs(rng, name):
        golden = load_golden(name)
        weights = {name: mx.array(w) for name, w in golden.weights.items()}
        return {"sizes": asdict(golden.shape), "weights": weights, "tokens": golden.tokens, "logits": golden.logits}

    def observe(solution, inputs):
        return model_of(solution, inputs)(mx.array(inputs["tokens"]))

    def verify(inputs, got):
        want, tokens = inputs["logits"], inputs["tokens"]
        suspects = suspects_of(inputs, MODEL_MISTAKES, lambda model: model.logits(tokens))
        tol = 1e-4 / float(np.abs(want).max())
        close(got, want, tol=tol, dtype=mx.float32, suspects=suspects, what="logits of Qwen3(tokens)")


@case(task=3, params=[{"dtype": d, "tied": t} for d in (mx.float16, mx.bfloat16) for t in (True, False)])
class ModelKeepsTheDtype:
    """Weights in float16 or bfloat16 give logits in that dtype."""

    def inputs(rng, dtype, tied):
        inputs = model_inputs(rng, GQA | {"tied": tied}, dtype)
        return inputs | {"tokens": tokens_of(rng, inputs, (2, 6))}

    def observe(solution, inputs):
        return model_of(solution, inputs)(inputs["tokens"])

    def verify(inputs, got):
        dtype = inputs["weights"]["model.norm.weight"].dtype
        want = oracle(inputs).logits(np.array(inputs["tokens"]))
        close(got, want, tol=TOLERANCE[dtype], dtype=dtype, what="logits of Qwen3(tokens)")


@case(
    task=3,
    params=[
        {"chunks": [4, 3], "sizes": GQA | {"layers": 3}},
        {"chunks": [5, 1, 1, 1], "sizes": WIDE},
        {"chunks": [1, 2, 3, 2], "sizes": MQA | {"tied": False}},
        {"chunks": [6], "sizes": MHA},
    ],
)
class CachedChunksEqualTheWhole:
    """A prompt given in chunks, with one cache per layer, gets the logits of the whole prompt given at once."""

    def inputs(rng, chunks, sizes):
        inputs = model_inputs(rng, sizes | {"rope_theta": 50.0})
        return inputs | {"tokens": tokens_of(rng, inputs, (2, sum(chunks))), "chunks": chunks}

    def observe(solution, inputs):
        model, caches = model_of(solution, inputs), [Cache() for _ in range(inputs["sizes"]["layers"])]
        ends = np.cumsum(inputs["chunks"]).tolist()
        logits = [
            model(inputs["tokens"][:, end - n : end], caches) for n, end in zip(inputs["chunks"], ends, strict=True)
        ]
        return {"logits": mx.concatenate(logits, axis=1), "lengths": [cache.offset for cache in caches]}

    def verify(inputs, got):
        tokens, chunks = np.array(inputs["tokens"]), inputs["chunks"]
        lengths = [tokens.shape[1]] * inputs["sizes"]["layers"]
        assert got["lengths"] == lengths, (
            f"the caches of the layers should hold {lengths} positions, they hold {got['lengths']}: "
            + ("each layer has its own" if any(got["lengths"]) else EMPTY_IS_NO_CACHE)
        )
        mistakes = {
            "the first token of each chunk was placed at 0: it stands at cache.offset": forgetful(chunks, True),
            "each chunk saw its own tokens only: the cache was not used": forgetful(chunks, False),
        }
        suspects = suspects_of(inputs, mistakes, lambda model: model.logits(tokens))
        want = oracle(inputs).logits(tokens)
        close(got["logits"], want, tol=TOLERANCE[mx.float32], suspects=suspects, what=f"logits of chunks {chunks}")


@case(task=3)
class ModelKeepsNothingWithoutACache:
    """Without a cache, a second call knows nothing of the first."""

    def inputs(rng):
        inputs = model_inputs(rng, GQA)
        return inputs | {"first": tokens_of(rng, inputs, (1, 5)), "second": tokens_of(rng, inputs, (2, 4))}

    def observe(solution, inputs):
        model = model_of(solution, inputs)
        return [model(inputs["first"]), model(inputs["second"]), model(inputs["first"])]

    def verify(inputs, got):
        for logits, name in zip(got, ("first", "second", "first"), strict=True):
            want = oracle(inputs).logits(np.array(inputs[name]))
            close(logits, want, tol=TOLERANCE[mx.float32], what=f"logits of the {name} prompt")


@case(task=3, params=[{"tied": True}, {"tied": False}])
class ModelRunsTheOpsItWasGiven:
    """Ops given to the model reach every block and the head, so that other kernels can be put in their place."""

    def inputs(rng, tied):
        inputs = model_inputs(rng, GQA | {"layers": 3, "tied": tied})
        return inputs | {"tokens": tokens_of(rng, inputs, (2, 4))}

    def observe(solution, inputs):
        class Counting(solution.module("model.qwen3").Ops):
            """No attention, an MLP that counts, and a head that returns the stream."""

            def qkv(self, layer, x, offset):
                return x, x, x

            def attend(self, q, k, v, cache=None):
                return q

            def output(self, layer, x, attended):
                return x

            def mlp(self, layer, x):
                return 2 * x

            def head(self, model, x):
                return x + 1

        return model_of(solution, inputs, Counting())(inputs["tokens"])

    def verify(inputs, got):
        x = oracle(inputs).embed(np.array(inputs["tokens"]))
        suspects = {
            "the head of the ops was not used": oracle(inputs).head(8 * x),
            "the blocks did not run": x + 1,
            "the final norm ran before the head of the ops, which holds that norm": oracle(inputs).norm(
                8 * x, oracle(inputs).weights["model.norm.weight"]
            )
            + 1,
        }
        close(got, 8 * x + 1, suspects=suspects, what="a model with other ops")


VALUE_ERRORS = ("ValueError", "JSONDecodeError", "UnicodeDecodeError")  # the others are kinds of ValueError
PACKABLE = {"hidden": 128, "heads": 2, "kv_heads": 1, "head_dim": 64, "intermediate": 256, "vocab": 24, "layers": 1}


def load_weights(solution, inputs: dict) -> dict[str, mx.array]:
    """What load_weights gives for the files of the inputs, read while they are there."""
    with folder_of(inputs["files"]) as folder:
        config = config_of(solution, inputs["sizes"], inputs.get("quantization"))
        options = {name: inputs[name] for name in ("memory_limit",) if name in inputs}
        if inputs.get("dtype"):
            options["dtype"] = FLOATS[inputs["dtype"]]
        weights = solution.module("model.checkpoint").load_weights(folder, config, **options)
        mx.eval(weights)
        return dict(weights)


def refused(got: dict, what: str, *words: str, kinds: tuple[str, ...] = VALUE_ERRORS) -> None:
    """Raise AssertionError unless `got` is an error of these kinds whose message holds `words`."""
    assert got["type"] is not None, f"{what} was accepted: raise {kinds[0]}"
    assert got["type"] in kinds, f"{what} raised {got['type']}, not {kinds[0]}: {got['message']}"
    for word in words:
        assert word in got["message"], f"the message about {what} should name {word!r}: {got['message']!r}"


def same_names(got: dict, want: dict) -> None:
    missing, extra = sorted(want.keys() - got.keys()), sorted(got.keys() - want.keys())
    assert not missing, f"{len(missing)} tensors were not returned, the first is {missing[0]}"
    assert not extra, f"{len(extra)} tensors too many were returned, the first is {extra[0]}"


LOOK = {
    "hidden_size": "hidden",
    "num_hidden_layers": "layers",
    "intermediate_size": "intermediate",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "vocab_size": "vocab",
    "rms_norm_eps": "rms_norm_eps",
    "rope_theta": "rope_theta",
    "max_position_embeddings": "max_positions",
    "tie_word_embeddings": "tied",
}


def random_sizes(rng: np.random.Generator) -> dict[str, object]:
    """Sizes that all differ, so that none can stand for another."""
    kv_heads, group = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    names = ("head_dim", "intermediate", "vocab", "max_positions", "layers")
    sizes = dict(zip(names, rng.permutation(np.arange(20, 400, 2)).tolist(), strict=False))
    sizes |= {"kv_heads": kv_heads, "heads": kv_heads * group, "hidden": kv_heads * group * 500}
    numbers = {"rms_norm_eps": float(rng.choice([1e-5, 3e-6])), "rope_theta": float(rng.choice([1e4, 5e5, 1e6]))}
    return sizes | numbers | {"tied": bool(rng.integers(2))}


def read_config(solution, inputs: dict) -> dict[str, object]:
    """The fields of the config that the file gives."""
    with folder_of({"config.json": inputs["text"].encode()}) as folder:
        config = solution.module("model.checkpoint").load_config(folder)
    packing = config.quantization
    fields = {name: getattr(config, name) for name in LOOK}
    return fields | {"quantization": packing and [packing.group_size, packing.bits]}


def config_text(sizes: dict, change: Callable[[dict], object] = lambda raw: None, nested: bool = False) -> str:
    raw = hf_config(Shape(**sizes), nested_rope=nested)
    change(raw)
    return json.dumps(raw)


def check_config(got: dict, sizes: dict, quantization: list[int] | None = None) -> None:
    for name, key in LOOK.items():
        assert got[name] == sizes[key], f"{name} should be {sizes[key]!r}, it is {got[name]!r}"
    want = quantization
    assert got["quantization"] == want, f"quantization should be {want} (group size, bits), got {got['quantization']}"


@case(task=4, params=[{"nested": False}, {"nested": True}, {"nested": False, "whole": True}])
class ConfigIsRead:
    """Every number of config.json arrives under its name; rope_theta may stand at the top or in rope_parameters."""

    def inputs(rng, nested, whole=False):
        sizes = random_sizes(rng)

        def change(raw):
            if whole:  # as the published files have it
                raw["rope_theta"] = int(raw["rope_theta"])

        return {"sizes": sizes, "text": config_text(sizes, change, nested)}

    observe = read_config

    def verify(inputs, got):
        check_config(got, inputs["sizes"])


@case(task=4, params=[{"key": key} for key in ("head_dim", "null", "tie_word_embeddings", "both", "rope_scaling")])
class ConfigHasDefaults:
    """Without head_dim, or with null, it is hidden_size / num_attention_heads; by default embeddings are not tied."""

    def inputs(rng, key):
        sizes = random_sizes(rng) | {"tied": True}

        def change(raw):
            if key == "null":
                raw["head_dim"] = None
                return
            for name in ("head_dim", "tie_word_embeddings") if key == "both" else (key,):
                raw.pop(name)

        text = config_text(sizes, change)
        if key in ("head_dim", "null", "both"):
            sizes["head_dim"] = sizes["hidden"] // sizes["heads"]
        if key in ("tie_word_embeddings", "both"):
            sizes["tied"] = False
        return {"sizes": sizes, "text": text}

    observe = read_config

    def verify(inputs, got):
        check_config(got, inputs["sizes"])


@case(
    task=4,
    params=[
        {"keys": ["quantization"], "group_size": 64, "bits": 4},
        {"keys": ["quantization"], "group_size": 32, "bits": 8},
        {"keys": ["quantization", "quantization_config"], "group_size": 128, "bits": 4, "mode": "affine"},
        {"keys": ["quantization_config"], "group_size": 32, "bits": 4},
    ],
)
class ConfigReadsTheQuantization:
    """MLX's group size and bits are read from quantization, or from quantization_config."""

    def inputs(rng, keys, **packing):
        sizes = random_sizes(rng)
        text = config_text(sizes, lambda raw: raw.update(dict.fromkeys(keys, packing)))
        return {"sizes": sizes, "text": text, "packing": [packing["group_size"], packing["bits"]]}

    observe = read_config

    def verify(inputs, got):
        check_config(got, inputs["sizes"], inputs["packing"])


UNSUPPORTED = {
    "another model_type": ({"model_type": "llama"}, ["model_type", "llama"]),
    "an older Qwen": ({"model_type": "qwen2"}, ["model_type", "qwen2"]),
    "scaled RoPE": ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, ["rope_type", "yarn"]),
    "scaled RoPE, spelled as older files do": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, ["type", "linear"]),
    "scaled RoPE in rope_parameters": (
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e6, "factor": 8.0}},
        ["rope_type", "llama3"],
    ),
    "biases in attention": ({"attention_bias": True}, ["attention_bias", "rue"]),
    "3 bits": ({"quantization": {"group_size": 64, "bits": 3}}, ["bits", "3"]),
    "groups of 16": ({"quantization": {"group_size": 16, "bits": 4}}, ["group_size", "16"]),
    "no group size": ({"quantization": {"bits": 4}}, ["quantization"]),
    "another mode": ({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}, ["mode", "mxfp4"]),
    "other bits for one layer": (
        {"quantization": {"group_size": 64, "bits": 4, "lm_head": {"group_size": 64, "bits": 8}}},
        ["lm_head"],
    ),
    "another quantiser": ({"quantization_config": {"quant_method": "fp8", "fmt": "e4m3"}}, ["fp8"]),
    "a quantiser with the same numbers": (
        {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}},
        ["gptq"],
    ),
}


def config_error(solution, inputs: dict) -> dict[str, object]:
    return error_of(lambda: read_config(solution, inputs))


@case(task=4, params=[{"what": what} for what in UNSUPPORTED])
class ConfigRefusesWhatItCannotRun:
    """What this model does not compute is refused with a ValueError that names key and value: no wrong answers."""

    def inputs(rng, what):
        return {"what": what, "text": config_text(random_sizes(rng), lambda raw: raw.update(UNSUPPORTED[what][0]))}

    observe = config_error

    def verify(inputs, got):
        refused(got, f"a config with {inputs['what']}", *UNSUPPORTED[inputs["what"]][1])


NEEDED = [key for key in LOOK if key not in ("head_dim", "tie_word_embeddings")]


@case(task=4, params=[{"key": key} for key in [*NEEDED, "model_type", "rope_theta, nested"]])
class ConfigNamesTheMissingKey:
    """A key that is missing is named in a ValueError."""

    def inputs(rng, key):
        name, nested = key.partition(",")[0], "nested" in key

        def change(raw):
            (raw["rope_parameters"] if nested else raw).pop(name)

        return {"key": name, "text": config_text(random_sizes(rng), change, nested)}

    observe = config_error

    def verify(inputs, got):
        refused(got, f"a config without {inputs['key']}", inputs["key"])


@case(task=4, params=[{"text": text} for text in (None, "", '{"model_type": "qwen3"', "not a config")])
class ConfigMustBeThere:
    """No config.json is a FileNotFoundError; a file that is not JSON is a ValueError."""

    def inputs(rng, text):
        return {"text": text}

    def observe(solution, inputs):
        if inputs["text"] is not None:
            return config_error(solution, inputs)
        with folder_of({}) as folder:
            return error_of(lambda: bool(solution.module("model.checkpoint").load_config(folder)))

    def verify(inputs, got):
        if inputs["text"] is None:
            refused(got, "a folder without config.json", "config.json", kinds=("FileNotFoundError",))
        else:
            refused(got, f"a config.json that holds {inputs['text']!r}")


def checkpoint(rng: np.random.Generator, sizes: dict, dtype: mx.Dtype = mx.float32) -> dict[str, object]:
    """Sizes, tensors and files of a small checkpoint."""
    inputs = model_inputs(rng, sizes, dtype)
    return inputs | {"files": files_of(inputs["weights"])}


LAYOUTS = [
    {"shards": 1, "tied": True},
    {"shards": 1, "tied": False},
    {"shards": 3, "tied": False},
    {"shards": 2, "tied": True},
]


@case(task=4, params=LAYOUTS)
class WeightsAreRead:
    """All tensors come back under their names, from one file or from the shards that the index names."""

    def inputs(rng, shards, tied):
        inputs = model_inputs(rng, WIDE | {"tied": tied})
        return inputs | {"files": files_of(inputs["weights"], shards)}

    observe = load_weights

    def verify(inputs, got):
        same_names(got, inputs["weights"])
        for name, w in inputs["weights"].items():
            close(got[name], wide(w), tol=0.0, dtype=mx.float32, what=name)


@case(task=4, params=[{"stored": s, "dtype": d} for s in FLOATS for d in (None, *FLOATS)])
class WeightsTakeTheDtypeAskedFor:
    """`dtype` converts every tensor; None keeps what is stored, tensor by tensor."""

    def inputs(rng, stored, dtype):
        inputs = model_inputs(rng, WIDE | {"layers": 1}, FLOATS[stored])
        other = next(x for name, x in FLOATS.items() if name != stored)
        for name, w in inputs["weights"].items():
            if name.endswith("norm.weight"):
                inputs["weights"][name] = w.astype(other)
        return inputs | {"files": files_of(inputs["weights"]), "dtype": dtype}

    observe = load_weights

    def verify(inputs, got):
        same_names(got, inputs["weights"])
        for name, w in inputs["weights"].items():
            dtype = FLOATS[inputs["dtype"]] if inputs["dtype"] else w.dtype
            close(got[name], w.astype(dtype), tol=0.0, dtype=dtype, what=f"{name}, stored as {w.dtype}")


@case(task=4, params=[{"extra": extra} for extra in ("lm_head", "packed lm_head", "stray file")])
class WhatIsNotAskedForIsIgnored:
    """An lm_head beside tied embeddings, and files that are not named in the index, are not read."""

    def inputs(rng, extra):
        sizes, stored = PACKABLE | {"tied": True}, "stray" in extra
        inputs = model_inputs(rng, sizes)
        tensors = dict(inputs["weights"])
        if not stored:
            tensors["lm_head.weight"] = normal(rng, (sizes["vocab"], sizes["hidden"]))
        if extra == "packed lm_head":
            tensors = packed(tensors, 64, 8, leave=tuple(inputs["weights"]))
            inputs["quantization"] = [64, 8]
        files = files_of(tensors, 2 if stored else 1)
        if stored:
            files["consolidated.safetensors"] = safetensors({"tok_embeddings.weight": normal(rng, (24, 128))})
        return inputs | {"files": files, "extra": extra}

    def observe(solution, inputs):
        return error_of(lambda: load_weights(solution, inputs))

    def verify(inputs, got):
        what = {"stray file": "a safetensors file that the index does not name"}
        what = what.get(inputs["extra"], "an lm_head.weight beside tied embeddings, as Qwen3-0.6B has")
        assert got["type"] is None, f"{what}, should be ignored; got {got['type']}: {got['message']}"
        same_names(got["value"], inputs["weights"])


@case(
    task=4,
    params=[
        {"group_size": 32, "bits": 4},
        {"group_size": 64, "bits": 4, "dtype": mx.bfloat16},
        {"group_size": 128, "bits": 4, "dtype": mx.float16, "asked": "float32"},
        {"group_size": 32, "bits": 8, "dtype": mx.float16},
        {"group_size": 64, "bits": 8, "tied": False, "shards": 3},
        {"group_size": 128, "bits": 8, "dtype": mx.bfloat16, "asked": "float16"},
        {"group_size": 64, "bits": 4, "leave": ("model.embed_tokens.weight",)},
    ],
)
class PackedWeightsAreUnpacked:
    """MLX's packed weights become matrices, q * scale + bias in each group; what is not packed stays as it is."""

    def inputs(rng, group_size, bits, dtype=mx.float32, asked=None, tied=True, shards=1, leave=()):
        inputs = model_inputs(rng, PACKABLE | {"tied": tied}, dtype)
        tensors = packed(inputs["weights"], group_size, bits, leave)
        files = {"files": files_of(tensors, shards), "dtype": asked, "quantization": [group_size, bits]}
        return inputs | files | {"tensors": tensors}

    observe = load_weights

    def verify(inputs, got):
        want = unpacked(inputs["tensors"], inputs["quantization"][1])
        same_names(got, want)
        for name, w in want.items():
            dtype = FLOATS[inputs["dtype"]] if inputs["dtype"] else inputs["weights"][name].dtype
            close(got[name], w, tol=STEP[inputs["weights"][name].dtype], dtype=dtype, what=name)


ONCE = {mx.float16: 6e-4, mx.bfloat16: 5e-3}  # a single rounding


@case(task=4, params=[{"group_size": n, "dtype": d} for n in (32, 64) for d in ("float16", "bfloat16")])
class UnpackedWeightsAreRoundedOnce:
    """Packed weights are unpacked first and then converted: rounded scales would blur the small values."""

    def inputs(rng, group_size, dtype):
        inputs = model_inputs(rng, PACKABLE)
        tensors = packed(inputs["weights"], group_size, 8)
        files = {"files": files_of(tensors), "dtype": dtype, "quantization": [group_size, 8]}
        return inputs | files | {"tensors": tensors}

    observe = load_weights

    def verify(inputs, got):
        want, dtype = unpacked(inputs["tensors"], 8), FLOATS[inputs["dtype"]]
        same_names(got, want)
        for name, w in want.items():
            small = np.abs(w) < np.abs(w).max() / 16
            what = f"{name}: values near 0 (were scales and biases converted before they were used?)"
            close(wide(got[name])[small], w[small], tol=ONCE[dtype], what=what)


NAMES = [
    "model.embed_tokens.weight",
    "model.norm.weight",
    "model.layers.0.self_attn.q_norm.weight",
    "model.layers.1.mlp.down_proj.weight",
    "lm_head.weight",
]
EXTRA = ["model.layers.2.mlp.up_proj.weight", "model.layers.0.self_attn.q_proj.bias", "model.rotary.inv_freq"]


def weights_error(solution, inputs: dict) -> dict[str, object]:
    return error_of(lambda: load_weights(solution, inputs))


@case(task=4, params=[{"name": name, "shards": 1 + i % 2} for i, name in enumerate(NAMES)])
class MissingTensorsAreNamed:
    """A tensor that the config implies and no file holds is named in a ValueError."""

    def inputs(rng, name, shards):
        inputs = model_inputs(rng, WIDE | {"tied": False})
        tensors = {key: w for key, w in inputs["weights"].items() if key != name}
        return inputs | {"files": files_of(tensors, shards), "name": name}

    observe = weights_error

    def verify(inputs, got):
        refused(got, f"a checkpoint without {inputs['name']}", inputs["name"])


@case(task=4, params=[{"name": name, "shards": 1 + i % 2} for i, name in enumerate(EXTRA)])
class UnexpectedTensorsAreNamed:
    """A tensor that the config does not imply is named in a ValueError: it would change the result, if it were used."""

    def inputs(rng, name, shards):
        inputs = model_inputs(rng, WIDE)
        return inputs | {"files": files_of(inputs["weights"] | {name: normal(rng, (9, 10))}, shards), "name": name}

    observe = weights_error

    def verify(inputs, got):
        refused(got, f"a checkpoint with {inputs['name']}", inputs["name"])


@case(task=4, params=[{"name": name} for name in NAMES])
class WrongShapesAreNamed:
    """A tensor whose shape is not what the config implies is named in a ValueError, also where it is only turned."""

    def inputs(rng, name):
        inputs = model_inputs(rng, WIDE | {"tied": False})
        w = inputs["weights"][name]
        wrong = w.T if w.ndim == 2 else w[:-1]
        return inputs | {"files": files_of(inputs["weights"] | {name: wrong}), "name": name, "wrong": wrong}

    observe = weights_error

    def verify(inputs, got):
        shape = inputs["wrong"].shape
        refused(got, f"{inputs['name']} of shape {shape}", inputs["name"])


@case(task=4, params=[{"dtype": dtype} for dtype in (mx.int32, mx.uint8, mx.uint32)])
class IntegersAreRefused:
    """A tensor that holds integers and is not packed is named in a ValueError, also where a dtype is asked for."""

    def inputs(rng, dtype):
        inputs = model_inputs(rng, WIDE | {"layers": 1})
        name = str(rng.choice(sorted(inputs["weights"])))
        integers = mx.array(rng.integers(0, 9, inputs["weights"][name].shape)).astype(dtype)
        files = files_of(inputs["weights"] | {name: integers})
        return inputs | {"files": files, "name": name, "dtype": [None, "float32", "bfloat16"][int(rng.integers(3))]}

    observe = weights_error

    def verify(inputs, got):
        refused(got, f"{inputs['name']} made of integers", inputs["name"])


PACKING_MISTAKES = {
    "no biases": lambda tensors, stem: tensors.pop(f"{stem}.biases"),
    "no scales": lambda tensors, stem: tensors.pop(f"{stem}.scales"),
    "no packed weight": lambda tensors, stem: tensors.pop(f"{stem}.weight"),
    "scales of another shape": lambda tensors, stem: tensors.update(
        {f"{stem}.scales": tensors[f"{stem}.scales"][:, :-1], f"{stem}.biases": tensors[f"{stem}.biases"][:, :-1]}
    ),
    "a weight that was not packed": lambda tensors, stem: tensors.update({f"{stem}.weight": mx.zeros((64, 128))}),
}


@case(task=4, params=[{"mistake": mistake} for mistake in PACKING_MISTAKES])
class HalfPackedTensorsAreNamed:
    """A packed weight needs all of weight, scales and biases, of shapes that fit: else a ValueError names it."""

    def inputs(rng, mistake):
        inputs = model_inputs(rng, PACKABLE)
        stem = "model.layers.0.self_attn.k_proj"
        tensors = packed(inputs["weights"], 64, 4)
        PACKING_MISTAKES[mistake](tensors, stem)
        return inputs | {"files": files_of(tensors), "quantization": [64, 4], "stem": stem, "mistake": mistake}

    observe = weights_error

    def verify(inputs, got):
        refused(got, f"a packed tensor with {inputs['mistake']}", inputs["stem"])


@case(task=4, params=[{"claimed": claimed} for claimed in (None, [64, 8], [32, 4], [128, 4])])
class PackingMustBeWhatTheConfigSays:
    """Files packed in another way than config.json says give a ValueError, not a wrong matrix."""

    def inputs(rng, claimed):
        inputs = model_inputs(rng, PACKABLE)
        return inputs | {"files": files_of(packed(inputs["weights"], 64, 4)), "quantization": claimed}

    observe = weights_error

    def verify(inputs, got):
        claimed = inputs["quantization"]
        says = f"{claimed[1]} bits in groups of {claimed[0]}" if claimed else "nothing of packing"
        refused(got, f"4 bits in groups of 64, where the config says {says},", "model.")


def cut(part: float) -> Callable[[bytes], bytes]:
    return lambda content: content[: int(len(content) * part)]


DAMAGE = {
    "is empty": lambda content: b"",
    "ends in its first 8 bytes": lambda content: content[:5],
    "ends in its header": lambda content: content[:100],
    "ends in its values": cut(0.7),
    "lacks its last byte": lambda content: content[:-1],
    "has a header that is no JSON": lambda content: content[:8] + b"#" * 200 + content[208:],
    "has a header of absurd length": lambda content: b"\xff" * 8 + content[8:],
    "is an error page": lambda content: b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
    "has a header that lists no tensors": lambda content: (4).to_bytes(8, "little") + b"[1] " + content,
    "has a tensor whose shape does not fit its bytes": lambda content: content.replace(b"[23, 10]", b"[29, 10]"),
}


@case(task=4, params=[{"damage": damage, "shards": 1 + i % 2} for i, damage in enumerate(DAMAGE)])
class DamagedFilesAreRefused:
    """A file that is cut short or is no safetensors file gives a ValueError that names it, never half a model."""

    def inputs(rng, damage, shards):
        inputs = model_inputs(rng, WIDE | {"layers": 1})
        files = files_of(inputs["weights"], shards)
        holders = [name for name, content in files.items() if b"[23, 10]" in content and name.endswith("safetensors")]
        files[holders[0]] = DAMAGE[damage](files[holders[0]])
        return inputs | {"files": files, "file": holders[0], "damage": damage}

    observe = weights_error

    def verify(inputs, got):
        refused(got, f"a file that {inputs['damage']}", inputs["file"])


@case(task=4, params=[{"text": text} for text in ("", "{}", "[]", '{"weight_map": ["model.safetensors"]}')])
class DamagedIndexesAreRefused:
    """An index that does not say which file holds which tensor gives a ValueError that names it."""

    def inputs(rng, text):
        inputs = model_inputs(rng, WIDE | {"layers": 1})
        name = "model.safetensors.index.json"
        return inputs | {"files": files_of(inputs["weights"], 2) | {name: text.encode()}, "name": name, "text": text}

    observe = weights_error

    def verify(inputs, got):
        refused(got, f"an index that holds {inputs['text']!r}", inputs["name"])


@case(task=4, params=[{"shards": 1}, {"shards": 3}, {"shards": 3, "gone": 2}])
class MissingFilesAreNamed:
    """No weights at all, or a shard that the index names and the folder lacks, is a FileNotFoundError that names it."""

    def inputs(rng, shards, gone=0):
        inputs = model_inputs(rng, WIDE | {"layers": 1})
        files = files_of(inputs["weights"], shards)
        name = sorted(file for file in files if file.endswith(".safetensors"))[gone]
        return inputs | {"files": {file: x for file, x in files.items() if file != name}, "name": name}

    observe = weights_error

    def verify(inputs, got):
        refused(got, f"a checkpoint without {inputs['name']}", inputs["name"], kinds=("FileNotFoundError",))


@case(
    task=4,
    params=[
        {"stored": mx.float32},
        {"stored": mx.bfloat16, "dtype": "float32"},
        {"stored": mx.float32, "dtype": "float16"},
        {"stored": mx.float16, "packing": [64, 4]},
        {"stored": mx.float32, "packing": [64, 8], "dtype": "bfloat16"},
    ],
)
class WhatDoesNotFitIsRefused:
    """Weights that would take more than `memory_limit` bytes, in the dtype they end up in, give a MemoryError."""

    def inputs(rng, stored, dtype=None, packing=None):
        inputs = model_inputs(rng, PACKABLE | {"tied": True}, stored)
        numbers = sum(w.size for w in inputs["weights"].values())
        tensors = packed(inputs["weights"], *packing) if packing else dict(inputs["weights"])
        tensors["lm_head.weight"] = normal(rng, (24, 128))  # ignored, so it takes no memory
        size = (FLOATS[dtype] if dtype else stored).size
        return inputs | {"files": files_of(tensors), "dtype": dtype, "quantization": packing, "bytes": numbers * size}

    def observe(solution, inputs):
        limits = (inputs["bytes"], inputs["bytes"] - 1, 0)
        results = [weights_error(solution, inputs | {"memory_limit": limit}) for limit in limits]
        return [{"type": result["type"], "message": result.get("message")} for result in results]

    def verify(inputs, got):
        fits, small, nothing = got
        size = inputs["bytes"]
        assert fits["type"] is None, f"{size} bytes of weights fit into {size}, but: {fits['type']}: {fits['message']}"
        refused(small, f"{size} bytes of weights under a limit of {size - 1}", kinds=("MemoryError",))
        refused(nothing, f"{size} bytes of weights under a limit of 0", kinds=("MemoryError",))


@case(task=4)
class TooLargeIsRefusedBeforeItIsRead:
    """The size is known from the headers: nothing is read into memory first."""

    def inputs(rng):
        return checkpoint(rng, PACKABLE | {"layers": 2})

    def observe(solution, inputs):
        with folder_of(inputs["files"]) as folder:
            config = config_of(solution, inputs["sizes"])
            mx.reset_peak_memory()
            before = mx.get_active_memory()
            load = solution.module("model.checkpoint").load_weights
            error = error_of(lambda: bool(load(folder, config, mx.float32, 1000)))
            return error | {"bytes": mx.get_peak_memory() - before}

    def verify(inputs, got):
        refused(got, "a checkpoint above the limit", kinds=("MemoryError",))
        size = sum(w.nbytes for w in inputs["weights"].values())
        assert got["bytes"] < size / 2, f"{got['bytes']} of {size} bytes were read before the MemoryError: check first"


@case(
    task=4,
    params=[
        *[{"name": name, "shards": 1 + i % 3} for i, name in enumerate(GOLDEN_SHAPES)],
        {"name": "multi-query, untied head", "nested": True},
    ],
)
class LoadedModelMatchesTransformers:
    """A folder in Hugging Face's layout becomes a model whose logits are those of transformers, within 1e-4."""

    def inputs(rng, name, shards=1, nested=False):
        golden = load_golden(name)
        config = json.dumps(hf_config(golden.shape, nested_rope=nested)).encode()
        files = files_of({name: mx.array(w) for name, w in golden.weights.items()}, shards)
        return {"files": files | {"config.json": config}, "tokens": golden.tokens, "logits": golden.logits}

    def observe(solution, inputs):
        with folder_of(inputs["files"]) as folder:
            model = solution.module("model.checkpoint").load_model(folder)
        return model(mx.array(inputs["tokens"]))

    def verify(inputs, got):
        tol = 1e-4 / float(np.abs(inputs["logits"]).max())
        close(got, inputs["logits"], tol=tol, dtype=mx.float32, what="logits of the loaded model")


@case(task=4, params=[{"bits": 4, "tied": True}, {"bits": 8, "tied": False}])
class LoadedPackedModelRuns:
    """A packed checkpoint becomes a model that computes with the unpacked weights."""

    def inputs(rng, bits, tied):
        inputs = model_inputs(rng, PACKABLE | {"tied": tied})
        tensors = packed(inputs["weights"], 64, bits)
        config = hf_config(Shape(**inputs["sizes"])) | {"quantization": {"group_size": 64, "bits": bits}}
        files = files_of(tensors, 2) | {"config.json": json.dumps(config).encode()}
        return inputs | {"tensors": tensors, "bits": bits, "files": files, "tokens": tokens_of(rng, inputs, (2, 5))}

    def observe(solution, inputs):
        with folder_of(inputs["files"]) as folder:
            model = solution.module("model.checkpoint").load_model(folder)
        return model(inputs["tokens"])

    def verify(inputs, got):
        model = Qwen3Float64(Shape(**inputs["sizes"]), unpacked(inputs["tensors"], inputs["bits"]))
        want = model.logits(np.array(inputs["tokens"]))
        close(got, want, tol=TOLERANCE[mx.float32], dtype=mx.float32, what="logits of the loaded model")
