"""Week 2 Day 4: the C++ kernels, against NumPy in float64, and the proof that they are what computes."""

import json
import os
import subprocess
import sys
from dataclasses import asdict

import mlx.core as mx
import numpy as np

from course.case import case, error_of
from course.checkpoint_files import packed, unpacked, wide
from course.checkpoints import Shape, random_weights
from course.compare import close, refused
from course.kernel_case import judge_proof, proven_run
from course.kernels import OPERATORS, forbidden_symbols
from course.model_case import config_of
from course.packed_case import close_product, dense64, normal, packed_inputs, packed_of, places
from course.qwen3_float64 import Qwen3Float64
from course.qwen3_mistakes import MODEL_MISTAKES

PRODUCT = ["quantized_matmul"]


def product_inputs(rng, x, O, I, kernel="auto", group_size=32, dtype=mx.float32, scales=mx.float32):  # noqa: E741
    """Activations (*x, I), a packed matrix (O, I), and the kernel to use."""
    return packed_inputs(rng, (O, I), group_size, scales=scales) | {"x": normal(rng, (*x, I), dtype), "kernel": kernel}


def product(solution, inputs):
    """What the solution's C++ product gives."""
    matrix = packed_of(solution, inputs)
    return solution.module("kernels.cpu").quantized_matmul(inputs["x"], matrix, inputs["kernel"])


def check_product(inputs: dict, got: object) -> None:
    """`got` is the product in float64, up to rounding."""
    x = inputs["x"]
    what = f"{inputs['kernel']} product of x {x.shape} and a matrix {(len(inputs['words']), x.shape[-1])}"
    close_product(got, x, inputs, what=what)


# What every kernel must get right, whatever its loops look like.

DTYPES = [
    {"x": (2,), "O": 6, "I": 64, "dtype": mx.bfloat16, "scales": mx.bfloat16},
    {"x": (2,), "O": 6, "I": 256, "dtype": mx.float32, "scales": mx.bfloat16, "group_size": 64},
    {"x": (3,), "O": 5, "I": 256, "dtype": mx.float32, "scales": mx.float16, "group_size": 128},
    {"x": (2,), "O": 7, "I": 384, "dtype": mx.bfloat16, "scales": mx.float32, "group_size": 128},
]


def surrounded(inputs: dict) -> dict:
    """The same matrix and x as views into larger arrays, with NaN and foreign words on all sides of them."""

    def within(x: mx.array, fill: object) -> mx.array:
        rows = mx.full((2, *x.shape[1:]), fill, x.dtype)
        return mx.concatenate([rows, x, rows])[2:-2]

    x = inputs["x"]
    columns = mx.full((*x.shape[:-1], 40), float("nan"), x.dtype)
    return inputs | {
        "x": mx.concatenate([columns, x, columns], axis=-1)[..., 40:-40],
        "words": within(inputs["words"], 0x5A5A5A5A),
        "scales": within(inputs["scales"], float("nan")),
        "biases": within(inputs["biases"], float("nan")),
    }


def check_surrounded(inputs: dict, got: mx.array) -> None:
    """What stands around the inputs did not get in."""
    count = int(np.isnan(wide(got)).sum())
    if count:
        raise AssertionError(f"{count} of {got.size} results are NaN: numbers were read outside of x, scales or biases")
    check_product(inputs, got)


def sweep(solution, inputs: dict) -> list[mx.array]:
    """The product for each number of rows of the matrix, or of x, from 1 up."""
    results = []
    for n in range(1, len(inputs[inputs["over"]]) + 1):
        part = dict(inputs)
        for name in ("x",) if inputs["over"] == "x" else ("words", "scales", "biases"):
            part[name] = inputs[name][:n]
        results.append(product(solution, part))
    return results


def check_sweep(inputs: dict, got: list[mx.array]) -> None:
    """All products of the sweep are parts of the one float64 product."""
    over_x = inputs["over"] == "x"
    for n, result in reversed(list(enumerate(got, 1))):  # the longest says best which parts are wrong
        rows = inputs if over_x else {**inputs, **{k: inputs[k][:n] for k in ("words", "scales", "biases")}}
        check_product(rows | {"x": inputs["x"][:n] if over_x else inputs["x"]}, result)


def spoilt(rng, kernel: str, tokens: int) -> dict:
    """Activations of which one token is NaN."""
    inputs = product_inputs(rng, (tokens,), 37, 96, kernel)
    bad = int(rng.integers(tokens))
    spoilt = mx.where((mx.arange(tokens) == bad)[:, None], float("nan"), inputs["x"])
    return inputs | {"clean": inputs["x"], "x": spoilt, "bad": bad}


def check_spoilt(inputs: dict, got: mx.array) -> None:
    """The NaN is in its own token's results and nowhere else."""
    nan = np.isnan(wide(got)).all(-1)
    if np.flatnonzero(nan).tolist() != [inputs["bad"]] or np.isnan(wide(got)).sum() != got.shape[-1]:
        raise AssertionError(
            f"token {inputs['bad']} of x is NaN, and so are results of tokens "
            f"{np.flatnonzero(np.isnan(wide(got)).any(-1)).tolist()}: each token must stay apart"
        )
    keep = [m for m in range(got.shape[0]) if m != inputs["bad"]]
    check_product(inputs | {"x": inputs["clean"][mx.array(keep)]}, got[mx.array(keep)])


RANGES = [(0, 1), (3, 4), (0, 40), (5, 12), (32, 40), (31, 33), (17, 17), (1, 39), (39, 40)]


def range_inputs(rng, kernel: str, tokens: int) -> dict:
    """A product of which only some rows are asked for at a time."""
    return product_inputs(rng, (tokens,), 40, 96, kernel) | {"ranges": [list(rows) for rows in RANGES]}


def ranges(solution, inputs: dict) -> list[np.ndarray]:
    """What the kernel writes for each range: (tokens + 2, rows + 3) numbers, NaN where it wrote nothing."""
    x, parts = inputs["x"], tuple(inputs[name] for name in ("words", "scales", "biases"))
    mx.eval(x, parts)
    written, group_size = library(solution).written_rows, inputs["group_size"]
    results = [written(x, parts, group_size, inputs["kernel"], *rows) for rows in inputs["ranges"]]
    return [np.array(y, dtype=np.float32).reshape(x.shape[0] + 2, -1) for y in results]


