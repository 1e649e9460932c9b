"""Week 2 Day 6: Metal kernels that multiply with 4-bit weights, against float64, on the emulator's checked build."""

from dataclasses import asdict, replace

import mlx.core as mx
import numpy as np

from course.affine import levels_of
from course.case import case
from course.checkpoint_files import files_of, folder_of, packed, unpacked, wide
from course.checkpoints import Shape, hf_config, random_weights
from course.compare import close
from course.kernel_case import checked_run, judge_proof, judge_traffic, judge_with, proven_run
from course.kernels import metal_kernel
from course.packed_case import close_product, dense64, normal, packed_inputs, packed_of
from course.qwen3_float64 import Qwen3Float64

TILE = 32
"""Rows and columns of a tile of `quantized_matmul`."""
ROWS = 4
"""Rows of the matrix that a simdgroup of the matrix-vector kernels takes."""


def product_inputs(rng, shape, x, group=64, dtype=mx.float32, scales=mx.float32, **more):
    """x of shape (*x, K) and a packed matrix of `shape` (N, K)."""
    matrix = packed_inputs(rng, shape, group, 4, scales)
    return {"x": normal(rng, (*x, shape[1]), dtype), "matrix": matrix, **more}


def run(solution, name, inputs):
    """A checked run of the wrapper `name`; inputs other than "x" and "matrix" are its options."""
    options = {key: value for key, value in inputs.items() if key not in ("x", "matrix")}
    multiply = getattr(solution.module("kernels.metal_matmul"), name)
    return checked_run(lambda: multiply(inputs["x"], packed_of(solution, inputs["matrix"]), **options))


def judge_product(values, inputs, suspects):
    def compare(got, where):
        close_product(got, inputs["x"], inputs["matrix"], suspects=suspects, what="result" + where)

    judge_with(values, compare)


def only(x, matrix, columns):
    """The product of some columns: a mask (K)."""
    return lambda: x @ (dense64(matrix) * columns).T


# Task 1: a matrix-vector product


