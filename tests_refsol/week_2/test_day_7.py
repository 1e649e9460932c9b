"""Week 2 Day 7: flash attention in Python, C++ and Metal, against NumPy in float64 and against limits of memory."""

import json
from dataclasses import asdict
from itertools import pairwise

import mlx.core as mx
import numpy as np

from course.attention_case import (
    VIEWS,
    attention64,
    dealt,
    random_attention,
    steep_attention,
    suspects,
    view_of,
    walk,
)
from course.case import case, error_of
from course.checkpoint_files import files_of, folder_of, packed, unpacked, wide
from course.checkpoints import Shape, hf_config, random_weights
from course.compare import close
from course.kernel_case import checked_run, judge, judge_proof, judge_traffic, proven_run
from course.kernels import OPERATORS, forbidden_symbols
from course.peak import resident_growth
from course.qwen3_float64 import Qwen3Float64

TOLERANCE = {mx.float32: 1e-5, mx.float16: 1.5e-3, mx.bfloat16: 1e-2}
"""Round-off of float32 sums, and one rounding of the result, as a share of the largest value."""
STEEP = {mx.float32: 5e-4, mx.float16: 2e-3, mx.bfloat16: 1e-2}
"""For scores of about 300: their own round-off in float32 moves the weights by 5e-4. In float16 it would be 0.1."""
SLOPES = ("rising", "falling", "far above zero", "far below zero")
CPP_KEYS = (64, 32, 16)
"""Keys of a block of the C++ kernel on machines with 16, 8 and 4 lanes: for naming mistakes only."""
BLOCKWISE = (
    "the last block of keys was left out",
    "the first block of keys was left out",
    "the sum was not rescaled when the maximum grew",
    "the result was not rescaled when the maximum grew",
)


def of(inputs):
    """q, k and v."""
    return inputs["q"], inputs["k"], inputs["v"]


def judged(inputs, got, parts, *, tol=None, what="result", more=None):
    """`got` equals the float64 attention of the inputs, in the dtype of q; `more` are further suspects."""
    q, k, v = of(inputs)
    scale, tol = inputs.get("scale"), tol or TOLERANCE[q.dtype]
    compare = judge if isinstance(got, dict) else close
    why = suspects(q, k, v, scale, parts) | (more or {})
    compare(got, attention64(q, k, v, scale), tol=tol, dtype=q.dtype, suspects=why, what=what)


def judged_cpp(inputs, got, *, tol=None, more=None):
    """As `judged`, for the C++ kernel, whose blocks have the size that fits the machine."""
    S, scale = inputs["k"].shape[2], inputs.get("scale")
    for size in CPP_KEYS[1:]:
        why = suspects(*of(inputs), scale, walk(S, size)) if size < S else {}
        more = {f"{text} (blocks of {size})": why[text] for text in BLOCKWISE if why} | (more or {})
    judged(inputs, got, walk(S, CPP_KEYS[0]), tol=tol, more=more)


def blind(inputs, got):
    """Of L > S queries the first L - S see no key: their results are zeros."""
    result = got["result"] if isinstance(got, dict) else got
    numbers = wide(result)[:, :, : inputs["q"].shape[2] - inputs["k"].shape[2]]
    if not np.isfinite(numbers).all():
        raise AssertionError("a query that sees no key gave NaN: its sum is 0, and nothing may be divided by it")
    if np.any(numbers != 0):
        raise AssertionError("a query that sees no key must give zeros: has every key of its first block weight 1?")


def options(inputs):
    """The arguments of an implementation that stand in `inputs`."""
    return {name: x for name, x in inputs.items() if name in ("q", "k", "v", "scale", "block", "threads")}


# Task 1: in array operations


def python(solution):
    return solution.module("kernels.flash").flash_attention