def check_ranges(inputs: dict, got: list[np.ndarray]) -> None:
    """The rows asked for are right, and nothing else was written."""
    tokens = inputs["x"].shape[0]
    for (begin, end), y in zip(inputs["ranges"], got, strict=True):
        part = {**inputs, **{name: inputs[name][begin:end] for name in ("words", "scales", "biases")}}
        what = f"rows {begin} .. {end - 1}" if end > begin else "no rows"
        outside = ~np.isnan(y)
        outside[:tokens, begin:end] = False
        if outside.any():
            m, r = np.argwhere(outside)[0]
            raise AssertionError(f"asked for {what} of {tokens} tokens, the kernel wrote row {r} of token {m}")
        if end > begin:
            close_product(mx.array(y[:tokens, begin:end]), inputs["x"], part, what=f"{inputs['kernel']} kernel, {what}")


def library(solution):
    """The functions of the C++ library itself."""
    return solution.module("kernels.cpu")._ext


# Task 1: a primitive of your own


@case(
    task=1,
    params=[
        {"x": (), "O": 1, "I": 32},
        {"x": (1,), "O": 5, "I": 64, "group_size": 64},
        {"x": (3,), "O": 9, "I": 128, "group_size": 128},
        {"x": (2, 3), "O": 7, "I": 96},
        {"x": (2, 1, 2), "O": 33, "I": 320, "group_size": 64},
        {"x": (1,), "O": 3, "I": 2048, "group_size": 128},
        {"x": (0,), "O": 4, "I": 32},
        *DTYPES,
    ],
)
class ScalarProductMatchesFloat64:
    """The scalar kernel gives x times the transposed matrix, for any leading axes, group size and dtype."""

    def inputs(rng, **sizes):
        return product_inputs(rng, kernel="scalar", **sizes)

    observe = product
    verify = check_product


@case(task=1, params=[{"tokens": 2}])
class ScalarKernelWritesItsRowsOnly:
    """Asked for some rows of the matrix, the kernel writes these and touches nothing else of y."""

    def inputs(rng, tokens):
        return range_inputs(rng, "scalar", tokens)

    observe = ranges
    verify = check_ranges


VIEWS = {
    "transposed": lambda x: x.T,
    "every second row": lambda x: x[1::2],
    "every third column": lambda x: x[:, ::3],
    "rows backwards": lambda x: x[::-1],
    "columns backwards": lambda x: x[:, ::-1],
    "a part": lambda x: x[3:7, 64:128],
    "one row for all": lambda x: mx.broadcast_to(x[2], (5, x.shape[1])),
    "heads last": lambda x: x.reshape(4, 24, 2, 96)[:, :, 1].swapaxes(0, 1),
}


@case(task=1, params=[{"view": view} for view in VIEWS])
class ProductTakesAnyViewOfX:
    """x may be any view of a larger array: transposed, with steps, backwards, repeated, with an offset."""

    def inputs(rng, view):
        base = normal(rng, (96, 192))
        columns = VIEWS[view](base).shape[-1]
        return packed_inputs(rng, (6, columns)) | {"base": base, "view": view, "kernel": "scalar"}

    def observe(solution, inputs):
        return product(solution, inputs | {"x": VIEWS[inputs["view"]](inputs["base"])})

    def verify(inputs, got):
        x = VIEWS[inputs["view"]](inputs["base"])
        flat = mx.as_strided(inputs["base"], x.shape, [x.shape[-1]] * (x.ndim - 1) + [1], 0) if x.ndim == 2 else x
        suspects = {"the strides of x were ignored": lambda: wide(flat) @ dense64(inputs).T}
        close_product(got, x, inputs, suspects=suspects, what=f"product with x {inputs['view']}")


@case(task=1, params=[{"part": "some rows"}, {"part": "every second row"}, {"part": "some columns"}])
class ProductTakesAnyViewOfTheMatrix:
    """Words, scales and biases may be parts of a larger matrix."""

    def inputs(rng, part):
        return product_inputs(rng, (2,), 12, 128, "scalar") | {"part": part}

    def observe(solution, inputs):
        return product(solution, part_of(inputs))

    def verify(inputs, got):
        close_product(got, part_of(inputs)["x"], part_of(inputs), what=f"product with {inputs['part']} of a matrix")


def part_of(inputs: dict) -> dict:
    """A part of the matrix, and the columns of x that go with it."""
    rows = {"some rows": slice(3, 10), "every second row": slice(1, None, 2), "some columns": slice(None)}
    rows = rows[inputs["part"]]
    groups = slice(1, 3) if inputs["part"] == "some columns" else slice(None)
    words, columns = (slice(4, 12), slice(32, 96)) if groups != slice(None) else (groups, groups)
    return inputs | {
        "words": inputs["words"][rows, words],
        "scales": inputs["scales"][rows, groups],
        "biases": inputs["biases"][rows, groups],
        "x": inputs["x"][:, columns],
    }


@case(task=1, params=[{"x": (3,), "O": 5, "I": 96}, {"x": (1,), "O": 8, "I": 64, "dtype": mx.bfloat16}])
class ProductReadsNothingElse:
    """What stands beside x, scales and biases in memory has no influence."""

    def inputs(rng, **sizes):
        return product_inputs(rng, kernel="scalar", **sizes)

    def observe(solution, inputs):
        return product(solution, surrounded(inputs))

    verify = check_surrounded


def late(x: mx.array) -> mx.array:
    """The numbers of `x`, and all of them late: an operation that takes its time has to end first."""
    busy = mx.sort(mx.broadcast_to(mx.arange(1 << 19) * 7919 % 524287, (1, 1 << 19)), axis=-1)
    zero = (busy[0, -1] - busy[0, -1]).astype(x.dtype)
    return x + zero


