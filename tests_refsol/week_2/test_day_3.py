"""Week 2 Day 3: packing, quantising and packed layers, bit for bit against MLX and in float64."""

import json
from collections.abc import Callable
from dataclasses import asdict

import mlx.core as mx
import numpy as np

from course.affine import Rule, levels_of, words_of
from course.affine_mistakes import GRID_MISTAKES, LEVEL_MISTAKES, ORDERS
from course.case import case, error_of
from course.checkpoint_files import files_of, folder_of, packed, unpacked, wide
from course.checkpoints import Shape, hf_config, random_weights
from course.compare import close, refused
from course.packed_case import dense64, likely_dense, normal, packed_inputs, packed_of, random_words
from course.paths import MODELS
from course.qwen3_float64 import Qwen3Float64
from course.qwen3_mistakes import MODEL_MISTAKES

FLOATS = [mx.float32, mx.float16, mx.bfloat16]
ROUNDED = {mx.float32: 2e-6, mx.float16: 1.02 * 2**-11, mx.bfloat16: 1.02 * 2**-8}  # one rounding of the largest
STEP = {mx.float32: 2e-5, mx.float16: 4e-3, mx.bfloat16: 2.5e-2}


def mlx_quantize(w, group_size, bits):
    """MLX's own answer, from its CPU code on every machine, as that of the code under test: words, scales, biases."""
    return mx.quantize(w, group_size=group_size, bits=bits, stream=mx.cpu)