@case(
    task=1,
    params=[
        {"L": 5, "S": 5, "block": 2},
        {"B": 2, "H": 4, "H_kv": 2, "L": 7, "S": 30, "D": 16, "block": 8},
        {"H": 6, "H_kv": 2, "L": 1, "S": 45, "D": 5, "block": 16},
        {"H": 3, "L": 33, "S": 33, "D": 64, "block": 16},
        {"B": 3, "H": 2, "H_kv": 2, "L": 9, "S": 20, "D": 80, "block": 7},
        {"H": 2, "L": 3, "S": 300},
        {"L": 1, "S": 1, "D": 3},
        {"H": 4, "H_kv": 2, "L": 6, "S": 25, "block": 10, "scale": 0.9},
        {"H": 4, "H_kv": 2, "L": 6, "S": 25, "block": 10, "dtype": mx.float16},
        {"H": 4, "L": 12, "S": 40, "D": 32, "block": 16, "dtype": mx.bfloat16},
    ],
)
class FlashMatchesFloat64:
    """Attention over blocks of keys equals the float64 result: causal, grouped, for any sizes, scale and dtype."""

    def inputs(rng, block=None, scale=None, **sizes):
        return (
            random_attention(rng, **sizes)
            | ({} if block is None else {"block": block})
            | ({} if scale is None else {"scale": scale})
        )

    def observe(solution, inputs):
        return python(solution)(**options(inputs))

    def verify(inputs, got):
        judged(inputs, got, walk(inputs["k"].shape[2], inputs.get("block", 128)))


@case(task=1, params=[{"L": 1, "S": 23}, {"L": 11, "S": 23}, {"L": 16, "S": 16}])
class BlockChangesNothing:
    """The size of a block decides how much memory is used, not what comes out."""

    def inputs(rng, **sizes):
        inputs = random_attention(rng, H=4, H_kv=2, D=6, **sizes)
        S = sizes["S"]
        return inputs | {"blocks": [1, 2, 5, 8, S - 1, S, S + 1, 1000]}

    def observe(solution, inputs):
        return [python(solution)(**options(inputs), block=block) for block in inputs["blocks"]]

    def verify(inputs, got):
        for block, result in zip(inputs["blocks"], got, strict=True):
            judged(inputs, result, walk(inputs["k"].shape[2], block), what=f"the result with block={block}")


@case(
    task=1,
    params=[
        *({"slope": slope} for slope in SLOPES),
        {"slope": "far below zero", "dtype": mx.float16},
        {"slope": "far above zero", "dtype": mx.bfloat16},
    ],
)
class FlashSurvivesSteepScores:
    """Scores far from zero, rising or falling, give finite and right results: only differences matter."""

    def inputs(rng, slope, dtype=mx.float32):
        return steep_attention(rng, slope, H=2, L=3, S=40, D=16, dtype=dtype) | {"scale": 0.9, "block": 8}

    def observe(solution, inputs):
        return python(solution)(**options(inputs))

    def verify(inputs, got):
        judged(inputs, got, walk(40, 8), tol=STEEP[inputs["q"].dtype])


@case(task=1, params=[{"L": 7, "S": 3, "block": 2}, {"L": 20, "S": 1}, {"L": 9, "S": 8, "block": 3, "H": 4}])
class QueriesThatSeeNothingGetZeros:
    """With more queries than positions the first ones see no key: they get zeros, and the others what they see."""

    def inputs(rng, block=128, **sizes):
        return random_attention(rng, B=2, **sizes) | {"block": block}

    def observe(solution, inputs):
        return python(solution)(**options(inputs))

    def verify(inputs, got):
        blind(inputs, got)
        judged(inputs, got, walk(inputs["k"].shape[2], inputs["block"]))


@case(task=1, params=[{"view": view} for view in VIEWS])
class FlashTakesViews:
    """Views of a cache, or of any other array, give the result of their copies."""

    def inputs(rng, view):
        return random_attention(rng, B=2, H=4, H_kv=2, L=3, S=19, D=8) | {"view": view}

    def observe(solution, inputs):
        return python(solution)(*(view_of(x, inputs["view"]) for x in of(inputs)), block=4)

    def verify(inputs, got):
        judged(inputs, got, walk(19, 4))