@case(task=1, params=[{"name": "x"}, {"name": "words"}, {"name": "scales"}, {"name": "biases"}])
class InputsMayStillBeOnTheirWay:
    """An input whose values are still being computed is waited for: it is read on the stream, not before."""

    def inputs(rng, name):
        return product_inputs(rng, (2,), 7, 64, "scalar") | {"name": name}

    def observe(solution, inputs):
        name = inputs["name"]
        result = product(solution, inputs | {name: late(inputs[name])})
        mx.eval(result)
        return {"late": result, "ready": product(solution, inputs)}

    def verify(inputs, got):
        check_product(inputs, got["ready"])
        try:
            check_product(inputs, got["late"])
        except AssertionError as error:
            raise AssertionError(
                f"right when all inputs are ready, wrong when {inputs['name']} is still being computed: read inputs "
                f"in the function that you dispatch, not in eval_cpu\n{error}"
            ) from None


@case(task=1, params=[{"where": "a stream of its own"}, {"where": "one stream after another"}])
class ProductRunsOnItsStream:
    """The product runs on the stream that was current at its call, in order with what comes before and after."""

    def inputs(rng, where):
        return product_inputs(rng, (2,), 7, 64, "scalar") | {"where": where}

    def observe(solution, inputs):
        first, second = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)
        if inputs["where"] == "a stream of its own":
            busy = late(mx.zeros((1,)))
            mx.async_eval(busy)  # on the default stream
            with mx.stream(first):
                results = [product(solution, inputs) * 1.0]
            mx.eval(*results)
            mx.eval(busy)
            return results
        with mx.stream(first):
            x = late(inputs["x"])
        with mx.stream(second):
            y = product(solution, inputs | {"x": x})
        with mx.stream(first):
            results = [y * 1.0]
        mx.eval(*results)
        return results

    def verify(inputs, got):
        try:
            check_product(inputs, got[0])
        except AssertionError as error:
            raise AssertionError(
                f"wrong on {inputs['where']}: dispatch to the encoder of the stream that the primitive was made for, "
                f"and name its inputs and outputs\n{error}"
            ) from None


@case(task=1)
class ProductIsLazy:
    """Calling the product needs no memory and no time: everything happens when its result is needed."""

    def inputs(rng):
        return product_inputs(rng, (512,), 256, 32, "scalar")

    def observe(solution, inputs):
        x, ready = inputs["x"], [inputs[name] for name in ("x", "words", "scales", "biases")]
        mx.eval(*ready)
        mx.synchronize()
        before = mx.get_active_memory()
        result = product(solution, inputs | {"x": x + 1.0})
        called = mx.get_active_memory() - before
        mx.eval(result)
        return {"called": called, "needed": mx.get_active_memory() - before, "result": result}

    def verify(inputs, got):
        size = 512 * 256 * 4
        if got["called"] > size // 8:
            raise AssertionError(f"the call alone took {got['called']:,} bytes: it must only add to the graph")
        if got["needed"] < size:
            raise AssertionError(f"the evaluated result takes {got['needed']:,} bytes, expected at least {size:,}")
        check_product(inputs | {"x": inputs["x"] + 1.0}, got["result"])


REFUSALS = {
    "an integer x": (lambda i: i | {"x": i["x"].astype(mx.int32)}, "int32"),
    "a float16 x": (lambda i: i | {"x": i["x"].astype(mx.float16)}, "float16"),
    "an x without axes": (lambda i: i | {"x": mx.array(1.0)}, "axes"),
    "an x with other columns": (lambda i: i | {"x": i["x"][:, :64]}, "64"),
    "an unknown kernel": (lambda i: i | {"kernel": "fastest"}, "fastest"),
    "8 bits": (lambda i: i | {"words": mx.concatenate([i["words"]] * 2, axis=-1), "bits": 8}, "8"),
}


@case(task=1, params=[{"kind": kind} for kind in REFUSALS])
class ProductRefusesWhatDoesNotFit:
    """Shapes, dtypes, bits and kernels that do not fit are ValueErrors, at the call, that name them."""

    def inputs(rng, kind):
        return product_inputs(rng, (2,), 5, 128, "scalar") | {"kind": kind}

    def observe(solution, inputs):
        right = product(solution, inputs)
        mx.eval(right)
        change, _ = REFUSALS[inputs["kind"]]
        return {"right": right, "error": error_of(lambda: product(solution, change(inputs)))}

    def verify(inputs, got):
        check_product(inputs, got["right"])
        refused(got["error"], inputs["kind"], REFUSALS[inputs["kind"]][1])


def prove_product(solution, inputs):
    """The product with its calls counted, and with a wrong number in what the kernel returns."""
    return proven_run(lambda: product(solution, inputs), PRODUCT)


def check_proof(inputs, values):
    judge_proof(values, PRODUCT)
    check_product(inputs, values["result"])


@case(task=1)
class ProductIsComputedByTheExtension:
    """The product is what the C++ function returns, not something computed beside it."""

    def inputs(rng):
        return product_inputs(rng, (2,), 5, 64, "scalar")

    observe = prove_product
    verify = check_proof


@case(task=1)
class LibraryCallsNoOperatorOfMlx:
    """The built library takes no product, softmax, norm or BLAS function from anywhere: it computes by itself."""

    def inputs(rng):
        return product_inputs(rng, (1,), 4, 32, "scalar")

    def observe(solution, inputs):
        result = product(solution, inputs)
        mx.eval(result)
        return {"result": result, "symbols": forbidden_symbols(solution.library, OPERATORS)}

    def verify(inputs, got):
        check_product(inputs, got["result"])
        if got["symbols"]:
            raise AssertionError(f"the library calls {got['symbols'][0]}: write the operation yourself")


# Task 2: a vectorised matrix-vector product