@case(
    task=1,
    params=[
        {"shape": (8,), "bits": 4},
        {"shape": (4,), "bits": 8},
        {"shape": (3, 32), "bits": 4},
        {"shape": (3, 20), "bits": 8},
        {"shape": (2, 1, 5, 40), "bits": 4, "dtype": "int32"},
        {"shape": (2, 5, 12), "bits": 8, "dtype": "int64"},
        {"shape": (7, 64), "bits": 4, "dtype": "uint8"},
        {"shape": (7, 64), "bits": 8, "dtype": "uint8"},
    ],
)
class PackPutsTheFirstLevelLowest:
    """Each word holds 32 / bits neighbours, the first in the lowest bits, for any leading axes and integer dtype."""

    def inputs(rng, shape, bits, dtype="uint32"):
        levels = rng.integers(0, 2**bits, shape)
        levels[..., -1] = 2**bits - 1  # the top bits of a word: where signed numbers go wrong
        return {"levels": mx.array(levels.astype(dtype)), "bits": bits}

    def observe(solution, inputs):
        return solution.module("kernels.quantize").pack(inputs["levels"], inputs["bits"])

    def verify(inputs, got):
        levels, bits = np.array(inputs["levels"]).astype(np.int64), inputs["bits"]
        suspects = {text: words_of(order(levels, bits), bits) for text, order in ORDERS.items()}
        suspects |= {
            "levels were shifted by one bit each, not by `bits`": (
                levels.reshape(*levels.shape[:-1], -1, 32 // bits) << np.arange(32 // bits)
            ).sum(-1),
            "8 bits were packed as 4": lambda: words_of(levels % 16, bits),
        }
        close(got, words_of(levels, bits), dtype=mx.uint32, suspects=suspects, what=f"pack(levels, {bits})")


@case(
    task=1,
    params=[
        {"shape": (1,), "bits": 4},
        {"shape": (1,), "bits": 8},
        {"shape": (3, 4), "bits": 4},
        {"shape": (3, 5), "bits": 8},
        {"shape": (2, 1, 5, 5), "bits": 4},
    ],
)
class UnpackReadsTheLowestBitsFirst:
    """Each word gives 32 / bits levels in 0 .. 2^bits - 1, those of its lowest bits first, as uint32."""

    def inputs(rng, shape, bits):
        return {"words": random_words(rng, shape), "bits": bits}

    def observe(solution, inputs):
        return solution.module("kernels.quantize").unpack(inputs["words"], inputs["bits"])

    def verify(inputs, got):
        words, bits = np.array(inputs["words"]), inputs["bits"]
        levels = levels_of(words, bits)
        suspects = {text.replace("went into", "was read from"): order(levels, bits) for text, order in ORDERS.items()}
        shifts = np.arange(0, 32, bits, dtype=np.uint32)
        suspects |= {
            "the bits above were not masked off": (words[..., None] >> shifts).reshape(levels.shape),
            "the levels are not signed": np.where(levels < 2 ** (bits - 1), levels, levels.astype(int) - 2**bits),
            "the mask has one bit too few": levels % 2 ** (bits - 1),
        }
        close(got, levels, dtype=mx.uint32, suspects=suspects, what=f"unpack(words, {bits})")


@case(task=1, params=[{"bits": 4}, {"bits": 8}])
class UnpackUndoesPack:
    """Unpacking what was packed gives the levels, and packing what was unpacked gives the words."""

    def inputs(rng, bits):
        return {"words": random_words(rng, (5, 9)), "levels": mx.array(rng.integers(0, 2**bits, (4, 32))), "bits": bits}

    def observe(solution, inputs):
        module, bits = solution.module("kernels.quantize"), inputs["bits"]
        return {
            "words": module.pack(module.unpack(inputs["words"], bits), bits),
            "levels": module.unpack(module.pack(inputs["levels"], bits), bits),
        }

    def verify(inputs, got):
        close(got["words"], inputs["words"], what="pack(unpack(words))")
        close(got["levels"], np.array(inputs["levels"]), what="unpack(pack(levels))")


@case(task=1, params=[{"bits": 4}, {"bits": 8}])
class MlxReadsWhatIsPacked:
    """MLX, with scale 1 and bias 0, reads the same levels from the words."""

    def inputs(rng, bits):
        return {"levels": mx.array(rng.integers(0, 2**bits, (6, 64)).astype(np.uint32)), "bits": bits}

    def observe(solution, inputs):
        return solution.module("kernels.quantize").pack(inputs["levels"], inputs["bits"])

    def verify(inputs, got):
        if got.dtype != mx.uint32 or got.shape != (6, 64 * inputs["bits"] // 32):
            raise AssertionError(
                f"words should be uint32 {(6, 64 * inputs['bits'] // 32)}, got {got.dtype} {got.shape}"
            )
        ones, zeros = mx.ones((6, 2)), mx.zeros((6, 2))
        read = mx.dequantize(got, ones, zeros, group_size=32, bits=inputs["bits"])
        close(read, np.array(inputs["levels"]), tol=0.0, what="the levels that MLX reads")


@case(task=1, params=[{"size": 12, "bits": 4}, {"size": 3, "bits": 4}, {"size": 6, "bits": 8}, {"size": 1, "bits": 8}])
class PackRefusesHalfAWord:
    """Levels that do not fill their last word are a ValueError that names their number."""

    def inputs(rng, size, bits):
        return {"levels": mx.array(rng.integers(0, 16, (3, size)).astype(np.uint32)), "bits": bits}

    def observe(solution, inputs):
        return error_of(lambda: solution.module("kernels.quantize").pack(inputs["levels"], inputs["bits"]))

    def verify(inputs, got):
        size = inputs["levels"].shape[-1]
        refused(got, f"pack of {size} levels of {inputs['bits']} bits", str(size))


def values(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Weights of one kind, float64."""
    x = rng.standard_normal(shape)
    symmetric = rng.integers(-6, 7, shape) / 4
    symmetric[..., ::32], symmetric[..., 1::32] = 1.5, -1.5
    halves = rng.integers(0, 31, shape) / 2  # levels and half levels of the range 0 .. 15
    halves[..., ::32], halves[..., 1::32] = 15.0, 0.0
    rounded_up = rng.uniform(-7.7, 7.2, shape)  # 7.75 steps are rounded to 8: the far end needs a level 16
    rounded_up[..., ::32], rounded_up[..., 1::32] = -7.75, 7.25
    half_step = rng.uniform(-6.5, 8.5, shape)  # 8.5 steps are rounded to 8
    half_step[..., ::32], half_step[..., 1::32] = 8.5, -6.5
    return {
        "normal": lambda: 0.5 * x,
        "all above zero": lambda: 2.0 + 0.1 * x,
        "all below zero": lambda: -2.0 - 0.1 * np.abs(x),
        "from zero up": lambda: np.abs(x),
        "one outlier": lambda: np.where(np.arange(shape[-1]) % 32 == rng.integers(32), 40.0 * np.sign(x), 0.1 * x),
        "equally far ends": lambda: symmetric,
        "levels and halves": lambda: halves * rng.choice([-1, 1], (shape[0], 1)),
        "a clipped far end": lambda: rounded_up * rng.choice([-1, 1], (shape[0], 1)),
        "an edge half-way": lambda: half_step * rng.choice([-1, 1], (shape[0], 1)),
        "zeros": lambda: np.zeros(shape),
        "constant": lambda: np.full(shape, rng.choice([-1, 1]) * rng.uniform(0.1, 3)),
        "a tiny constant": lambda: np.full(shape, 3e-8 * rng.uniform(0.5, 1)),
        "tiny": lambda: 2e-7 * x,
        "small": lambda: 1e-4 * x,
        "many sizes": lambda: x * 10.0 ** rng.integers(-5, 3, shape),
        "large": lambda: 9e3 * np.clip(x, -5, 5),
        "huge": lambda: 1e37 * x,
    }[kind]()


KINDS = ["normal", "all above zero", "all below zero", "from zero up", "one outlier", "equally far ends"]
EDGES = ["zeros", "constant", "a tiny constant", "tiny", "small", "many sizes", "large"]
ROUNDING = ["levels and halves", "a clipped far end", "an edge half-way"]


@case(
    task=2,
    params=[{"kind": kind} for kind in [*KINDS, *EDGES, *ROUNDING, "huge"]]
    + [{"kind": "normal", "group_size": size, "bits": bits} for size in (64, 128) for bits in (4, 8)]
    + [{"kind": kind, "bits": 8} for kind in ("equally far ends", "one outlier", "a tiny constant")],
)
class GridIsThatOfMlx:
    """Scale and bias of each group are MLX's, bit for bit: the edge is exact and zero is a level."""

    def inputs(rng, kind, group_size=32, bits=4):
        w = values(rng, kind, (24, 256)).astype(np.float32)
        return {"groups": mx.array(w.reshape(24, -1, group_size)), "bits": bits}

    def observe(solution, inputs):
        with mx.stream(mx.cpu):  # bit for bit, so on one kind of machine
            return list(solution.module("kernels.quantize").quantization_grid(inputs["groups"], inputs["bits"]))

    def verify(inputs, got):
        groups, bits = inputs["groups"], inputs["bits"]
        _, scales, biases = mlx_quantize(groups.flatten(-2), groups.shape[-1], bits)
        if len(got) != 2:
            raise AssertionError(f"quantization_grid should return scale and bias, it returned {len(got)} values")
        for i, (name, want) in enumerate((("scale", scales), ("bias", biases))):
            suspects = {
                text: lambda kind=kind, i=i: kind().grid(groups, bits)[i] for text, kind in GRID_MISTAKES.items()
            }
            close(got[i], want[..., None], tol=0.0, dtype=mx.float32, suspects=suspects, what=name)


def quantized(solution, inputs):
    """Words, scales and biases that `quantize` gives."""
    with mx.stream(mx.cpu):
        result = solution.module("kernels.quantize").quantize(inputs["w"], inputs["group_size"], inputs["bits"])
    sizes = {"group_size": result.group_size, "bits": result.bits}
    return {"words": result.words, "scales": result.scales, "biases": result.biases, **sizes}


def check_quantized(inputs: dict, got: dict) -> None:
    """`got` is, bit for bit, what MLX gives."""
    w, group_size, bits = inputs["w"], inputs["group_size"], inputs["bits"]
    if (got["group_size"], got["bits"]) != (group_size, bits):
        raise AssertionError(f"the result says group_size {got['group_size']} and bits {got['bits']}, not those given")
    wrong = {text: kind().quantize(w, group_size, bits) for text, kind in LEVEL_MISTAKES.items()}
    if w.shape[0] == w.shape[1]:
        words, scales, biases = Rule().quantize(w.T, group_size, bits)
        wrong["groups run down the columns: they lie along a row"] = words.T, scales.T, biases.T
    words, scales, biases = mlx_quantize(w, group_size, bits)
    for i, (name, want) in ((1, ("scales", scales)), (2, ("biases", biases))):
        close(got[name], want, tol=0.0, dtype=w.dtype, suspects={t: x[i] for t, x in wrong.items()}, what=name)
    suspects = {text: x[0] for text, x in wrong.items()}
    levels = levels_of(np.array(words), bits)
    suspects |= {text: words_of(order(levels, bits), bits) for text, order in ORDERS.items()}
    suspects["the levels count from the other end"] = words_of(2**bits - 1 - levels, bits)
    close(got["words"], words, dtype=mx.uint32, suspects=suspects, what="words")


@case(
    task=2,
    params=[
        {"dtype": dtype, "bits": bits, "group_size": size}
        for dtype in FLOATS
        for bits, size in ((4, 32), (4, 64), (4, 128), (8, 32), (8, 64), (8, 128))
    ]
    + [{"dtype": mx.float32, "bits": 4, "group_size": 32, "shape": (32, 32)}],
)
class QuantizeIsThatOfMlx:
    """Words, scales and biases equal those of mx.quantize, bit for bit, for every dtype, group size and bits."""

    def inputs(rng, dtype, bits, group_size, shape=(32, 256)):
        return {"w": normal(rng, shape, dtype, 0.3), "group_size": group_size, "bits": bits}

    observe = quantized

    verify = check_quantized


@case(
    task=2,
    params=[{"kind": kind} for kind in [*KINDS[1:], *EDGES, *ROUNDING]]
    + [{"kind": kind, "dtype": mx.bfloat16} for kind in (*KINDS[1:], *EDGES, *ROUNDING, "huge")]
    + [{"kind": kind, "dtype": mx.float16, "bits": 8} for kind in (*KINDS[1:], *EDGES, *ROUNDING)],
)
class QuantizeIsThatOfMlxAtTheEdges:
    """The same for constant, one-sided, tiny, huge and symmetric groups, and for numbers half-way between levels."""

    def inputs(rng, kind, dtype=mx.float32, bits=4):
        return {
            "w": mx.array(values(rng, kind, (16, 128)).astype(np.float32)).astype(dtype),
            "group_size": 32,
            "bits": bits,
        }

    observe = quantized

    verify = check_quantized


@case(task=2, params=[{"shape": (3, 4, 64)}, {"shape": (2, 1, 3, 128)}, {"shape": (1, 32)}])
class QuantizeTakesLeadingAxes:
    """Rows may have any leading axes: each is quantised as it would be alone."""

    def inputs(rng, shape):
        return {"w": normal(rng, shape), "group_size": 32, "bits": 4}

    observe = quantized

    def verify(inputs, got):
        for name, want in zip(("words", "scales", "biases"), mlx_quantize(inputs["w"], 32, 4), strict=True):
            close(got[name], want, tol=0.0, what=name)


@case(
    task=2,
    params=[
        {"dtype": mx.int32, "shape": (2, 64), "names": "int32"},
        {"shape": (2, 48), "group_size": 32, "names": "48"},
        {"shape": (2, 64), "group_size": 128, "names": "64"},
        {"shape": (2, 64), "bits": 3, "names": "3"},
        {"shape": (2, 64), "group_size": 16, "names": "16"},
    ],
)
class QuantizeRefusesWhatDoesNotFit:
    """Integers, rows that are no whole groups, and unsupported sizes are ValueErrors that name the value."""

    def inputs(rng, shape, names, dtype=mx.float32, group_size=32, bits=4):
        w = (normal(rng, shape) * 10).astype(dtype)
        return {"w": w, "group_size": group_size, "bits": bits, "names": names}

    def observe(solution, inputs):
        return error_of(lambda: quantized(solution, inputs))

    def verify(inputs, got):
        w = inputs["w"]
        what = f"quantize of {w.dtype} {w.shape} with groups of {inputs['group_size']} and {inputs['bits']} bits"
        refused(got, what, inputs["names"])


@case(
    task=2,
    params=[
        {"shape": (6, 256), "bits": bits, "group_size": size, "scales": dtype}
        for bits, size, dtype in (
            (4, 32, mx.float32),
            (4, 64, mx.bfloat16),
            (4, 128, mx.float16),
            (8, 32, mx.bfloat16),
            (8, 64, mx.float32),
            (8, 128, mx.float16),
        )
    ]
    + [{"shape": (64,)}, {"shape": (2, 3, 1, 64)}, {"shape": (32, 32)}],
)
class DequantizeMatchesFloat64:
    """Each number is scale * level + bias, of its own group, computed in float32 and rounded once."""

    def inputs(rng, shape, group_size=32, bits=4, scales=mx.float32):
        return packed_inputs(rng, shape, group_size, bits, scales)

    def observe(solution, inputs):
        dequantize, matrix = solution.module("kernels.quantize").dequantize, packed_of(solution, inputs)
        return {"default": dequantize(matrix), "float32": dequantize(matrix, mx.float32)}

    def verify(inputs, got):
        want, suspects, dtype = dense64(inputs), likely_dense(inputs), inputs["scales"].dtype
        exact = {"tol": ROUNDED[mx.float32], "dtype": mx.float32}
        close(got["float32"], want, **exact, suspects=suspects, what="dequantize(packed, float32)")
        close(got["default"], want, tol=ROUNDED[dtype], dtype=dtype, suspects=suspects, what="dequantize(packed)")


@case(task=2, params=[{"scales": a, "dtype": b} for a in FLOATS for b in FLOATS[1:] if a != b])
class DequantizeGivesTheDtypeAskedFor:
    """A dtype that is asked for is that of the result, whatever that of the scales."""

    def inputs(rng, scales, dtype):
        return packed_inputs(rng, (5, 128), scales=scales) | {"like": mx.zeros((1,), dtype)}

    def observe(solution, inputs):
        return solution.module("kernels.quantize").dequantize(packed_of(solution, inputs), inputs["like"].dtype)

    def verify(inputs, got):
        dtype = inputs["like"].dtype
        close(got, dense64(inputs), tol=ROUNDED[dtype], dtype=dtype, what=f"dequantize(packed, {dtype})")


@case(
    task=2,
    params=[{"kind": "normal"}, {"kind": "one outlier"}, {"kind": "from zero up"}, {"kind": "normal", "bits": 8}],
)
class RoundTripStaysWithinAStep:
    """Quantised and back, a number moves by at most half a step, and near the far end of its group by at most one."""

    def inputs(rng, kind, bits=4):
        return {"w": mx.array(values(rng, kind, (16, 128)).astype(np.float32)), "bits": bits}

    def observe(solution, inputs):
        module = solution.module("kernels.quantize")
        return module.dequantize(module.quantize(inputs["w"], 32, inputs["bits"]))

    def verify(inputs, got):
        w, bits = wide(inputs["w"]), inputs["bits"]
        _, scales, biases = map(np.array, mlx_quantize(inputs["w"], 32, bits))
        step, start = np.abs(scales).repeat(32, -1), biases.repeat(32, -1)
        allowed = np.where(np.abs(w - start) <= (2**bits - 0.5) * step, 0.5, 1.0) + 1e-4
        moved = np.abs(wide(got) - w) / step
        if got.shape != w.shape or (moved > allowed).any():
            raise AssertionError(
                f"a number moved by {moved.max():.3g} steps: half a step is the limit where the levels reach"
            )


LAYERS = [
    {"shape": (), "O": 5, "I": 32},
    {"shape": (4,), "O": 32, "I": 32},
    {"shape": (2, 3), "O": 7, "I": 128, "group_size": 64},
    {"shape": (2, 1, 3), "O": 12, "I": 64, "bits": 8},
    {"shape": (3,), "O": 9, "I": 128, "scales": mx.bfloat16},
    {"shape": (3,), "O": 9, "I": 128, "dtype": mx.float16, "scales": mx.float16},
    {"shape": (3,), "O": 9, "I": 128, "dtype": mx.bfloat16, "scales": mx.float32},
]


def layer_inputs(rng, shape, O, I, group_size=32, bits=4, dtype=mx.float32, scales=mx.float32):  # noqa: E741
    return packed_inputs(rng, (O, I), group_size, bits, scales) | {"x": normal(rng, (*shape, I), dtype)}


def check_product(inputs: dict, got: object, what: str) -> None:
    x, w = wide(inputs["x"]), dense64(inputs)
    suspects = {text: lambda w=w: x @ (w() if callable(w) else w).T for text, w in likely_dense(inputs).items()}
    suspects["the matrix was not transposed: a row is an output"] = lambda: x @ w
    rounded = mx.array(w.astype(np.float32)).astype(inputs["scales"].dtype)
    suspects["the matrix was rounded to the dtype of its scales, not to that of x"] = x @ wide(rounded).T
    dtype = inputs["x"].dtype
    close(got, x @ w.T, tol=STEP[dtype], dtype=dtype, suspects=suspects, what=what)


@case(task=3, params=LAYERS)
class LinearMatchesFloat64:
    """A packed layer gives x times the unpacked matrix, for any leading axes, in the dtype of x."""

    inputs = layer_inputs

    def observe(solution, inputs):
        return solution.module("kernels.packed").QuantizedLinear(packed_of(solution, inputs))(inputs["x"])

    def verify(inputs, got):
        check_product(inputs, got, "QuantizedLinear(packed)(x)")


@case(task=3, params=LAYERS)
class EmbeddingScoresEveryRow:
    """As output head, a packed table gives the dot product of x with each of its rows, in the dtype of x."""

    inputs = layer_inputs

    def observe(solution, inputs):
        return solution.module("kernels.packed").QuantizedEmbedding(packed_of(solution, inputs)).as_linear(inputs["x"])

    def verify(inputs, got):
        check_product(inputs, got, "QuantizedEmbedding(packed).as_linear(x)")


@case(
    task=3,
    params=[
        {"shape": (), "V": 9, "E": 32},
        {"shape": (7,), "V": 32, "E": 32, "tokens": "uint32"},
        {"shape": (2, 5), "V": 11, "E": 128, "group_size": 64, "tokens": "int64"},
        {"shape": (2, 1, 4), "V": 40, "E": 64, "bits": 8},
        {"shape": (3, 4), "V": 9, "E": 128, "scales": mx.bfloat16},
        {"shape": (3, 4), "V": 9, "E": 128, "scales": mx.bfloat16, "dtype": mx.float32},
        {"shape": (3, 4), "V": 9, "E": 128, "dtype": mx.float16},
    ],
)
class EmbeddingLooksUpRows:
    """Each token becomes its row, unpacked, for any shape of tokens, in the embedding's dtype."""

    def inputs(rng, shape, V, E, tokens="int32", dtype=None, **packing):
        chosen = rng.integers(0, V, shape)
        if shape:
            chosen.flat[0], chosen.flat[-1] = V - 1, 0
        inputs = packed_inputs(rng, (V, E), **packing) | {"tokens": mx.array(chosen.astype(tokens))}
        return inputs if dtype is None else inputs | {"like": mx.zeros((1,), dtype)}

    def observe(solution, inputs):
        dtype = inputs["like"].dtype if "like" in inputs else None
        embedding = solution.module("kernels.packed").QuantizedEmbedding(packed_of(solution, inputs), dtype)
        return embedding(inputs["tokens"])

    def verify(inputs, got):
        tokens, table = np.array(inputs["tokens"]).astype(int), dense64(inputs)
        dtype = inputs.get("like", inputs["scales"]).dtype
        first = inputs | {name: inputs[name][:1] for name in ("scales", "biases")}
        suspects = {text: lambda w=w: (w() if callable(w) else w)[tokens] for text, w in likely_dense(inputs).items()}
        suspects |= {
            "the tokens were taken to start at 1": table[tokens - 1],
            "columns were looked up, not rows": lambda: table.T[tokens],
            "every row was unpacked with the scales and biases of the first one": lambda: dense64(first)[tokens],
        }
        close(
            got,
            table[tokens],
            tol=ROUNDED[dtype],
            dtype=dtype,
            suspects=suspects,
            what="QuantizedEmbedding(packed)(tokens)",
        )


def memory_of(run: Callable[[], mx.array], *ready: mx.array) -> dict[str, int]:
    """Bytes of MLX arrays that `run` needs at its peak, and that it leaves behind when its result is gone."""
    mx.eval(*ready)
    mx.synchronize()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    result = run()
    mx.eval(result)
    mx.synchronize()
    peak = mx.get_peak_memory() - before
    del result
    return {"peak": peak, "left": mx.get_active_memory() - before}


@case(task=3, params=[{"shape": (3,)}, {"shape": (2, 4)}])
class EmbeddingUnpacksOnlyItsRows:
    """Looking up a few tokens needs memory for their rows, not for the table."""

    def inputs(rng, shape, V=8192, E=128):
        return packed_inputs(rng, (V, E), 64) | {"tokens": mx.array(rng.integers(0, V, shape))}

    def observe(solution, inputs):
        embedding = solution.module("kernels.packed").QuantizedEmbedding(packed_of(solution, inputs))
        tokens = inputs["tokens"]
        return memory_of(lambda: embedding(tokens), *(inputs[name] for name in ("words", "scales", "biases")), tokens)

    def verify(inputs, got):
        words, tokens = inputs["words"], inputs["tokens"].size
        if got["peak"] > words.nbytes // 4:
            raise AssertionError(
                f"looking up {tokens} rows of 512 bytes took {got['peak']:,} bytes at the peak: "
                f"the whole table was unpacked or copied (packed, it has {words.nbytes:,} bytes)"
            )


@case(task=3, params=[{"layer": "QuantizedLinear"}, {"layer": "QuantizedEmbedding"}])
class LayersStayPacked:
    """After a product nothing dense is left behind: the weight in memory is the packed one."""

    def inputs(rng, layer):
        return packed_inputs(rng, (1024, 256), 64) | {"x": normal(rng, (2, 256)), "layer": layer}

    def observe(solution, inputs):
        layer = getattr(solution.module("kernels.packed"), inputs["layer"])(packed_of(solution, inputs))
        product = layer if inputs["layer"] == "QuantizedLinear" else layer.as_linear
        x = inputs["x"]
        return memory_of(lambda: product(x), *(inputs[name] for name in ("words", "scales", "biases")), x)

    def verify(inputs, got):
        dense = 1024 * 256 * 4
        if got["left"] > dense // 8:
            raise AssertionError(
                f"{inputs['layer']} left {got['left']:,} bytes behind: the unpacked matrix ({dense:,} bytes) was kept"
            )


SIZES = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 32, "intermediate": 128, "vocab": 37}


def checkpoint(rng, sizes: dict, dtype: mx.Dtype, group_size: int, bits: int, stored_dense: bool) -> dict[str, object]:
    """The files of a checkpoint, packed by MLX or dense, and the weights a packed model of it stands for."""
    shape = Shape(**{"rope_theta": 1e4, "max_positions": 64, **SIZES, **sizes})
    dense = {name: mx.array(w).astype(dtype) for name, w in random_weights(rng, shape)}
    small = packed(dense, group_size, bits)
    config = hf_config(shape)
    if not stored_dense:
        config["quantization"] = {"group_size": group_size, "bits": bits}
    files = files_of(dense if stored_dense else small) | {"config.json": json.dumps(config).encode()}
    return {"sizes": asdict(shape), "files": files, "weights": unpacked(small, bits)}


def load(solution, folder, name="packed"):
    """The model that load_packed_model reads, in float32."""
    ops = solution.module("kernels.tables").make_ops(name)
    return solution.module("kernels.load").load_packed_model(folder, ops, mx.float32)


@case(
    task=3,
    params=[
        {"sizes": {}},
        {"sizes": {"tied": False, "layers": 1}, "dtype": mx.bfloat16},
        {"sizes": {"heads": 6, "kv_heads": 1}, "group_size": 32, "bits": 8},
        {"sizes": {"head_dim": 64, "hidden": 128}, "stored_dense": True},
        {"sizes": {"tied": False}, "stored_dense": True, "dtype": mx.bfloat16},
    ],
)
class PackedModelMatchesFloat64:
    """A model whose matrices stay packed scores as the float64 model of the unpacked ones, tied head or not."""

    def inputs(rng, sizes, dtype=mx.float32, group_size=64, bits=4, stored_dense=False):
        inputs = checkpoint(rng, sizes, dtype, group_size, bits, stored_dense)
        return inputs | {"tokens": mx.array(rng.integers(0, SIZES["vocab"], (2, 7)))}

    def observe(solution, inputs):
        with folder_of(inputs["files"]) as folder:
            return load(solution, folder)(inputs["tokens"])

    def verify(inputs, got):
        def logits(kind):
            return kind(Shape(**inputs["sizes"]), inputs["weights"]).logits(np.array(inputs["tokens"]))

        suspects = {text: lambda kind=kind: logits(kind) for text, kind in MODEL_MISTAKES.items()}
        want = logits(Qwen3Float64)
        close(got, want, tol=3e-5, dtype=mx.float32, suspects=suspects, what="logits of the packed model")


@case(task=3, timeout=10.0)
class EmbeddedModelScoresAsItsWeightsSay:
    """The 4-bit model of this repository gives, for 16 prompts, the logits of its unpacked weights in float64."""

    def inputs(rng):
        weights = mx.load(str(MODELS / "tiny-4bit" / "model.safetensors"))
        shape = Shape(256, 4, 768, 4, 2, 64, 2048, max_positions=2048)
        return {
            "folder": str(MODELS / "tiny-4bit"),
            "sizes": asdict(shape),
            "weights": unpacked(weights, 4),
            "tokens": mx.array(rng.integers(0, 2048, (16, 12))),
        }

    def observe(solution, inputs):
        from pathlib import Path

        return load(solution, Path(inputs["folder"]))(inputs["tokens"])

    def verify(inputs, got):
        want = Qwen3Float64(Shape(**inputs["sizes"]), inputs["weights"]).logits(np.array(inputs["tokens"]))
        close(got, want, tol=3e-5, dtype=mx.float32, what="logits of tiny-4bit")