@case(task=1, params=[{"dtype": mx.float16}, {"dtype": mx.bfloat16}])
class FlashSumsInFloat32:
    """Maximum, sum and result are kept in float32: a bfloat16 sum of ones stops growing at 256."""

    def inputs(rng, dtype):
        S = 2500 if dtype == mx.float16 else 700
        v = np.where(np.arange(S)[:, None] < S // 2, 1.0, 3.0) * rng.uniform(0.9, 1.1, 4)
        return {
            "q": mx.zeros((1, 1, 1, 4), dtype),
            "k": mx.ones((1, 1, S, 4), dtype),
            "v": mx.array(v[None, None].astype(np.float32)).astype(dtype),
            "block": 4 if dtype == mx.float16 else 1,
        }

    def observe(solution, inputs):
        return python(solution)(**options(inputs))

    def verify(inputs, got):
        S = inputs["k"].shape[2]
        want = attention64(*of(inputs))
        dtype = str(inputs["q"].dtype).rpartition(".")[2]
        if np.abs(wide(got) - want).max() > 0.02 * want.max():
            raise AssertionError(
                f"the mean of {S} equal keys' values is {wide(got).flat[0]:.4g}, expected {want.flat[0]:.4g}: sums in "
                f"{dtype} stop growing, keep them in float32"
            )
        judged(inputs, got, walk(S, inputs["block"]))


@case(task=1, params=[{"L": 1, "S": 32_768, "block": 256}, {"L": 64, "S": 8192, "block": 64}], timeout=20.0)
class FlashNeverHoldsAllScores:
    """Memory grows with the block, not with the number of keys; and keys and values are not copied as a whole."""

    def inputs(rng, **sizes):
        return {"seed": int(rng.integers(2**31)), **sizes}

    def observe(solution, inputs):
        H, D, L, S = 8, 16, inputs["L"], inputs["S"]
        keys = mx.random.split(mx.random.key(inputs["seed"]), 3)
        q = mx.random.normal((1, H, L, D), key=keys[0])
        k, v = (mx.random.normal((1, 2, S + 32, D), key=key)[:, :, :S] for key in keys[1:])
        mx.eval(q, k, v)
        before = mx.get_active_memory()
        mx.reset_peak_memory()
        result = python(solution)(q, k, v, block=inputs["block"])
        mx.eval(result)
        return {"taken": mx.get_peak_memory() - before, "result": result, "q": q, "k": k, "v": v}

    def verify(inputs, got):
        scores = 4 * 8 * inputs["L"] * inputs["S"]
        if got["taken"] > scores / 2:
            raise AssertionError(
                f"{got['taken']:,} bytes were in use at a time: scores of all {inputs['S']:,} keys take {scores:,}, "
                f"those of a block of {inputs['block']} only {scores * inputs['block'] // inputs['S']:,}. Hold one "
                "block, and copy no key or value but those of the block. If you do, MLX runs the blocks side by side: "
                "mx.eval after each"
            )
        close(got["result"], attention64(*of(got)), tol=1e-4, dtype=mx.float32)


@case(task=1)
class FlashRefusesWhatDoesNotFit:
    """Shapes that do not fit and blocks without a key are ValueErrors that name the values."""

    def inputs(rng):
        return random_attention(rng, H=4, H_kv=2, L=2, S=5, D=8)

    def observe(solution, inputs):
        flash = python(solution)
        q, k, v = of(inputs)
        wrong = {
            "block 0": (lambda: flash(q, k, v, block=0)),
            "block -3": (lambda: flash(q, k, v, block=-3)),
            "(1, 3, 2, 8)": lambda: flash(q[:, :3], k, v),
            "(1, 2, 4, 8)": lambda: flash(q, k, v[:, :, :4]),
            "(1, 2, 5, 6)": lambda: flash(q, k[..., :6], v[..., :6]),
            "(4, 2, 8)": lambda: flash(q[0], k, v),
        }
        return {text: error_of(call) for text, call in wrong.items()}

    def verify(inputs, got):
        for text, error in got.items():
            if error["type"] != "ValueError" or text not in error["message"]:
                raise AssertionError(
                    f"expected a ValueError that names {text}, got {error['type'] or 'no error'}: "
                    f"{error.get('message', '')}"
                )


# Task 2: in C++


def cpp(solution):
    return solution.module("kernels.flash").cpu_flash_attention


@case(
    task=2,
    params=[
        {"L": 1, "S": 1, "D": 8},
        {"B": 2, "H": 4, "H_kv": 2, "L": 1, "S": 63, "D": 64},
        {"H": 8, "H_kv": 2, "L": 1, "S": 64, "D": 128},
        {"H": 16, "H_kv": 1, "L": 1, "S": 65, "D": 80},  # many rows for one token
        {"H": 6, "H_kv": 3, "L": 1, "S": 700, "D": 24},  # keys in several parts
        {"H": 2, "L": 1, "S": 1500, "D": 8},
        {"L": 2, "S": 33, "D": 5},
        {"B": 2, "H": 3, "H_kv": 3, "L": 17, "S": 40, "D": 72},
        {"H": 4, "H_kv": 1, "L": 20, "S": 20, "D": 64},
        {"H": 2, "H_kv": 2, "L": 66, "S": 130, "D": 16},  # two tiles of queries
        {"H": 4, "H_kv": 2, "L": 129, "S": 129, "D": 33},
        {"L": 9, "S": 600, "D": 256},
        {"H": 4, "H_kv": 2, "L": 5, "S": 50, "scale": 0.7},
        {"H": 4, "H_kv": 2, "L": 1, "S": 200, "D": 64, "dtype": mx.bfloat16},
        {"H": 4, "H_kv": 2, "L": 18, "S": 75, "D": 80, "dtype": mx.bfloat16},
        {"H": 9, "H_kv": 3, "L": 3, "S": 300, "D": 7, "dtype": mx.bfloat16},
    ],
)
class CppFlashMatchesFloat64:
    """The C++ kernel equals the float64 result, for one query and for many, whatever the sizes and the dtype."""

    def inputs(rng, scale=None, **sizes):
        return random_attention(rng, **sizes) | ({} if scale is None else {"scale": scale})

    def observe(solution, inputs):
        return cpp(solution)(**options(inputs))

    def verify(inputs, got):
        judged_cpp(inputs, got)


@case(
    task=2,
    params=[
        *({"slope": slope, "L": L} for slope in SLOPES for L in (1, 12)),
        {"slope": "far above zero", "L": 12, "dtype": mx.bfloat16},
    ],
)
class CppFlashSurvivesSteepScores:
    """Scores far from zero, rising or falling, give finite and right results in C++ too."""

    def inputs(rng, slope, L, dtype=mx.float32):
        return steep_attention(rng, slope, H=2, L=L, S=300, D=16, dtype=dtype) | {"scale": 0.9}

    def observe(solution, inputs):
        return cpp(solution)(**options(inputs))

    def verify(inputs, got):
        judged_cpp(inputs, got, tol=STEEP[inputs["q"].dtype])


@case(task=2, params=[{"L": 7, "S": 3}, {"L": 80, "S": 2, "H": 4}, {"L": 300, "S": 260, "D": 16}])
class CppQueriesThatSeeNothingGetZeros:
    """With more queries than positions the first ones see no key, and get zeros in C++ too."""

    def inputs(rng, **sizes):
        return random_attention(rng, B=2, **sizes)

    def observe(solution, inputs):
        return cpp(solution)(**options(inputs))

    def verify(inputs, got):
        blind(inputs, got)
        judged_cpp(inputs, got)


@case(task=2, params=[{"view": view, "L": L} for view in VIEWS for L in (1, 20)])
class CppFlashReadsViewsByTheirStrides:
    """Views of a cache give the result of their copies: a key's numbers stand where the strides say."""

    def inputs(rng, view, L):
        return random_attention(rng, B=2, H=4, H_kv=2, L=L, S=90, D=24) | {"view": view}

    def observe(solution, inputs):
        return cpp(solution)(*(view_of(x, inputs["view"]) for x in of(inputs)))

    def verify(inputs, got):
        judged_cpp(inputs, got, more=ignoring(inputs))


def ignoring(inputs):
    """What comes out if the rows of a head are read one behind the other, where all heads of a token lie together."""
    if inputs["view"] != "heads last":
        return {}
    q, k, v = of(inputs)
    H_kv, S, D = k.shape[1:]
    packed_rows = []
    for x in (k, v):
        memory = np.array(x).swapaxes(1, 2).reshape(x.shape[0], -1)
        heads = [memory[:, h * D :][:, : S * D] for h in range(H_kv)]
        padded = [np.pad(rows, ((0, 0), (0, S * D - rows.shape[1]))) for rows in heads]
        packed_rows.append(mx.array(np.stack(padded, axis=1).reshape(x.shape)))
    text = "the strides were ignored: a key's row is not D numbers behind the one before"
    return {text: attention64(q, *packed_rows)}


@case(task=2, params=[{"L": 1, "S": 2**21}, {"L": 8, "S": 2**18}], timeout=20.0)
class CppFlashNeverHoldsAllScores:
    """The process needs no memory that grows with the number of keys: no row of scores, no copy of keys or values."""

    def inputs(rng, **sizes):
        q = mx.array(rng.standard_normal((1, 8, sizes["L"], 16)).astype(np.float32))
        row = mx.array(rng.standard_normal((1, 1, 1, 16)).astype(np.float32))
        return {"q": q, "row": row, **sizes}

    def observe(solution, inputs):
        q, row, flash = inputs["q"], inputs["row"], cpp(solution)
        many = mx.broadcast_to(row, (1, 1, inputs["S"], 16))  # S rows in the memory of one
        mx.eval(q, many, flash(q, many[:, :, :2000], many[:, :, :2000]))  # whatever is made once is made now
        results = []
        taken = resident_growth(lambda: (results.append(flash(q, many, many)), mx.eval(results)))
        return {"taken": taken, "result": results[0]}

    def verify(inputs, got):
        scores = 4 * 8 * inputs["L"] * inputs["S"]
        if got["taken"] > scores / 8:
            raise AssertionError(
                f"the process grew by {got['taken']:,} bytes: the scores of all {inputs['S']:,} keys take {scores:,}, "
                "those of a block a few thousand. Hold the scores of one block, and read keys and values where they lie"
            )
        want = np.broadcast_to(wide(inputs["row"]), inputs["q"].shape)
        close(got["result"], want, tol=2e-2, dtype=mx.float32, what="the mean of equal values")


@case(task=2, params=[{"L": 1}, {"L": 10}])
class CppFlashIsComputedByTheKernel:
    """The result is what the C++ kernel returns, and the library takes no product or softmax from anywhere."""

    def inputs(rng, L):
        return random_attention(rng, H=2, L=L, S=20, D=16)

    def observe(solution, inputs):
        values = proven_run(lambda: cpp(solution)(**options(inputs)), ["flash_attention"])
        return values | {"symbols": forbidden_symbols(solution.library, OPERATORS)}

    def verify(inputs, values):
        judge_proof(values, ["flash_attention"])
        if values["symbols"]:
            raise AssertionError(f"the library calls {values['symbols'][0]}: write the operation yourself")


SIZES = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 32, "intermediate": 64, "vocab": 37, "layers": 2}