@case(
    task=2,
    params=[
        {"x": (1,), "O": 1, "I": 32},
        {"x": (1,), "O": 4, "I": 128, "group_size": 128},
        {"x": (1,), "O": 8, "I": 512},
        {"x": (2,), "O": 5, "I": 544},
        {"x": (1,), "O": 3, "I": 640, "group_size": 64},
        {"x": (3,), "O": 6, "I": 2176, "group_size": 128},
        {"x": (2, 2), "O": 23, "I": 1088, "group_size": 64},
        {"x": (5,), "O": 2, "I": 2048},
        {"x": (1,), "O": 40, "I": 1024, "group_size": 64, "scales": mx.bfloat16},
        {"x": (1,), "O": 9, "I": 1056, "dtype": mx.bfloat16, "scales": mx.bfloat16},
        {"x": (2,), "O": 17, "I": 2176, "group_size": 64, "dtype": mx.bfloat16, "scales": mx.float16},
        *DTYPES,
    ],
)
class VectorProductMatchesFloat64:
    """The vector kernel gives the product for any number of rows, groups and tokens, in both dtypes."""

    def inputs(rng, **sizes):
        return product_inputs(rng, kernel="vector", **sizes)

    observe = product
    verify = check_product


@case(task=2, params=[{"tokens": 1}, {"tokens": 3}])
class VectorKernelWritesItsRowsOnly:
    """Asked for some rows of the matrix, the kernel writes these and touches nothing else of y."""

    def inputs(rng, tokens):
        return range_inputs(rng, "vector", tokens)

    observe = ranges
    verify = check_ranges


@case(task=2, params=[{"I": 96}, {"I": 128, "group_size": 64, "dtype": mx.bfloat16}])
class VectorProductTakesAnyNumberOfRows:
    """From one row of the matrix to nineteen, every row is computed and no other number is written."""

    def inputs(rng, I, **dtypes):  # noqa: E741
        return product_inputs(rng, (2,), 19, I, "vector", **dtypes) | {"over": "words"}

    observe = sweep
    verify = check_sweep


@case(task=2, params=[{"I": 32}, {"I": 160}, {"I": 160, "dtype": mx.bfloat16}, {"I": 384, "group_size": 128}])
class VectorProductReadsNothingElse:
    """What stands beside x, scales and biases in memory has no influence, also where a vector sticks out of a row."""

    def inputs(rng, **sizes):
        return product_inputs(rng, (2,), 7, kernel="vector", **sizes)

    def observe(solution, inputs):
        return product(solution, surrounded(inputs))

    verify = check_surrounded


@case(task=2, params=[{"tokens": 2}, {"tokens": 3}])
class VectorProductKeepsTokensApart:
    """A NaN in one token spoils that token's results and no others."""

    def inputs(rng, tokens):
        return spoilt(rng, "vector", tokens)

    observe = product
    verify = check_spoilt


@case(task=2)
class VectorProductIsComputedByTheExtension:
    """The product is what the C++ function returns, not something computed beside it."""

    def inputs(rng):
        return product_inputs(rng, (1,), 5, 64, "vector")

    observe = prove_product
    verify = check_proof


# Task 3: a blocked matrix-matrix product


@case(
    task=3,
    params=[
        {"x": (1,), "O": 1, "I": 32},
        {"x": (6,), "O": 16, "I": 64, "group_size": 64},
        {"x": (12,), "O": 32, "I": 128, "group_size": 128},
        {"x": (7,), "O": 33, "I": 96},
        {"x": (13,), "O": 31, "I": 64},
        {"x": (25,), "O": 65, "I": 160},
        {"x": (3, 5), "O": 17, "I": 320, "group_size": 64},
        {"x": (2, 1, 20), "O": 50, "I": 384, "group_size": 128},
        {"x": (40,), "O": 20, "I": 1088, "group_size": 64, "scales": mx.bfloat16},
        {"x": (14,), "O": 40, "I": 544, "dtype": mx.bfloat16, "scales": mx.bfloat16},
        {"x": (5,), "O": 34, "I": 256, "dtype": mx.bfloat16, "scales": mx.float16, "group_size": 64},
        *DTYPES,
    ],
)
class BlockedProductMatchesFloat64:
    """The blocked kernel gives the product for any number of rows, groups and tokens, in both dtypes."""

    def inputs(rng, **sizes):
        return product_inputs(rng, kernel="blocked", **sizes)

    observe = product
    verify = check_product


@case(task=3, params=[{"tokens": 2}, {"tokens": 7}, {"tokens": 13}])
class BlockedKernelWritesItsRowsOnly:
    """Asked for some rows of the matrix, the kernel writes these and touches nothing else of y."""

    def inputs(rng, tokens):
        return range_inputs(rng, "blocked", tokens)

    observe = ranges
    verify = check_ranges


@case(task=3, params=[{"I": 32}, {"I": 64, "group_size": 64, "dtype": mx.bfloat16}])
class BlockedProductTakesAnyNumberOfTokens:
    """From one token to twenty-seven, every token is computed and no other number is written."""

    def inputs(rng, I, **dtypes):  # noqa: E741
        return product_inputs(rng, (27,), 19, I, "blocked", **dtypes) | {"over": "x"}

    observe = sweep
    verify = check_sweep


@case(task=3, params=[{"I": 32}, {"I": 64, "group_size": 64, "dtype": mx.bfloat16}])
class BlockedProductTakesAnyNumberOfRows:
    """From one row of the matrix to thirty-five, every row is computed and no other number is written."""

    def inputs(rng, I, **dtypes):  # noqa: E741
        return product_inputs(rng, (3,), 35, I, "blocked", **dtypes) | {"over": "words"}

    observe = sweep
    verify = check_sweep


@case(task=3, params=[{"I": 96}, {"I": 128, "group_size": 128, "dtype": mx.bfloat16}])
class BlockedProductReadsNothingElse:
    """What stands beside x, scales and biases in memory has no influence, also where a panel sticks out."""

    def inputs(rng, **sizes):
        return product_inputs(rng, (8,), 21, kernel="blocked", **sizes)

    def observe(solution, inputs):
        return product(solution, surrounded(inputs))

    verify = check_surrounded


@case(task=3, params=[{"tokens": 5}, {"tokens": 29}])
class BlockedProductKeepsTokensApart:
    """A NaN in one token spoils that token's results and no others."""

    def inputs(rng, tokens):
        return spoilt(rng, "blocked", tokens)

    observe = product
    verify = check_spoilt