def matvec_suspects(inputs):
    """What mistakes of a kernel that walks along packed rows by simdgroups give."""
    x, matrix = wide(inputs["x"]), inputs["matrix"]
    group, scales, biases = matrix["group_size"], wide(matrix["scales"]), wide(matrix["biases"])
    dense, levels = dense64(matrix), levels_of(np.array(matrix["words"]), 4)
    rows, columns = dense.shape
    word = np.arange(columns) // 8
    scaled = x @ (levels * scales.repeat(group, axis=-1)).T
    per_word = word // group
    first_of_four = dense[np.arange(rows) // ROWS * ROWS]
    tokens = x.reshape(-1, columns) @ dense.T
    shape = (*x.shape[:-1], rows)
    return {
        "only lane 0's words were summed: simd_sum is missing": only(x, matrix, word % 32 == 0),
        "only the first 32 words of each row were read": only(x, matrix, word < 32),
        "the words after the last whole 32 are missing": only(x, matrix, word < columns // 256 * 32),
        "only the first number of each word was used": only(x, matrix, np.arange(columns) % 8 == 0),
        "every group of a row got its first scale and bias": lambda: x @ (levels * scales[:, :1] + biases[:, :1]).T,
        "the bias was added once per word: it belongs to the sum of x": scaled
        + biases.repeat(group // 8, axis=-1).sum(-1),
        "the bias was added once per group: it belongs to the sum of x": scaled + biases.sum(-1),
        "a group was taken to be so many words, not numbers": lambda: (
            x @ (levels * scales[:, per_word] + biases[:, per_word]).T
        ),
        "every row got the scales of the first row": lambda: (
            x @ (levels * scales[:1].repeat(group, axis=-1) + biases.repeat(group, axis=-1)).T
        ),
        "every row got the scales and biases of the first row": lambda: (
            x @ (levels * scales[:1].repeat(group, axis=-1) + biases[:1].repeat(group, axis=-1)).T
        ),
        "all four rows of a simdgroup are its first one": x @ first_of_four.T,
        "every token got the first token's result": lambda: np.broadcast_to(tokens[:1], tokens.shape).reshape(shape),
        "tokens and rows changed places in the output": lambda: tokens.T.reshape(shape),
        "only the first token was computed": lambda: (tokens * (np.arange(len(tokens)) == 0)[:, None]).reshape(shape),
    }


@case(
    task=1,
    params=[
        {"shape": (1, 32), "group": 32},
        {"shape": (4, 64)},
        {"shape": (5, 96), "group": 32, "threads": 32},
        {"shape": (7, 256)},
        {"shape": (9, 288), "group": 32, "threads": 256},
        {"shape": (37, 512), "threads": 96},
        {"shape": (3, 1152), "group": 128, "threads": 128},
        {"shape": (66, 320), "threads": 256},
        {"shape": (13, 1088), "threads": 32},
    ],
)
class MatvecMatchesFloat64:
    """One token times the matrix is right for any number of rows, length of a row, group size and threadgroup."""

    def inputs(rng, shape, group=64, threads=64):
        return product_inputs(rng, shape, (1,), group, threads=threads)

    def observe(solution, inputs):
        return run(solution, "quantized_matvec", inputs)

    def verify(inputs, values):
        judge_product(values, inputs, matvec_suspects(inputs))


@case(
    task=1,
    params=[
        {"x": ()},
        {"x": (2,), "dtype": mx.bfloat16, "scales": mx.bfloat16},
        {"x": (3, 1), "dtype": mx.float16, "scales": mx.float16, "shape": (10, 288), "group": 32, "threads": 32},
        {"x": (5,), "scales": mx.bfloat16, "shape": (7, 576)},
        {"x": (2, 2, 2), "dtype": mx.bfloat16, "shape": (11, 384), "group": 128, "threads": 128},
        {"x": (8,), "dtype": mx.float32, "shape": (3, 64), "threads": 256},
    ],
)
class MatvecTakesTokensAndTypes:
    """Up to eight tokens in any leading axes, and any float types; sums are float, and are rounded once."""

    def inputs(rng, x, shape=(6, 320), group=64, dtype=mx.float32, scales=mx.float32, threads=64):
        return product_inputs(rng, shape, x, group, dtype, scales, threads=threads)

    def observe(solution, inputs):
        return run(solution, "quantized_matvec", inputs)

    def verify(inputs, values):
        judge_product(values, inputs, matvec_suspects(inputs))


def matvec_traffic(inputs):
    """Bytes and lines that the contract allows, by counter."""
    x, matrix = inputs["x"], inputs["matrix"]
    rows, words = matrix["words"].shape
    simdgroups = -(-rows // ROWS)
    scale = matrix["scales"].dtype.size
    tokens, requests = x.size // x.shape[-1], -(-words // 32)
    return {
        "device_read_lines": rows * requests * (1 + 2) + simdgroups * x.nbytes / 128,
        "device_read_bytes": rows * words * (4 + 2 * scale) + simdgroups * x.nbytes,
        "device_write_bytes": tokens * rows * x.dtype.size,
    }


@case(task=1, params=[{"tokens": 1}, {"tokens": 4, "dtype": mx.bfloat16}])
class MatvecReadsNeighboursTogether:
    """The lanes of a simdgroup read neighbouring words, each weight is read once, and x once for four rows."""

    def inputs(rng, tokens, dtype=mx.float32):
        return product_inputs(rng, (32, 2048), (tokens,), dtype=dtype)

    def observe(solution, inputs):
        return run(solution, "quantized_matvec", inputs)

    def verify(inputs, values):
        judge_traffic(values, "quantized_matvec", matvec_traffic(inputs))


@case(task=1)
class MatvecIsComputedByTheKernel:
    """The product is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        return product_inputs(rng, (6, 64), (1,))

    def observe(solution, inputs):
        multiply = solution.module("kernels.metal_matmul").quantized_matvec
        return proven_run(lambda: multiply(inputs["x"], packed_of(solution, inputs["matrix"])), ["quantized_matvec"])

    def verify(inputs, values):
        judge_proof(values, ["quantized_matvec"])


# A whole model

MODEL = Shape(
    hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, intermediate=96, vocab=41, rope_theta=1e4, max_positions=64
)


def model_inputs(rng, tokens, tied):
    shape = replace(MODEL, tied=tied)
    dense = {name: mx.array(w) for name, w in random_weights(rng, shape)}
    small = packed(dense, 32, 4)
    return {
        "sizes": asdict(shape),
        "files": files_of(small),
        "weights": unpacked(small, 4),
        "tokens": mx.array(rng.integers(0, shape.vocab, tokens)),
    }


def model_run(solution, inputs, kernel):
    import json

    config = hf_config(Shape(**inputs["sizes"])) | {"quantization": {"group_size": 32, "bits": 4}}
    ops = solution.module("kernels.metal_ops").MetalOps()
    with folder_of(inputs["files"] | {"config.json": json.dumps(config).encode()}) as folder:
        model = solution.module("kernels.load").load_packed_model(folder, ops)
        return proven_run(lambda: model(inputs["tokens"]), [kernel])


def judge_model(inputs, values, kernel):
    want = Qwen3Float64(Shape(**inputs["sizes"]), inputs["weights"]).logits(np.array(inputs["tokens"]))
    close(values["result"], want, tol=3e-5, dtype=mx.float32, what="logits of a small model")
    judge_proof(values, [kernel])
    products = 7 * inputs["sizes"]["layers"] + 1
    if values["counts"][kernel] < products:
        raise AssertionError(
            f"{kernel} was called {values['counts'][kernel]} times: {products} products, seven a block and the head, "
            "have to go through it"
        )


@case(task=1, params=[{"tokens": (1, 1), "tied": True}, {"tokens": (2, 4), "tied": False}])
class MatvecRunsTheModel:
    """A small model whose products are this kernel scores few tokens as the float64 model of its unpacked weights."""

    def inputs(rng, tokens, tied):
        return model_inputs(rng, tokens, tied)

    def observe(solution, inputs):
        return model_run(solution, inputs, "quantized_matvec")

    def verify(inputs, values):
        judge_model(inputs, values, "quantized_matvec")


# Task 2: a matrix-matrix product in tiles


def by_tiles(a, change):
    """`change` applied to each tile of a matrix, whose edges are repeated for it."""
    rows, columns = a.shape
    a = np.pad(a, ((0, -rows % TILE), (0, -columns % TILE)), mode="edge")
    tiles = a.reshape(len(a) // TILE, TILE, -1, TILE).swapaxes(1, 2)
    return change(tiles).swapaxes(1, 2).reshape(a.shape)[:rows, :columns]


def transposed(tiles):
    return tiles.swapaxes(-1, -2)


def exchanged(tiles):
    """The quarters beside the diagonal change places."""
    half = TILE // 2
    return np.concatenate(
        [
            np.concatenate([tiles[..., :half, :half], tiles[..., half:, :half]], axis=-1),
            np.concatenate([tiles[..., :half, half:], tiles[..., half:, half:]], axis=-1),
        ],
        axis=-2,
    )


def matmul_suspects(inputs):
    """What mistakes of a kernel that multiplies by tiles give."""
    x, matrix = wide(inputs["x"]), inputs["matrix"]
    dense, levels = dense64(matrix), levels_of(np.array(matrix["words"]), 4)
    scales, biases = (wide(matrix[name]) for name in ("scales", "biases"))
    scale, bias = (part.repeat(matrix["group_size"], axis=-1) for part in (scales, biases))
    columns = np.arange(dense.shape[1])
    flat, shape = x.reshape(-1, dense.shape[1]), (*x.shape[:-1], len(dense))
    last = (len(columns) - 1) // TILE * TILE
    k = np.arange(TILE)
    return {
        "only the first tile of K was multiplied": only(x, matrix, columns < TILE),
        "only the last tile of K is in the result: the sums start again": only(x, matrix, columns >= last),
        "only the last 8 numbers of K are in the result: nothing is accumulated": only(
            x, matrix, columns >= len(columns) - 8
        ),
        "every tile of K took the words of the first": lambda: x @ (levels[:, columns % TILE] * scale + bias).T,
        "every group of a row got its first scale and bias": lambda: x @ (levels * scales[:, :1] + biases[:, :1]).T,
        "the last tile of K is missing": only(x, matrix, columns < last),
        "only the first 8 of each 32 numbers were multiplied": only(x, matrix, columns % TILE < 8),
        "the last 8 of each 32 numbers are missing": only(x, matrix, columns % TILE < TILE - 8),
        "each tile of x was transposed": lambda: (by_tiles(flat, transposed) @ dense.T).reshape(shape),
        "each tile of w was transposed": lambda: (flat @ by_tiles(dense, transposed).T).reshape(shape),
        "each 8 x 8 block of w was transposed": lambda: (flat @ by_blocks(dense).T).reshape(shape),
        "each tile of the result was transposed": lambda: by_tiles(flat @ dense.T, transposed).reshape(shape),
        "two quarters of each tile changed places": lambda: by_tiles(flat @ dense.T, exchanged).reshape(shape),
        "the second half of each tile's rows repeats the first": lambda: by_tiles(
            flat @ dense.T, lambda tiles: tiles[..., k % 16, :]
        ).reshape(shape),
    }


def by_blocks(w):
    """Each 8 x 8 block of a matrix transposed."""
    rows = len(w)
    w = np.pad(w, ((0, -rows % 8), (0, 0)), mode="edge")
    return transposed(w.reshape(len(w) // 8, 8, -1, 8).swapaxes(1, 2)).swapaxes(1, 2).reshape(w.shape)[:rows]


@case(
    task=2,
    params=[
        {"shape": (32, 32), "tokens": 32, "group": 32},
        {"shape": (1, 32), "tokens": 1, "group": 32},
        {"shape": (31, 64), "tokens": 33},
        {"shape": (70, 96), "tokens": 7, "group": 32},
        {"shape": (33, 192), "tokens": 40},
        {"shape": (64, 128), "tokens": 65},
        {"shape": (9, 256), "tokens": 13, "group": 128},
    ],
)
class MatmulMatchesFloat64:
    """Many tokens times the matrix is right for any number of tokens, rows and columns, and each group size."""

    def inputs(rng, shape, tokens, group=64):
        return product_inputs(rng, shape, (tokens,), group)

    def observe(solution, inputs):
        return run(solution, "quantized_matmul", inputs)

    def verify(inputs, values):
        judge_product(values, inputs, matmul_suspects(inputs))


@case(
    task=2,
    params=[
        {"x": (2, 3, 7), "dtype": mx.float16, "scales": mx.float16},
        {"x": (37,), "dtype": mx.bfloat16, "scales": mx.bfloat16},
        {"x": (1, 19), "scales": mx.bfloat16},
    ],
)
class MatmulTakesTypes:
    """Any leading axes and float types; tiles and sums are float, and the result is rounded once."""

    def inputs(rng, x, dtype=mx.float32, scales=mx.float32):
        return product_inputs(rng, (35, 320), x, 64, dtype, scales)

    def observe(solution, inputs):
        return run(solution, "quantized_matmul", inputs)

    def verify(inputs, values):
        judge_product(values, inputs, matmul_suspects(inputs))


@case(task=2, params=[{"tokens": 64, "rows": 64}, {"tokens": 96, "rows": 32}])
class MatmulReusesItsTiles:
    """A weight is read once per 32 tokens and a number of x once per 32 rows, not once per product."""

    def inputs(rng, tokens, rows):
        return product_inputs(rng, (rows, 128), (tokens,))

    def observe(solution, inputs):
        return run(solution, "quantized_matmul", inputs)

    def verify(inputs, values):
        x, matrix = inputs["x"], inputs["matrix"]
        rows, words = matrix["words"].shape
        across, down = -(-rows // TILE), -(-len(x) // TILE)
        most = {
            "device_read_bytes": across * x.nbytes + down * rows * words * (4 + 2 * 4),
            "device_write_bytes": len(x) * rows * 4,
        }
        judge_traffic(values, "quantized_matmul", most)


@case(task=2)
class MatmulIsComputedByTheKernel:
    """The product is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        return product_inputs(rng, (6, 64), (9,))

    def observe(solution, inputs):
        multiply = solution.module("kernels.metal_matmul").quantized_matmul
        return proven_run(lambda: multiply(inputs["x"], packed_of(solution, inputs["matrix"])), ["quantized_matmul"])

    def verify(inputs, values):
        judge_proof(values, ["quantized_matmul"])


@case(task=2, params=[{"tokens": (1, 37), "tied": False}, {"tokens": (3, 5), "tied": True}])
class MatmulRunsTheModel:
    """A small model whose products are this kernel scores a prompt as the float64 model of its unpacked weights."""

    def inputs(rng, tokens, tied):
        return model_inputs(rng, tokens, tied)

    def observe(solution, inputs):
        return model_run(solution, inputs, "quantized_matmul")

    def verify(inputs, values):
        judge_model(inputs, values, "quantized_matmul")


# Task 3: split-K


def parts_of(words, splits):
    """The part that each word of a row belongs to, if parts are runs of neighbours."""
    return np.arange(words) // -(-words // splits)


def split_suspects(inputs):
    """What mistakes in dividing the words and adding the parts give."""
    x, matrix, splits = wide(inputs["x"]), inputs["matrix"], inputs["splits"]
    words = matrix["words"].shape[1]
    part = parts_of(words, splits).repeat(8)
    return {
        "only the first part is in the result": only(x, matrix, part == 0),
        "the first part is missing": only(x, matrix, part > 0),
        "the last part is missing": only(x, matrix, part < splits - 1),
        "the words that are left when a row does not divide evenly are missing": only(
            x, matrix, np.arange(words).repeat(8) < words // splits * splits
        ),
        "the last word of each part is missing": only(
            x, matrix, (np.arange(words) % -(-words // splits) < -(-words // splits) - 1).repeat(8)
        ),
        "every part sums the whole row": lambda: splits * (x @ dense64(matrix).T),
        "the parts were averaged, not added": lambda: x @ dense64(matrix).T / splits,
    }


@case(
    task=3,
    params=[
        {"shape": (5, 256), "splits": 1},
        {"shape": (4, 64), "splits": 8},
        {"shape": (9, 320), "splits": 7, "threads": 32},
        {"shape": (3, 1088), "splits": 3, "threads": 96},
        {"shape": (1, 128), "splits": 12, "threads": 256},
        {"shape": (18, 1344), "splits": 5, "threads": 128},
    ],
)
class SplitKMatchesFloat64:
    """The parts of a row add up to its product, into however many parts it is cut, evenly or not."""

    def inputs(rng, shape, splits, threads=64):
        return product_inputs(rng, shape, (1,), splits=splits, threads=threads)

    def observe(solution, inputs):
        return run(solution, "split_k_matvec", inputs)

    def verify(inputs, values):
        judge_product(values, inputs, matvec_suspects(inputs) | split_suspects(inputs))


@case(
    task=3,
    params=[
        {"x": (3,), "splits": 5},
        {"x": (2, 4), "splits": 6, "dtype": mx.bfloat16, "scales": mx.bfloat16, "group": 32, "threads": 32},
        {"x": (), "splits": 9, "dtype": mx.float16, "group": 128},
    ],
)
class SplitKTakesTokensAndTypes:
    """Up to eight tokens and any float types: the parts stay float, and only their sum is rounded."""

    def inputs(rng, x, splits, group=64, dtype=mx.float32, scales=mx.float32, threads=64):
        return product_inputs(rng, (7, 384), x, group, dtype, scales, splits=splits, threads=threads)

    def observe(solution, inputs):
        return run(solution, "split_k_matvec", inputs)

    def verify(inputs, values):
        judge_product(values, inputs, matvec_suspects(inputs) | split_suspects(inputs))


def partial_sums(solution, inputs):
    """The first kernel alone: (SPLITS, TOKENS, N)."""
    x, matrix, splits = inputs["x"], packed_of(solution, inputs["matrix"]), inputs["splits"]
    names = ["x", "words", "scales", "biases", "rows", "columns"]
    kernel = metal_kernel(solution.package, "split_k_matvec", inputs=names, outputs=["out"])
    rows, columns = matrix.shape
    (partial,) = kernel(
        inputs=[x, matrix.words, matrix.scales, matrix.biases, rows, columns],
        template=[("T", x.dtype), ("TOKENS", len(x)), ("GROUP", matrix.group_size)],
        grid=(64 * -(-rows // 8), splits, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(splits, len(x), rows)],
        output_dtypes=[mx.float32],
    )
    return partial


@case(
    task=3,
    params=[{"columns": 1024, "splits": 4}, {"columns": 192, "splits": 24}, {"columns": 64, "splits": 11}],
)
class SplitKPartsShareTheWork:
    """The first kernel gives each part some of the words and no word to two; parts without words write zeros."""

    def inputs(rng, columns, splits):
        return product_inputs(rng, (9, columns), (1,), splits=splits)

    def observe(solution, inputs):
        return checked_run(lambda: partial_sums(solution, inputs))

    def verify(inputs, values):
        partial = wide(values["result"])

        def compare(got, where):
            total = mx.array(wide(got).sum(0).astype(np.float32))
            close_product(
                total, inputs["x"], inputs["matrix"], suspects=split_suspects(inputs), what="sum of the parts" + where
            )

        judge_with(values, compare)
        words = inputs["matrix"]["words"].shape[1]
        idle = [s for s in range(inputs["splits"]) if not partial[s].any()]
        if words % (32 * inputs["splits"]) == 0 and idle:
            raise AssertionError(
                f"part {idle[0]} of {inputs['splits']} is all zeros, though there are {words} words to share: "
                "another part does its work"
            )


@case(task=3, params=[{"splits": 2}, {"splits": 8}])
class SplitKReadsNeighboursTogether:
    """All parts together read what the matrix-vector product reads, in whole lines; the second kernel adds little."""

    def inputs(rng, splits):
        return product_inputs(rng, (16, 4096), (1,), splits=splits)

    def observe(solution, inputs):
        return run(solution, "split_k_matvec", inputs)

    def verify(inputs, values):
        rows, splits = inputs["matrix"]["words"].shape[0], inputs["splits"]
        partial = splits * rows * 4
        judge_traffic(values, "split_k_matvec", matvec_traffic(inputs) | {"device_write_bytes": partial})
        most = {"device_read_bytes": partial, "device_write_bytes": rows * 4, "device_read_lines": splits}
        judge_traffic(values, "split_k_reduce", most)


def in_order(partial):
    """The sum of the parts in float32, one after the other from 0."""
    total = np.zeros(partial.shape[1:], np.float32)
    for part in partial:
        total = total + part
    return total


@case(
    task=3,
    params=[
        {"splits": 1, "size": 8},
        {"splits": 8, "size": 1},
        {"splits": 16, "size": 300},
        {"splits": 9, "size": 513, "threads": 32},
        {"splits": 40, "size": 77, "dtype": mx.bfloat16, "threads": 7},
        {"splits": 5, "size": 100, "dtype": mx.float16},
    ],
)
class ReduceAddsInOrder:
    """The second kernel alone adds the parts from the first to the last in float: the same bits each time."""

    def inputs(rng, splits, size, dtype=mx.float32, threads=256):
        sizes = 10.0 ** rng.uniform(-2, 3, (splits, size))
        partial = mx.array((rng.choice([-1, 1], (splits, size)) * sizes).astype(np.float32))
        return {"partial": partial, "dtype": str(dtype).rpartition(".")[2], "threads": threads}

    def observe(solution, inputs):
        partial, dtype = inputs["partial"], getattr(mx, inputs["dtype"])
        splits, size = partial.shape
        names = ["partial", "splits", "size"]
        kernel = metal_kernel(solution.package, "split_k_reduce", inputs=names, outputs=["out"])

        def reduced():
            return kernel(
                inputs=[partial, splits, size],
                template=[("T", dtype)],
                grid=(size, 1, 1),
                threadgroup=(inputs["threads"], 1, 1),
                output_shapes=[(size,)],
                output_dtypes=[dtype],
            )[0]

        return checked_run(reduced)

    def verify(inputs, values):
        dtype = getattr(mx, inputs["dtype"])
        partial = np.array(inputs["partial"])
        splits, size = partial.shape

        def rounded(sums):
            return wide(mx.array(np.asarray(sums, np.float32)).astype(dtype))

        suspects = {
            "the parts were added from the last to the first": rounded(in_order(partial[::-1])),
            "the first part is missing": rounded(in_order(partial[1:])),
            "the last part is missing": rounded(in_order(partial[:-1])),
            "only the first part is in the result": rounded(partial[0]),
            "only the last part is in the result": rounded(partial[-1]),
            "parts and elements changed places": rounded(in_order(partial.reshape(size, splits).T)),
            "the parts were averaged, not added": rounded(in_order(partial) / splits),
        }

        def compare(got, where):
            close(got, rounded(in_order(partial)), tol=0.0, dtype=dtype, suspects=suspects, what="sum" + where)

        judge_with(values, compare)


@case(task=3)
class SplitKIsComputedByTheKernels:
    """The product is what the two Metal kernels return, not something computed beside them."""

    def inputs(rng):
        return product_inputs(rng, (6, 128), (1,), splits=2)

    def observe(solution, inputs):
        multiply, splits = solution.module("kernels.metal_matmul").split_k_matvec, inputs["splits"]
        kernels = ["split_k_matvec", "split_k_reduce"]
        return proven_run(lambda: multiply(inputs["x"], packed_of(solution, inputs["matrix"]), splits), kernels)

    def verify(inputs, values):
        judge_proof(values, ["split_k_matvec", "split_k_reduce"])