def model_inputs(rng, B):
    """A packed checkpoint, the weights it stands for, and tokens."""
    shape = Shape(**{"rope_theta": 1e4, "max_positions": 64, **SIZES})
    dense = {name: mx.array(w) for name, w in random_weights(rng, shape)}
    small = packed(dense, 64, 4)
    config = hf_config(shape) | {"quantization": {"group_size": 64, "bits": 4}}
    files = files_of(small) | {"config.json": json.dumps(config).encode()}
    tokens = mx.array(rng.integers(0, SIZES["vocab"], (B, 11)))
    return {"sizes": asdict(shape), "files": files, "weights": unpacked(small, 4), "tokens": tokens}


CHUNKS = (0, 4, 5, 9, 10, 11)


def chunked(solution, folder, table, tokens):
    """Logits (B, L, V) of a model with this table through caches, a chunk of tokens at a time."""
    ops = solution.module("kernels.tables").make_ops(table)
    model = solution.module("kernels.load").load_packed_model(folder, ops, mx.float32)
    caches = [solution.module("cache.dense").DenseCache(2) for _ in model.layers]
    return mx.concatenate([model(tokens[:, a:b], caches) for a, b in pairwise(CHUNKS)], axis=1)


def judge_model(inputs, values):
    """The logits are those of the float64 model over all tokens at once."""
    want = Qwen3Float64(Shape(**inputs["sizes"]), inputs["weights"]).logits(np.array(inputs["tokens"]))
    close(values["result"], want, tol=5e-5, dtype=mx.float32, what="logits of the model with a cache")