@case(task=3)
class BlockedProductIsComputedByTheExtension:
    """The product is what the C++ function returns, not something computed beside it."""

    def inputs(rng):
        return product_inputs(rng, (8,), 33, 64, "blocked")

    observe = prove_product
    verify = check_proof


# Task 4: threads


def check_visits(visits: list[int], n: int, grain: int, depth: int) -> None:
    """Every index was visited once at each depth."""
    wrong = [i for i, count in enumerate(visits) if count != depth]
    if len(visits) != n or wrong:
        missed = sum(count < depth for count in visits)
        raise AssertionError(
            f"n {n}, grain {grain}, depth {depth}: {missed} indices were left out and {len(wrong) - missed} visited "
            f"too often; the first wrong one is {wrong[0]}, visited {visits[wrong[0]]} times instead of {depth}"
        )


SIZES = [0, 1, 2, 3, 7, 16, 100, 1000]


@case(task=4, params=[{"depth": 1}, {"depth": 2}, {"depth": 3}], timeout=10.0)
class EveryIndexIsVisitedOnce:
    """parallel_for covers 0 .. n - 1 exactly once with pieces no longer than the grain, also inside itself."""

    def inputs(rng, depth):
        grains = [1, 2, 3, int(rng.integers(4, 50)), 99, 100, 1001, 2**40]
        return {
            "depth": depth,
            "sizes": [[n, grain] for n in [*SIZES, int(rng.integers(100, 9999))] for grain in grains],
        }

    def observe(solution, inputs):
        visits = library(solution).parallel_visits
        return [error_of(lambda n=n, g=g: visits(n, g, inputs["depth"])) for n, g in inputs["sizes"]]

    def verify(inputs, got):
        for (n, grain), result in zip(inputs["sizes"], got, strict=True):
            if result["type"] is not None:
                raise AssertionError(f"n {n}, grain {grain}: {result['type']}: {result['message']}")
            check_visits(result["value"], n, grain, inputs["depth"])


@case(task=4, params=[{"n": 5}, {"n": 64}], timeout=10.0)
class CallsFollowEachOtherSafely:
    """A thousand short calls in a row all cover their indices: no call begins or ends too early."""

    def inputs(rng, n):
        return {"n": n, "grain": 1}

    def observe(solution, inputs):
        visits = library(solution).parallel_visits
        wrong = [counts for _ in range(1000) if set(counts := visits(inputs["n"], 1)) != {1}]
        return {"wrong": len(wrong), "first": wrong[0] if wrong else []}

    def verify(inputs, got):
        if got["wrong"]:
            raise AssertionError(
                f"{got['wrong']} of 1,000 calls with n {inputs['n']} and grain 1 did not visit each index once, the "
                f"first {got['first']}: return only when all pieces are done"
            )


@case(task=4, params=[{"pieces": 1}, {"pieces": 8}], timeout=15.0)
class PiecesRunAtTheSameTime:
    """All threads of the pool take part where there are pieces enough for them."""

    def inputs(rng, pieces):
        return {"pieces": pieces}

    def observe(solution, inputs):
        ext = library(solution)
        n = inputs["pieces"] * ext.threads()
        return {"threads": ext.threads(), "n": n, "met": ext.parallel_meeting(n, 4.0)}

    def verify(inputs, got):
        if got["met"] < got["threads"]:
            raise AssertionError(
                f"of {got['threads']} threads only {got['met']} took part in {got['n']} pieces, though each waited "
                "seconds for the others: let the pool run pieces at the same time"
            )


_ALONE = """
import importlib.util, json, sys
import mlx.core
spec = importlib.util.spec_from_file_location("_ext", sys.argv[1])
ext = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ext)
sizes = json.loads(sys.argv[2])
visits = [ext.parallel_visits(n, grain, depth) for n, grain, depth in sizes]
print(json.dumps({"threads": ext.threads(), "visits": visits, "met": ext.parallel_meeting(3 * ext.threads(), 5.0)}))
"""


@case(task=4, params=[{"threads": 1}, {"threads": 5}], timeout=30.0)
class AnyNumberOfThreadsWillDo:
    """With TINY_LLM_THREADS set to one thread, or to more than there are processors, nothing is lost."""

    def inputs(rng, threads):
        sizes = [[n, grain, depth] for n in (1, 4, 6, 1000) for grain in (1, 3, 200) for depth in (1, 2)]
        return {"threads": threads, "sizes": sizes}

    def observe(solution, inputs):
        command = [sys.executable, "-c", _ALONE, str(solution.library), json.dumps(inputs["sizes"])]
        environment = os.environ | {"TINY_LLM_THREADS": str(inputs["threads"])}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=28)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return json.loads(done.stdout)

    def verify(inputs, got):
        for (n, grain, depth), visits in zip(inputs["sizes"], got["visits"], strict=True):
            check_visits(visits, n, grain, depth)
        if got["met"] < inputs["threads"]:
            raise AssertionError(f"of {inputs['threads']} threads only {got['met']} took part in a call")


@case(task=4, params=[{"grain": 1}, {"grain": 7}, {"grain": 1000}], timeout=10.0)
class ExceptionsReachTheCaller:
    """What a piece throws, on any thread, is thrown again by parallel_for, and the pool goes on working."""

    def inputs(rng, grain):
        return {"n": 300, "grain": grain, "bad": sorted({0, 299, *rng.integers(1, 299, 40).tolist()})}

    def observe(solution, inputs):
        ext, n, grain = library(solution), inputs["n"], inputs["grain"]
        errors = [error_of(lambda bad=bad: ext.parallel_failure(n, grain, bad)) for bad in inputs["bad"]]
        return {
            "errors": errors,
            "none": error_of(lambda: ext.parallel_failure(n, grain, n)),
            "after": ext.parallel_visits(n, grain, 2),
        }

    def verify(inputs, got):
        for bad, error in zip(inputs["bad"], got["errors"], strict=True):
            if error["type"] != "RuntimeError" or error["message"] != f"index {bad}":
                raise AssertionError(
                    f"the body threw runtime_error 'index {bad}', the caller got "
                    f"{error['type'] or 'no exception'} {error.get('message', '')!r}: catch it in the piece, and "
                    "rethrow it in parallel_for"
                )
        if got["none"]["type"] is not None:
            raise AssertionError(f"no piece threw, the caller got {got['none']['type']}: {got['none']['message']}")
        check_visits(got["after"], inputs["n"], inputs["grain"], 2)