@case(task=2, params=[{"B": 1}, {"B": 2}])
class FlashModelMatchesFloat64:
    """A model whose attention is the C++ kernel scores in chunks, over a cache, as the float64 model does at once."""

    def inputs(rng, B):
        return model_inputs(rng, B)

    def observe(solution, inputs):
        mx.set_default_device(mx.cpu)
        with folder_of(inputs["files"]) as folder:
            return proven_run(lambda: chunked(solution, folder, "flash", inputs["tokens"]), ["flash_attention"])

    def verify(inputs, values):
        judge_model(inputs, values)
        judge_proof(values, ["flash_attention"])


# Tasks 3 and 4: on Metal


def metal(solution):
    return solution.module("kernels.metal_flash").metal_flash_attention


@case(
    task=3,
    params=[
        {"S": 1, "D": 8},
        {"S": 2, "D": 64, "threads": 32},
        {"B": 2, "H": 4, "H_kv": 2, "S": 7, "D": 64, "threads": 64},
        {"H": 2, "S": 33, "D": 128},
        {"H": 6, "H_kv": 3, "S": 40, "D": 80, "threads": 96},
        {"H": 2, "S": 5, "D": 72, "threads": 1024},  # most simdgroups have no key
        {"H": 3, "H_kv": 3, "S": 100, "D": 40, "threads": 1024},
        {"S": 300, "D": 32},
        {"H": 4, "H_kv": 2, "S": 21, "D": 16, "threads": 128, "scale": 0.8},
        {"H": 2, "S": 50, "D": 64, "dtype": mx.float16},
        {"H": 4, "H_kv": 2, "S": 35, "D": 128, "dtype": mx.bfloat16, "threads": 128},
    ],
)
class DecodeMatchesFloat64:
    """One query over all cached keys equals the float64 result, for any number of keys and of SIMD groups."""

    def inputs(rng, threads=256, scale=None, **sizes):
        inputs = random_attention(rng, L=1, **sizes) | {"threads": threads}
        return inputs | ({} if scale is None else {"scale": scale})

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        judged(inputs, values, dealt(inputs["k"].shape[2], inputs["threads"] // 32))


@case(
    task=3,
    params=[
        *({"slope": slope, "threads": threads} for slope in SLOPES for threads in (32, 256)),
        {"slope": "far above zero", "threads": 64, "dtype": mx.float16},
    ],
)
class DecodeSurvivesSteepScores:
    """Scores far from zero, rising or falling, give finite and right results, in one SIMD group or several."""

    def inputs(rng, slope, threads, dtype=mx.float32):
        inputs = steep_attention(rng, slope, H=2, L=1, S=40, D=16, dtype=dtype)
        return inputs | {"scale": 0.9, "threads": threads}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        judged(inputs, values, dealt(40, inputs["threads"] // 32), tol=STEEP[inputs["q"].dtype])


@case(task=3, params=[{"view": view} for view in VIEWS])
class DecodeReadsViewsByTheirStrides:
    """Views of a cache give the result of their copies, without a copy."""

    def inputs(rng, view):
        return random_attention(rng, B=2, H=4, H_kv=2, L=1, S=19, D=24) | {"view": view, "threads": 64}

    def observe(solution, inputs):
        views = [view_of(x, inputs["view"]) for x in of(inputs)]
        return checked_run(lambda: metal(solution)(*views, threads=64))

    def verify(inputs, values):
        judged(inputs, values, dealt(19, 2), more=ignoring(inputs))


@case(task=3, params=[{"threads": 256}, {"threads": 1024}])
class DecodeTakesAnyNumberOfKeys:
    """Scores are not stored: with more keys than threadgroup memory has numbers, the result is as right as with few."""

    def inputs(rng, threads):
        return random_attention(rng, S=9000, D=8) | {"threads": threads}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        judged(inputs, values, dealt(9000, inputs["threads"] // 32))


@case(task=3, params=[{"D": 64, "threads": 256}, {"D": 128, "threads": 64, "dtype": mx.bfloat16}])
class DecodeReadsKeysOnce:
    """Each head reads its keys and values once, neighbours together, and writes only the result."""

    def inputs(rng, threads, **sizes):
        return random_attention(rng, H=2, L=1, S=400, **sizes) | {"threads": threads}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        q, k, _ = of(inputs)
        heads = q.shape[0] * q.shape[1]
        read = heads * (2 * k.shape[2] + inputs["threads"] // 32) * q.shape[3] * q.dtype.size
        judge_traffic(values, "flash_decode", {"device_read_bytes": read}, slack=1.4)
        judge_traffic(values, "flash_decode", {"device_write_bytes": q.nbytes}, slack=1.0)
        whole = heads * 2 * k.shape[2] * -(-q.shape[3] * q.dtype.size // 128)
        per_request = heads * 2 * k.shape[2] * q.shape[3] // 32
        judge_traffic(values, "flash_decode", {"device_read_lines": max(whole, per_request), "barriers": 4 * heads})


@case(task=3)
class DecodeIsComputedByTheKernel:
    """The result is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        return random_attention(rng, H=2, L=1, S=9, D=16)

    def observe(solution, inputs):
        return proven_run(lambda: metal(solution)(**options(inputs)), ["flash_decode"])

    def verify(inputs, values):
        judge_proof(values, ["flash_decode"])


QUERIES, KEYS = 32, 16
"""Rows of a tile of `flash_prefill`; keys of one for head dimensions above 64, twice as many below."""


@case(
    task=4,
    params=[
        {"L": 2, "S": 2, "D": 8},
        {"B": 2, "H": 4, "H_kv": 2, "L": 5, "S": 21, "D": 16},
        {"L": 32, "S": 32, "D": 64},
        {"H": 2, "L": 33, "S": 33, "D": 64},
        {"L": 40, "S": 71, "D": 32},
        {"H": 3, "H_kv": 3, "L": 9, "S": 64, "D": 80},
        {"L": 35, "S": 50, "D": 128},
        {"H": 2, "L": 3, "S": 100, "D": 72},
        {"H": 4, "H_kv": 2, "L": 7, "S": 39, "D": 16, "scale": 0.8},
        {"H": 2, "L": 20, "S": 45, "D": 64, "dtype": mx.float16},
        {"H": 2, "L": 34, "S": 40, "D": 128, "dtype": mx.bfloat16},
    ],
)
class PrefillMatchesFloat64:
    """Tiles of queries against tiles of keys equal the float64 result, whatever the sizes."""

    def inputs(rng, scale=None, **sizes):
        return random_attention(rng, **sizes) | ({} if scale is None else {"scale": scale})

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        judged_tiles(inputs, values)


def tile_keys(inputs):
    """Keys of a tile."""
    return 2 * KEYS if inputs["q"].shape[3] <= 64 else KEYS


def judged_tiles(inputs, values, *, tol=None, more=None):
    """As `judged`, for tiles: behind the last key stand rows of zeros, which a wrong mask lets in."""
    q, k, v = of(inputs)
    L, S = q.shape[2], k.shape[2]
    zeros = mx.zeros((*k.shape[:2], 1, k.shape[3]), k.dtype)
    longer = [mx.concatenate([x, zeros], axis=2) for x in (k, v)]
    seen = np.arange(L) + S - L + 1
    text = "the mask is off by one: a query sees one key too many, the last query one that does not exist"
    wrong = {text: lambda: attention64(q, *longer, inputs.get("scale"), last=seen)}
    judged(inputs, values, walk(S, tile_keys(inputs)), tol=tol, more=wrong | (more or {}))


@case(task=4, params=[*({"slope": slope} for slope in SLOPES), {"slope": "far below zero", "dtype": mx.float16}])
class PrefillSurvivesSteepScores:
    """Scores far from zero, rising or falling, give finite and right results in tiles too."""

    def inputs(rng, slope, dtype=mx.float32):
        return steep_attention(rng, slope, L=10, S=75, D=16, dtype=dtype) | {"scale": 0.9}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        judged_tiles(inputs, values, tol=STEEP[inputs["q"].dtype])


@case(task=4, params=[{"L": 7, "S": 3}, {"L": 70, "S": 34}, {"L": 64, "S": 1}])
class PrefillQueriesThatSeeNothingGetZeros:
    """With more queries than positions the first ones see no key, and get zeros on Metal too."""

    def inputs(rng, **sizes):
        return random_attention(rng, H=2, **sizes)

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        blind(inputs, values)
        judged_tiles(inputs, values)


@case(task=4, params=[{"view": view} for view in VIEWS])
class PrefillReadsViewsByTheirStrides:
    """Views of a cache give the result of their copies, without a copy."""

    def inputs(rng, view):
        return random_attention(rng, B=2, H=4, H_kv=2, L=6, S=37, D=24) | {"view": view}

    def observe(solution, inputs):
        views = [view_of(x, inputs["view"]) for x in of(inputs)]
        return checked_run(lambda: metal(solution)(*views))

    def verify(inputs, values):
        judged_tiles(inputs, values, more=ignoring(inputs))


@case(task=4, params=[{"L": 128, "S": 128, "D": 16}, {"L": 96, "S": 120, "D": 80}])
class PrefillSkipsWhatNobodySees:
    """Tiles above the diagonal are not read, the others once, and nothing but the result is written."""

    def inputs(rng, **sizes):
        return random_attention(rng, **sizes)

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        q, k, _ = of(inputs)
        (L, D), S, keys = q.shape[2:], k.shape[2], tile_keys(inputs)
        ends = [S - L + min(first + QUERIES, L) for first in range(0, L, QUERIES)]
        seen = sum(min(-(-end // keys) * keys, S) for end in ends)
        formula, full = (4 * D * (L + 2 * rows) for rows in (seen, S * len(ends)))
        read = sum(launch["counters"]["device_read_bytes"] for launch in values["launches"])
        if read > (formula + full) / 2:
            raise AssertionError(
                f"{read:,} bytes were read, expected about {formula:,}; reading all tiles takes {full:,}. "
                "Tiles of keys that no query of the threadgroup sees must be skipped, the others read once"
            )
        judge_traffic(values, "flash_prefill", {"device_write_bytes": q.nbytes}, slack=1.0)


@case(task=4)
class PrefillIsComputedByTheKernel:
    """The result is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        return random_attention(rng, H=2, L=5, S=9, D=16)

    def observe(solution, inputs):
        return proven_run(lambda: metal(solution)(**options(inputs)), ["flash_prefill"])

    def verify(inputs, values):
        judge_proof(values, ["flash_prefill"])


@case(task=4, timeout=20.0)
class MetalFlashModelMatchesFloat64:
    """A model on Metal kernels alone scores in chunks, over a cache, as the float64 model does at once."""

    def inputs(rng):
        return model_inputs(rng, 1)

    def observe(solution, inputs):
        kernels = ["flash_decode", "flash_prefill"]
        with folder_of(inputs["files"]) as folder:
            return proven_run(lambda: chunked(solution, folder, "metal-flash", inputs["tokens"]), kernels)

    def verify(inputs, values):
        judge_model(inputs, values)
        judge_proof(values, ["flash_decode", "flash_prefill"])