@case(task=4, timeout=15.0)
class ExceptionsCrossThreads:
    """What another thread of the pool throws reaches the caller of parallel_for, and does not end the process."""

    def inputs(rng):
        return {"seconds": 5.0}

    def observe(solution, inputs):
        ext = library(solution)
        return {"threads": ext.threads(), "error": error_of(lambda: ext.parallel_failure_elsewhere(inputs["seconds"]))}

    def verify(inputs, got):
        expected = "RuntimeError" if got["threads"] > 1 else None
        if got["error"]["type"] != expected:
            raise AssertionError(
                f"other threads threw runtime_error 'another thread', the caller got {got['error']['type']}: catch "
                "what body throws on each thread, and rethrow it in parallel_for"
            )


@case(
    task=4,
    params=[
        {"x": (1,), "O": 5000, "I": 64},
        {"x": (3,), "O": 2333, "I": 128, "group_size": 128},
        {"x": (2,), "O": 4099, "I": 64, "dtype": mx.bfloat16, "group_size": 64},
        {"x": (4,), "O": 33, "I": 2048},
        {"x": (5,), "O": 300, "I": 96},
        {"x": (2, 40), "O": 129, "I": 64, "dtype": mx.bfloat16},
    ],
)
class SharedProductMatchesFloat64:
    """Shared among threads, every row of the product is computed once, for few tokens and for many."""

    def inputs(rng, **sizes):
        return product_inputs(rng, kernel="auto", **sizes)

    def observe(solution, inputs):
        return [product(solution, inputs) for _ in range(4)]

    def verify(inputs, got):
        for result in got:
            check_product(inputs, result)


@case(task=4)
class StreamsShareThePool:
    """Products on three streams at once, which all want the threads, are all right."""

    def inputs(rng):
        return product_inputs(rng, (3, 2), 3001, 64)

    def observe(solution, inputs):
        streams = [mx.new_stream(mx.cpu) for _ in range(3)]
        rounds = []
        for _ in range(5):
            results = []
            for m, stream in enumerate(streams):
                with mx.stream(stream):
                    results.append(product(solution, inputs | {"x": inputs["x"][m]}))
            mx.eval(*results)
            rounds.append(mx.stack(results))
        return rounds

    def verify(inputs, got):
        for result in got:
            check_product(inputs, result)


# The model, with the C++ products (Task 4) and with fused steps (Task 5)

MODEL = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 32, "intermediate": 96, "vocab": 45}


def model_inputs(rng, sizes: dict, table: str, L: int) -> dict:
    """A random checkpoint, packed, and tokens."""
    shape = Shape(**{"rope_theta": 1e4, "max_positions": 64, **MODEL, **sizes})
    weights = packed({name: mx.array(w) for name, w in random_weights(rng, shape)}, 32, 4)
    tokens = mx.array(rng.integers(0, MODEL["vocab"], (2, L)))
    return {"sizes": asdict(shape), "weights": weights, "tokens": tokens, "table": table}


def logits(solution, inputs):
    """Of the solution's model, with the packed weights and the table."""
    layers = solution.module("kernels.packed")
    weights = dict(inputs["weights"])
    for name in [name for name in weights if name.endswith(".scales")]:
        stem = name.removesuffix("scales")
        matrix = {"words": weights[stem + "weight"], "scales": weights[name], "biases": weights[stem + "biases"]}
        layer = layers.QuantizedEmbedding if "embed" in name else layers.QuantizedLinear
        weights[stem + "weight"] = layer(packed_of(solution, matrix | {"group_size": 32, "bits": 4}))
    weights = {name: w for name, w in weights.items() if name.endswith("weight")}
    ops = getattr(solution.module("kernels.cpu"), inputs["table"])()
    return solution.module("model.qwen3").Qwen3(config_of(solution, inputs["sizes"]), weights, ops)(inputs["tokens"])


def check_logits(inputs, got):
    weights, tokens = unpacked(inputs["weights"], 4), np.array(inputs["tokens"])

    def scores(kind):
        return kind(Shape(**inputs["sizes"]), weights).logits(tokens)

    suspects = {text: lambda kind=kind: scores(kind) for text, kind in MODEL_MISTAKES.items()}
    what = f"logits of the model with {inputs['table']}"
    close(got, scores(Qwen3Float64), tol=3e-5, dtype=mx.float32, suspects=suspects, what=what)


@case(task=4, params=[{"L": 1, "sizes": {}}, {"L": 7, "sizes": {"tied": False}}])
class ModelWithCppProductsMatchesFloat64:
    """A model on CpuOps scores as the float64 model, and every product of it is the extension's."""

    def inputs(rng, sizes, L):
        return model_inputs(rng, sizes, "CpuOps", L)

    def observe(solution, inputs):
        return proven_run(lambda: logits(solution, inputs), PRODUCT)

    def verify(inputs, values):
        judge_proof(values, PRODUCT)
        check_logits(inputs, values["result"])
        expected = 7 * inputs["sizes"]["layers"] + 1
        if values["counts"]["quantized_matmul"] != expected:
            raise AssertionError(
                f"quantized_matmul was called {values['counts']['quantized_matmul']} times, not {expected}: "
                "seven times a block, and once for the head"
            )


# Task 5: one primitive for the whole MLP


def mlp_inputs(rng, x, E, I, group_size=32, dtype=mx.float32, scales=mx.float32, eps=1e-6, size=1.0):  # noqa: E741
    """A residual stream (*x, E), a norm, and gate, up and down."""

    def matrix(O, I):  # noqa: E741
        words, steps, biases = mx.quantize(normal(rng, (O, I), scales, I**-0.5), group_size=group_size, bits=4)
        return {"words": words, "scales": steps, "biases": biases, "group_size": group_size, "bits": 4}

    return {
        "x": normal(rng, (*x, E), dtype, size),
        "norm": mx.array(rng.uniform(0.5, 2.0, E) * rng.choice([-1, 1], E)).astype(dtype),
        "eps": eps,
        "gate": matrix(I, E),
        "up": matrix(I, E),
        "down": matrix(E, I),
    }


def fused_mlp(solution, inputs):
    norm = solution.module("model.norm").RMSNorm(inputs["norm"], inputs["eps"])
    matrices = (packed_of(solution, inputs[name]) for name in ("gate", "up", "down"))
    return solution.module("kernels.cpu").fused_mlp(inputs["x"], norm, *matrices)


class Mlp64:
    """The second half of a block in float64; a likely mistake is a subclass that takes one step wrongly."""

    def __init__(self, inputs: dict) -> None:
        self.x, self.weight, self.eps = wide(inputs["x"]), wide(inputs["norm"]), inputs["eps"]
        self.w_gate, self.w_up, self.w_down = (dense64(inputs[name]) for name in ("gate", "up", "down"))

    def result(self) -> np.ndarray:
        n = self.normed()
        return self.residual(n) + self.hidden(n @ self.w_gate.T, n @ self.w_up.T) @ self.w_down.T

    def normed(self) -> np.ndarray:
        return self.x / np.sqrt(self.mean() + self.eps) * self.weight

    def mean(self) -> np.ndarray:
        return (self.x**2).mean(-1, keepdims=True)

    def residual(self, normed: np.ndarray) -> np.ndarray:
        return self.x

    def hidden(self, gate: np.ndarray, up: np.ndarray) -> np.ndarray:
        return gate / (1 + np.exp(-gate)) * up


def wrong_mlp(**steps) -> type[Mlp64]:
    return type("WrongMlp", (Mlp64,), steps)


def _silu(x):
    return x / (1 + np.exp(-x))


MLP_MISTAKES = {
    "the residual stream was not added": wrong_mlp(residual=lambda self, n: 0.0),
    "the normalised x was added, not x itself": wrong_mlp(residual=lambda self, n: n),
    "x was added twice": wrong_mlp(residual=lambda self, n: 2 * self.x),
    "x was not normalised": wrong_mlp(normed=lambda self: self.x),
    "the weight of the norm was left out": wrong_mlp(normed=lambda self: self.x / np.sqrt(self.mean() + self.eps)),
    "eps was left out": wrong_mlp(normed=lambda self: self.x / np.sqrt(self.mean() + 1e-30) * self.weight),
    "the sum of squares was taken, not their mean": wrong_mlp(mean=lambda self: (self.x**2).sum(-1, keepdims=True)),
    "silu was applied to up, not to gate": wrong_mlp(hidden=lambda self, g, u: g * _silu(u)),
    "silu was left out": wrong_mlp(hidden=lambda self, g, u: g * u),
    "the sigmoid was applied to gate, not silu": wrong_mlp(hidden=lambda self, g, u: u / (1 + np.exp(-g))),
    "gate was multiplied with itself, not with up": wrong_mlp(hidden=lambda self, g, u: _silu(g) * g),
    "up was left out": wrong_mlp(hidden=lambda self, g, u: _silu(g)),
    "gate was left out": wrong_mlp(hidden=lambda self, g, u: u),
    "the sum of gate and up was taken": wrong_mlp(hidden=lambda self, g, u: _silu(g) + u),
    "every token got the hidden state of the first": wrong_mlp(
        hidden=lambda self, g, u: np.broadcast_to((_silu(g) * u)[:1, :1], g.shape)
    ),
}
MLP_TOLERANCE = {mx.float32: 1e-5, mx.bfloat16: 1.6e-2}


def check_mlp(inputs, got, tol=1.0):
    suspects = {text: lambda kind=kind: kind(inputs).result() for text, kind in MLP_MISTAKES.items()}
    dtype = inputs["x"].dtype
    want, x = Mlp64(inputs).result(), inputs["x"]
    tol *= MLP_TOLERANCE[dtype]
    try:
        close(got, want, tol=tol, dtype=dtype, suspects=suspects, what=f"fused_mlp of x {x.shape}")
    except AssertionError as error:
        lines = [str(error), places(got, want, tol * np.abs(want).max(initial=0.0))]
        raise AssertionError("\n".join(filter(None, lines))) from None


@case(
    task=5,
    params=[
        {"x": (1, 1), "E": 32, "I": 32},
        {"x": (1, 4), "E": 64, "I": 96},
        {"x": (2, 1), "E": 128, "I": 64, "group_size": 64},
        {"x": (1, 5), "E": 64, "I": 160},
        {"x": (3, 7), "E": 96, "I": 64},
        {"x": (1, 40), "E": 128, "I": 256, "group_size": 128},
        {"x": (2, 2), "E": 64, "I": 64, "scales": mx.bfloat16},
        {"x": (1, 3), "E": 64, "I": 128, "dtype": mx.bfloat16, "scales": mx.bfloat16},
        {"x": (2, 9), "E": 64, "I": 96, "dtype": mx.bfloat16, "scales": mx.float16},
        {"x": (1, 2), "E": 64, "I": 96, "eps": 0.5, "size": 0.7},
        {"x": (1, 2), "E": 64, "I": 96, "size": 30.0},
    ],
)
class FusedMlpMatchesFloat64:
    """Norm, gate and up, SwiGLU, down and residual sum, in one operation, for any number of tokens and both dtypes."""

    def inputs(rng, **sizes):
        return mlp_inputs(rng, **sizes)

    observe = fused_mlp
    verify = check_mlp


@case(task=5, params=[{"view": "transposed"}, {"view": "a part"}, {"view": "one token for all"}])
class FusedMlpTakesAnyView:
    """x may be a view, and is left as it is."""

    def inputs(rng, view):
        inputs = mlp_inputs(rng, (6, 8), 64, 96)
        x = {"transposed": inputs["x"].swapaxes(0, 1), "a part": inputs["x"][1:5, 2:5]}
        x["one token for all"] = mx.broadcast_to(inputs["x"][:, 3:4], (6, 5, 64))
        return inputs | {"base": inputs["x"], "x": x[view], "view": view}

    def observe(solution, inputs):
        base = inputs["base"]
        x = {"transposed": lambda: base.swapaxes(0, 1), "a part": lambda: base[1:5, 2:5]}
        x["one token for all"] = lambda: mx.broadcast_to(base[:, 3:4], (6, 5, 64))
        return {"result": fused_mlp(solution, inputs | {"x": x[inputs["view"]]()}), "base": base}

    def verify(inputs, got):
        check_mlp(inputs, got["result"])
        close(got["base"], inputs["base"], tol=0.0, what="x after the call")


@case(task=5, params=[{"tokens": 3}, {"tokens": 17}])
class FusedMlpKeepsTokensApart:
    """Each token's result is the one it gets alone, and a NaN in one token spoils no other."""

    def inputs(rng, tokens):
        return mlp_inputs(rng, (1, tokens), 64, 96) | {"bad": int(rng.integers(tokens))}

    def observe(solution, inputs):
        x, bad = inputs["x"], inputs["bad"]
        nan = mx.where((mx.arange(x.shape[1]) == bad)[:, None], float("nan"), x)
        return fused_mlp(solution, inputs | {"x": nan})

    def verify(inputs, got):
        wrong = np.flatnonzero(np.isnan(wide(got)).any(-1).reshape(-1)).tolist()
        if wrong != [inputs["bad"]]:
            raise AssertionError(f"token {inputs['bad']} of x is NaN, results of tokens {wrong} are: keep tokens apart")
        keep = mx.array([m for m in range(got.shape[1]) if m != inputs["bad"]])
        check_mlp(inputs | {"x": inputs["x"][:, keep]}, got[:, keep])


@case(task=5)
class FusedMlpInputsMayBeOnTheirWay:
    """Inputs whose values are still being computed are waited for, on the stream of the call."""

    def inputs(rng):
        return mlp_inputs(rng, (1, 2), 64, 96)

    def observe(solution, inputs):
        with mx.stream(mx.new_stream(mx.cpu)):
            x, norm = late(inputs["x"]), late(inputs["norm"])
            gate = inputs["gate"] | {"scales": late(inputs["gate"]["scales"])}
            result = fused_mlp(solution, inputs | {"x": x, "norm": norm, "gate": gate}) * 1.0
        mx.eval(result)
        return result

    def verify(inputs, got):
        try:
            check_mlp(inputs, got)
        except AssertionError as error:
            raise AssertionError(
                f"wrong when inputs are still being computed: read them in the function that you dispatch\n{error}"
            ) from None


MLP_REFUSALS = {
    "an x of two axes": (lambda i: i | {"x": i["x"][0]}, "(3, 64)"),
    "a norm of another length": (lambda i: i | {"norm": i["norm"][:32]}, "32"),
    "a down of another width": (lambda i: i | {"down": i["gate"]}, "down"),
    "an up with fewer rows": (lambda i: i | {"up": i["up"] | {k: i["up"][k][:7] for k in PARTS}}, "7"),
    "an integer x": (lambda i: i | {"x": i["x"].astype(mx.int32)}, "int32"),
}
PARTS = ("words", "scales", "biases")


@case(task=5, params=[{"kind": kind} for kind in MLP_REFUSALS])
class FusedMlpRefusesWhatDoesNotFit:
    """Shapes and dtypes that do not fit are ValueErrors, at the call, that name them."""

    def inputs(rng, kind):
        return mlp_inputs(rng, (1, 3), 64, 96) | {"kind": kind}

    def observe(solution, inputs):
        right = fused_mlp(solution, inputs)
        mx.eval(right)
        change, _ = MLP_REFUSALS[inputs["kind"]]
        return {"right": right, "error": error_of(lambda: fused_mlp(solution, change(inputs)))}

    def verify(inputs, got):
        check_mlp(inputs, got["right"])
        refused(got["error"], inputs["kind"], MLP_REFUSALS[inputs["kind"]][1])


@case(task=5)
class FusedMlpIsOneOperation:
    """The graph of the whole MLP is one operation: nothing between its steps is an MLX array."""

    def inputs(rng):
        return mlp_inputs(rng, (1, 256), 32, 512)

    def observe(solution, inputs):
        mx.eval(fused_mlp(solution, inputs))
        mx.synchronize()
        before = mx.get_active_memory()
        mx.reset_peak_memory()
        result = fused_mlp(solution, inputs)
        mx.eval(result)
        mx.synchronize()
        return {"peak": mx.get_peak_memory() - before, "result": result}

    def verify(inputs, got):
        check_mlp(inputs, got["result"])
        hidden = 256 * 512 * 4
        if got["peak"] > hidden:
            raise AssertionError(
                f"the operation took {got['peak']:,} bytes of MLX's memory at its peak, its result has "
                f"{got['result'].nbytes:,}: gate and up ({hidden:,} bytes each) were arrays of the graph"
            )


@case(task=5, params=[{"L": 1, "sizes": {"tied": False}}, {"L": 9, "sizes": {}}])
class FusedModelMatchesFloat64:
    """A model on FusedOps scores as the float64 model, and its steps are the extension's."""

    def inputs(rng, sizes, L):
        return model_inputs(rng, sizes, "FusedOps", L)

    def observe(solution, inputs):
        return proven_run(lambda: logits(solution, inputs), ["fused_output", "fused_mlp", "fused_head"])

    def verify(inputs, values):
        judge_proof(values, values["disturbed"])
        check_logits(inputs, values["result"])
        layers = inputs["sizes"]["layers"]
        expected = {"fused_qkv": layers, "fused_output": layers, "fused_mlp": layers, "fused_head": 1}
        if values["counts"] != expected:
            raise AssertionError(f"the model called {values['counts']}, expected {expected}")
