"""Week 3 Day 4: paged attention in C++ and Metal, against NumPy in float64 and against limits of memory."""

import json
from dataclasses import asdict
from itertools import pairwise

import mlx.core as mx
import numpy as np

from course.attention_case import attention64
from course.case import case
from course.checkpoint_files import files_of, folder_of, packed, unpacked
from course.checkpoints import Shape, hf_config, random_weights
from course.compare import close
from course.kernel_case import checked_run, judge, judge_proof, judge_traffic, proven_run
from course.paged_case import paged64, paged_suspects, poisoned, random_batch
from course.peak import resident_growth
from course.qwen3_float64 import Qwen3Float64
from course.serving_case.overlap_case import Questions

TOLERANCE = {mx.float32: 1e-5, mx.float16: 1.5e-3, mx.bfloat16: 1e-2}
"""Round-off of float32 sums, and one rounding of the result, as a share of the largest value."""
PARTS = ("keys", "values", "table", "bounds", "lengths")


def judged(inputs, got, what="result", more=None):
    """`got`, an array or a checked run, equals the float64 attention of the batch."""
    compare = judge if isinstance(got, dict) else close
    dtype = inputs["q"].dtype
    why = paged_suspects(inputs) | (more or {})
    compare(got, paged64(inputs), tol=TOLERANCE[dtype], dtype=dtype, suspects=why, what=what)


def options(inputs):
    """The arguments of an implementation that stand in `inputs`."""
    return {name: x for name, x in inputs.items() if name in ("q", *PARTS, "scale", "threads")}


# Task 1: where a row lies


@case(
    task=1,
    params=[
        {"size": 16, "first": 0, "count": 40},
        {"size": 16, "first": 37, "count": 64},
        {"size": 1, "first": 0, "count": 9},
        {"size": 1, "first": 5, "count": 3},
        {"size": 64, "first": 64, "count": 64},
        {"size": 64, "first": 63, "count": 2},
        {"size": 5, "first": 9, "count": 23},
        {"size": 7, "first": 6, "count": 1},
        {"size": 3, "first": 4, "count": 0},
        {"size": 16, "first": 0, "count": 16, "heads": 400_000_000},  # beyond 32 bits
    ],
)
class RowsAreFoundThroughTheTable:
    """A position's row lies in the page that its entry of the table names, at its place in that page."""

    def inputs(rng, size, first, count, heads=3):
        pages = -(-(first + count) // size) if count else first // size + 1
        table = (1 + rng.permutation(3 * pages + 5)[: pages + 2]).tolist()  # two entries behind those in use
        row_stride = int(rng.integers(8, 90))
        strides = {"page_stride": size * heads * row_stride, "row_stride": row_stride}
        return {"table": table, "page_size": size, "first": first, "count": count} | strides

    def observe(solution, inputs):
        offsets = solution.module("kernels.paged").page_offsets
        return np.array(offsets(**inputs), np.int64)

    def verify(inputs, got):
        size, page, row = inputs["page_size"], inputs["page_stride"], inputs["row_stride"]
        s = inputs["first"] + np.arange(inputs["count"])
        padded = np.pad(np.array(inputs["table"]), (1, 0), mode="wrap")
        entry = padded[1 + s // size]
        want = entry * page + s % size * row
        wrong = {
            "the first position was ignored: the walk began at position 0": padded[1 + (s - inputs["first"]) // size]
            * page
            + (s - inputs["first"]) % size * row,
            "a position was looked up in the next entry of the table": padded[2 + s // size] * page + s % size * row,
            "a position was looked up in the entry before its own": padded[s // size] * page + s % size * row,
            "the page numbers were not looked up: entry e is page e": s // size * page + s % size * row,
            "the row within the page was forgotten": entry * page,
            "rows go on from page to page: a row is s % page_size of its page": entry * page + s * row,
            "the walk always begins in row 0 of a page": padded[1 + inputs["first"] // size + np.arange(len(s)) // size]
            * page
            + np.arange(len(s)) % size * row,
            "an offset needs 64 bits": want.astype(np.int32).astype(np.int64),
            "a page is as long as its rows of one head: use page_stride": entry * size * row + s % size * row,
            "the rows of a page are row_stride apart": entry * page + s % size,
        }
        for text, offsets in wrong.items():
            if not np.array_equal(got, want) and np.array_equal(got, offsets):
                raise AssertionError(f"offsets of positions {s[0]} ..: likely mistake: {text}")
        if not np.array_equal(got, want):
            i = int(np.argmax(got != want))
            raise AssertionError(f"position {s[i]} in pages of {size}: expected offset {want[i]}, got {got[i]}")


@case(
    task=1,
    params=[
        {"rows": [1, 1], "lengths": [4, 17], "page_size": 16},
        {"rows": [5, 1, 9], "lengths": [12, 33, 9], "page_size": 5, "H_kv": 2},
        {"rows": [3, 0, 2], "lengths": [3, 4, 40], "page_size": 1, "H_kv": 3},
        {"rows": [70], "lengths": [130], "page_size": 64, "dtype": mx.bfloat16},
    ],
)
class RowsAreWrittenToTheirPages:
    """The new rows of a batch are written where the table says, in place, and no other number of the pool changes."""

    def inputs(rng, **sizes):
        inputs = random_batch(rng, **sizes)
        shape = (inputs["q"].shape[0], inputs["keys"].shape[1], 1, 8)
        new = {name: mx.array(rng.standard_normal(shape).astype(np.float32)) for name in "kv"}
        return inputs | {name: x.astype(inputs["q"].dtype) for name, x in new.items()}

    def observe(solution, inputs):
        write = solution.module("kernels.paged").paged_write
        pool = inputs["keys"], inputs["values"]
        mx.eval(pool)
        written = write(*(inputs[name] for name in ("k", "v", *PARTS)))
        mx.eval(written)
        return {"keys": written[0], "values": written[1], "old": list(pool)}

    def verify(inputs, got):
        table, bounds, lengths = (np.array(inputs[name]) for name in PARTS[2:])
        size = inputs["keys"].shape[2]
        for new, name in (("k", "keys"), ("v", "values")):
            want = np.array(inputs[name].astype(mx.float32))
            for i, length in enumerate(lengths):
                for t in range(bounds[i], bounds[i + 1]):
                    s = length - bounds[i + 1] + t
                    want[table[i, s // size], :, s % size] = np.array(inputs[new][t, :, 0].astype(mx.float32))
            close(got[name], want, tol=0, dtype=inputs["q"].dtype, what=f"{name} of the pool after the write")
            old = got["old"]["kv".index(new)]
            close(old, want, tol=0, what=f"{name} as somebody else sees them, who holds the same memory")


# Task 2: pieces of a batch, and attention over it in C++


def pieces_of(solution, inputs):
    numbers = solution.module("kernels.paged").batch_pieces(**inputs)
    return np.array(numbers, np.int64).reshape(-1, 6)


def told(piece):
    names = ("request", "query", "queries", "visible", "first_key", "last_key")
    return ", ".join(f"{name} {x}" for name, x in zip(names, piece.tolist(), strict=True))


def judge_piece(piece, bounds, lengths):
    """What one piece says is true of its request."""
    i, query, queries, visible, first, last = piece.tolist()
    if not 0 <= i < len(lengths) or not bounds[i] <= query < query + queries <= bounds[i + 1]:
        raise AssertionError(f"piece ({told(piece)}): its queries are not all of one request, bounds {bounds.tolist()}")
    if queries > 64:
        raise AssertionError(f"piece ({told(piece)}): more than 64 queries")
    want = lengths[i] - bounds[i + 1] + query + 1
    if visible != want:
        why = {
            query - bounds[i] + 1: "the cached prefix was forgotten: the request's rows are its last positions",
            want - 1: "a query sees its own position too",
            want + 1: "a query sees no position behind its own",
            lengths[i]: "only the last query of a request sees all its keys",
        }.get(visible, "the rows of a request are the last of its positions")
        raise AssertionError(
            f"piece ({told(piece)}): its first query sees {want} of {lengths[i]} keys, got {visible}: {why}"
        )
    if not 0 <= first < last:
        raise AssertionError(f"piece ({told(piece)}): it has no keys")
    if last > want + queries - 1:
        raise AssertionError(
            f"piece ({told(piece)}): keys from {want + queries - 1} on are seen by none of its queries"
        )


@case(
    task=2,
    params=[
        {"rows": [1], "lengths": [1]},
        {"rows": [1, 1, 1], "lengths": [5, 400, 1]},
        {"rows": [64, 65, 1], "lengths": [64, 200, 9]},
        {"rows": [3, 0, 130, 0], "lengths": [300, 4, 130, 7], "kv_heads": 2},
        {"rows": [1], "lengths": [5000], "threads": 8},
        {"rows": [1, 1], "lengths": [5000, 130], "threads": 16, "kv_heads": 2},
        {"rows": [100], "lengths": [3000], "threads": 32},
        {"rows": [0], "lengths": [8]},
    ],
)
class PiecesCoverTheBatch:
    """Each query meets each key that it sees in one piece; pieces of the same queries follow each other."""

    def inputs(rng, rows, lengths, kv_heads=1, threads=2):
        bounds = np.cumsum([0, *rows]).tolist()
        return {"bounds": bounds, "lengths": lengths, "kv_heads": kv_heads, "threads": threads}

    def observe(solution, inputs):
        return pieces_of(solution, inputs)

    def verify(inputs, pieces):
        bounds, lengths = np.array(inputs["bounds"]), np.array(inputs["lengths"])
        for piece in pieces:
            judge_piece(piece, bounds, lengths)
        tiles = {}
        for place, piece in enumerate(pieces):
            tiles.setdefault((int(piece[1]), int(piece[2])), []).append((place, piece))
        covered = sorted(tiles)
        ends = [0, *(query + queries for query, queries in covered)]
        if [query for query, _ in covered] != ends[:-1] or ends[-1] != bounds[-1]:
            raise AssertionError(
                f"queries 0 .. {bounds[-1] - 1} must be in one piece each, got (first, count): {covered}"
            )
        for parts in tiles.values():
            places, own = zip(*parts, strict=True)
            if places != tuple(range(places[0], places[0] + len(own))):
                raise AssertionError(f"piece ({told(own[0])}): the pieces of the same queries do not follow each other")
            cuts = [0, *(int(piece[5]) for piece in own)]
            seen = int(own[0][3] + own[0][2] - 1)
            if [int(piece[4]) for piece in own] != cuts[:-1] or cuts[-1] != seen:
                raise AssertionError(
                    f"queries from row {own[0][1]} on see keys 0 .. {seen - 1}, each in one piece; got "
                    f"{[(int(piece[4]), int(piece[5])) for piece in own]}"
                )


@case(
    task=2,
    params=[
        {"rows": [1], "lengths": [5000], "threads": 8, "cut": True},
        {"rows": [1, 1], "lengths": [9000, 20], "threads": 4, "cut": True},
        {"rows": [1], "lengths": [64_000], "threads": 64, "cut": True},
        {"rows": [1], "lengths": [40_000], "threads": 32, "kv_heads": 8, "cut": True},
        {"rows": [1] * 64, "lengths": [2000] * 64, "threads": 2, "cut": False},
        {"rows": [1], "lengths": [120], "threads": 64, "cut": False},
        {"rows": [1], "lengths": [5000], "threads": 2, "kv_heads": 64, "cut": False},
    ],
)
class KeysAreSharedWhereThreadsWouldWait:
    """A long context with few queries is cut into pieces for all threads; many requests, or few keys, are not."""

    def inputs(rng, rows, lengths, threads, cut, kv_heads=1):
        bounds = np.cumsum([0, *rows]).tolist()
        return {"bounds": bounds, "lengths": lengths, "kv_heads": kv_heads, "threads": threads, "cut": cut}

    def observe(solution, inputs):
        return pieces_of(solution, {name: x for name, x in inputs.items() if name != "cut"})

    def verify(inputs, pieces):
        requests, work = len(inputs["lengths"]), len(pieces) * inputs["kv_heads"]
        if inputs["cut"] and work < inputs["threads"]:
            raise AssertionError(
                f"contexts of {inputs['lengths']} gave {len(pieces)} pieces, each worked on for {inputs['kv_heads']} "
                f"key/value heads: {inputs['threads'] - work} of {inputs['threads']} threads have nothing to do. "
                "Cut the keys of the longest into more pieces"
            )
        if inputs["cut"]:
            short = [p for p, after in pairwise(pieces) if p[1] == after[1] and p[5] - p[4] < 128]
            if short:
                raise AssertionError(f"piece ({told(short[0])}): fewer than 128 keys are not worth a piece")
        elif len(pieces) > requests:
            raise AssertionError(
                f"{len(pieces)} pieces for {requests} requests, {inputs['kv_heads']} heads and {inputs['threads']} "
                "threads: keys were shared where it only costs time"
            )


def cpp(solution):
    return solution.module("kernels.paged").paged_attention


BATCHES = [
    {"rows": [1], "lengths": [1]},
    {"rows": [1, 1, 1], "lengths": [7, 40, 16], "H": 4, "H_kv": 2, "D": 64},
    {"rows": [1, 1], "lengths": [100, 33], "H": 6, "H_kv": 3, "D": 24, "page_size": 1},
    {"rows": [1, 5, 1], "lengths": [70, 9, 64], "H": 4, "H_kv": 2, "D": 16, "page_size": 64},
    {"rows": [9, 1, 3], "lengths": [9, 31, 20], "H": 8, "H_kv": 2, "D": 16, "page_size": 5},
    {"rows": [66, 1, 2], "lengths": [130, 3, 50], "H": 4, "H_kv": 2, "D": 8},
    {"rows": [2, 0, 1], "lengths": [21, 5, 40], "H": 2, "D": 5, "page_size": 7},
    {"rows": [1, 1], "lengths": [1500, 30], "H": 2, "D": 8},  # keys in several pieces
    {"rows": [1, 20], "lengths": [200, 75], "H": 4, "H_kv": 2, "D": 80, "dtype": mx.bfloat16},
    {"rows": [3, 1], "lengths": [30, 20], "H": 4, "H_kv": 2, "scale": 0.8},
]


@case(task=2, params=BATCHES)
class PagedMatchesFloat64:
    """Each request attends to its own pages as in float64: any rows, lengths, page size, heads and dtype."""

    def inputs(rng, scale=None, **sizes):
        return random_batch(rng, **sizes) | ({} if scale is None else {"scale": scale})

    def observe(solution, inputs):
        return cpp(solution)(**options(inputs))

    def verify(inputs, got):
        judged(inputs, got)


@case(task=2, params=[{"workload": i} for i in range(6)])
class PagedMatchesFloat64OnRandomBatches:
    """Whatever the batch, in the worst of pools: pages in any order, one chunk beside many single tokens."""

    def inputs(rng, workload):
        n = int(rng.integers(1, 9))
        lengths = rng.integers(1, 90, n)
        rows = [int(rng.integers(1, length + 1)) if rng.random() < 0.3 else 1 for length in lengths]
        H_kv = int(rng.integers(1, 4))
        size = int(rng.choice([1, 2, 3, 8, 16, 31, 64]))
        return random_batch(rng, rows=rows, lengths=lengths.tolist(), H=2 * H_kv, H_kv=H_kv, page_size=size)

    def observe(solution, inputs):
        return cpp(solution)(**options(inputs))

    def verify(inputs, got):
        judged(inputs, got)


UNUSED = [
    {"rows": [1, 1, 1], "lengths": [7, 40, 17], "H": 4, "H_kv": 2, "D": 16},
    {"rows": [12, 1, 40], "lengths": [50, 3, 40], "H": 4, "H_kv": 2, "D": 16},
    {"rows": [9, 4], "lengths": [65, 4], "H": 2, "D": 16, "page_size": 64},
]


@case(task=2, params=[*UNUSED, {"rows": [1], "lengths": [1400], "H": 2, "D": 16, "page_size": 64}])
class UnusedSlotsAreNeverRead:
    """NaNs behind the last position, in free pages and in the dummy page change nothing."""

    def inputs(rng, **sizes):
        return random_batch(rng, unused="nan", **sizes)

    def observe(solution, inputs):
        return cpp(solution)(**options(inputs))

    def verify(inputs, got):
        poisoned(got, inputs)
        judged(inputs, got)


@case(task=2, params=[{"rows": 1, "S": 2**21}, {"rows": 8, "S": 2**18}], timeout=20.0)
class NothingGrowsWithTheContext:
    """The process needs no memory that grows with the number of keys: no dense copy, no row of all scores."""

    def inputs(rng, **sizes):
        q = rng.standard_normal((sizes["rows"], 4, 1, 16)).astype(np.float32)
        page = rng.standard_normal((2, 1, 64, 16)).astype(np.float32)
        return {"q": mx.array(q), "page": mx.array(page), **sizes}

    def observe(solution, inputs):
        paged, S, rows = cpp(solution), inputs["S"], inputs["rows"]
        places = [mx.zeros((1, S // 64), mx.int32), mx.array([0, rows]), mx.array([S])]  # all entries are one page
        short = [mx.zeros((1, 32), mx.int32), mx.array([0, rows]), mx.array([2048])]
        q, page = inputs["q"], inputs["page"]
        mx.eval(q, page, places, paged(q, page, page, *short))  # whatever is made once is made now
        results = []
        taken = resident_growth(lambda: (results.append(paged(q, page, page, *places)), mx.eval(results)))
        return {"taken": taken, "result": results[0], "want": paged(q, page, page, *short)}

    def verify(inputs, got):
        dense = 2 * 4 * 16 * inputs["S"]
        if got["taken"] > dense / 8:
            raise AssertionError(
                f"the process grew by {got['taken']:,} bytes; a dense copy of keys and values takes {dense:,}, a block "
                "of keys a few thousand. Read the rows where they lie"
            )
        page = np.array(inputs["page"])[0, 0].astype(np.float64)
        scores = np.array(inputs["q"]).astype(np.float64) @ page.T / 4
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        want = weights @ page / weights.sum(-1, keepdims=True)
        close(got["result"], want, tol=2e-3, dtype=mx.float32, what="attention over one page again and again")


@case(task=2, params=[{"rows": [1, 1]}, {"rows": [5, 1]}])
class PagedIsComputedByTheKernel:
    """The result is what the C++ kernel returns, not something computed beside it."""

    def inputs(rng, rows):
        return random_batch(rng, rows=rows, lengths=[9, 20], H=4, H_kv=2, D=16)

    def observe(solution, inputs):
        return proven_run(lambda: cpp(solution)(**options(inputs)), ["paged_attention"])

    def verify(inputs, values):
        judge_proof(values, ["paged_attention"])
        judged(inputs, values["result"])


SIZES = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 32, "intermediate": 64, "vocab": 37, "layers": 2}
PROMPTS = (11, 7, 9)
STEPS = (((0, 0, 4), (1, 0, 5)), ((0, 4, 9), (2, 0, 8), (1, 5, 6)), ((0, 9, 10), (1, 6, 7), (2, 8, 9)), ((0, 10, 11),))
"""Batches: whole prompts, a chunk beside a decode, decodes; of (request, start, end)."""
PAGE_SIZE, PAGES = 3, 12


def model_inputs(rng):
    """A packed checkpoint, the weights it stands for, tokens, and the pages of each request."""
    shape = Shape(**{"rope_theta": 1e4, "max_positions": 64, **SIZES})
    dense = {name: mx.array(w) for name, w in random_weights(rng, shape)}
    small = packed(dense, 64, 4)
    config = hf_config(shape) | {"quantization": {"group_size": 64, "bits": 4}}
    files = files_of(small) | {"config.json": json.dumps(config).encode()}
    return {
        "sizes": asdict(shape),
        "files": files,
        "weights": unpacked(small, 4),
        "tokens": [rng.integers(0, SIZES["vocab"], length).tolist() for length in PROMPTS],
        "order": [*(1 + rng.permutation(PAGES - 1)).tolist(), 0],  # the first request begins in page 0
    }


class NoGather:
    """Mixed into a page pool: a dense copy is refused."""

    def gather(self, *args):
        raise AssertionError("pool.gather was called: it makes a dense copy of keys and values")


def serving(solution, inputs, folder, table_name):
    """A model, its pool, and a function from the parts of a batch to its layer caches and tokens."""
    module = solution.module
    request, ragged = module("serving.request"), module("serving.ragged")
    ops = ragged.batched(module("kernels.tables").make_ops(table_name))
    model = module("kernels.load").load_packed_model(folder, ops, mx.float32)
    pool_class = module("cache.pool").PagePool
    pool = type("Pool", (NoGather, pool_class), {})(model.config, PAGES, PAGE_SIZE, mx.float32)
    pool.keys, pool.values = ([mx.full(x.shape, mx.nan) for x in side] for side in (pool.keys, pool.values))
    table = module("cache.paged").PageTable(len(PROMPTS), 24, PAGE_SIZE, PAGES)
    requests = [request.Request(i, ids, 8) for i, ids in enumerate(inputs["tokens"])]
    order = list(inputs["order"])
    for r in requests:
        r.row = len(requests) - 1 - r.uid  # rows are not in the order of requests
        table.append(r.row, [order.pop() for _ in range(-(-len(r.ids) // PAGE_SIZE))])
    rows = module("serving.paged_layer").KernelRows(pool, table, ops)

    def layers(parts):
        batch = request.Batch(tuple(request.Step(requests[i], start, end, False) for i, start, end in parts))
        laid_out = ragged.ragged(batch)
        return rows.layers(batch, laid_out), mx.array(laid_out.tokens)[:, None]

    return model, pool, layers


def served(solution, inputs, table_name):
    """Logits (rows of all batches, V)."""
    mx.set_default_device(mx.cpu)
    with folder_of(inputs["files"]) as folder:
        model, _, layers = serving(solution, inputs, folder, table_name)
        found = []
        for parts in STEPS:
            caches, tokens = layers(parts)
            found.append(model(tokens, caches)[:, 0])
        return mx.concatenate(found)


def judge_calls(values, kernels):
    """As `judge_proof`; where the result is not finite, only that all kernels were called."""
    missing = [kernel for kernel in kernels if not values["counts"].get(kernel)]
    if missing or np.isfinite(np.array(values["result"])).all():
        judge_proof(values, missing or kernels)


def judge_served(inputs, values):
    model = Qwen3Float64(Shape(**inputs["sizes"]), inputs["weights"])
    logits = [np.array(model.logits(np.array([ids])))[0] for ids in inputs["tokens"]]
    want = np.concatenate([logits[i][start:end] for parts in STEPS for i, start, end in parts])
    what = "logits of three requests in batches of chunks and single tokens"
    close(values["result"], want, tol=5e-5, dtype=mx.float32, what=what)


CPP_KERNELS = ["paged_write", "paged_attention"]


@case(task=2, params=[{"table": "flash"}, {"table": "packed"}])
class ServedModelMatchesFloat64:
    """A model whose batches write to pages and attend through the table scores as the float64 model of each request."""

    def inputs(rng, table):
        return model_inputs(rng) | {"table": table}

    def observe(solution, inputs):
        return proven_run(lambda: served(solution, inputs, inputs["table"]), CPP_KERNELS)

    def verify(inputs, values):
        judge_calls(values, CPP_KERNELS)
        judge_served(inputs, values)


@case(task=2)
class PoolIsNeverCopied:
    """Three steps in one graph, each while the one before still reads, write into the same memory of the pool."""

    def inputs(rng):
        return model_inputs(rng)

    def observe(solution, inputs):
        mx.set_default_device(mx.cpu)
        with folder_of(inputs["files"]) as folder:
            model, pool, layers = serving(solution, inputs, folder, "flash")
        pool.keys[0], pool.values[0] = (mx.zeros((4001, 2, PAGE_SIZE, 32)) for _ in "kv")
        q, k = mx.ones((16, 4, 1, 32)), mx.ones((16, 2, 1, 32))
        x = mx.ones((256, 40000))
        mx.eval(model.embedding(mx.array([0])), pool.keys, pool.values, q, k, x)
        before = mx.get_active_memory()
        mx.reset_peak_memory()
        results, questions = [], Questions()
        q = q + 0 * (x @ x.T)[0, 0]  # a product takes so long that all three are launched before the first one runs
        for parts in STEPS[:3]:
            caches, tokens = layers(parts)
            with questions:
                results.append(caches[0].attend(q[: len(tokens)], k[: len(tokens)], k[: len(tokens)] * 2, None))
            mx.async_eval(results[-1])
        mx.eval(results)
        taken = mx.get_peak_memory() - before
        written = int((pool.keys[0] != 0).any(axis=(1, 3)).sum())
        return {"taken": taken, "pool": pool.keys[0].nbytes, "written": written, "asked": questions.asked}

    def verify(inputs, got):
        if got["taken"] > got["pool"] / 4:
            raise AssertionError(
                f"{got['taken']:,} bytes were taken while a pool of {got['pool']:,} was written: it was copied, or its "
                "pages were; write with paged_write, which never copies, and attend where the rows lie"
            )
        if got["asked"]:
            raise AssertionError(
                f"attend called {', '.join(sorted(set(got['asked'])))}: that waits for all that was launched before. "
                "Only add to the graph, for all requests at once"
            )
        rows = sum(end - start for parts in STEPS[:3] for _, start, end in parts)
        if got["written"] != rows:
            raise AssertionError(
                f"the pool holds {got['written']} rows after {rows} were written: keep what paged_write returns"
            )


@case(task=2)
class StepsWaitForEachOther:
    """Whoever asks for the last step only gets the rows that earlier steps wrote: all hangs together in one graph."""

    def inputs(rng):
        numbers = {
            name: [mx.array(rng.standard_normal((length, heads, 1, 32)).astype(np.float32)) for length in PROMPTS]
            for name, heads in (("q", 4), ("k", 2), ("v", 2))
        }
        return model_inputs(rng) | numbers

    def observe(solution, inputs):
        mx.set_default_device(mx.cpu)
        with folder_of(inputs["files"]) as folder:
            _, pool, layers = serving(solution, inputs, folder, "flash")
        mx.eval(pool.keys, pool.values)
        for parts in STEPS[:3]:
            caches, _ = layers(parts)
            q, k, v = (mx.concatenate([inputs[x][i][start:end] for i, start, end in parts]) for x in "qkv")
            result = caches[0].attend(q, k, v, None)
        return result

    def verify(inputs, got):
        if not np.isfinite(np.array(got)).all():
            raise AssertionError(
                "a row that an earlier step should have written holds NaN: the attention must read what paged_write "
                "returns, and so must the next step's write: keep it in the pool"
            )
        want = []
        for i, _, end in STEPS[2]:
            q, k, v = (inputs[x][i][:end].swapaxes(0, 2) for x in "qkv")
            want.append(attention64(q[:, :, -1:], k, v).swapaxes(0, 2))
        close(got, np.concatenate(want), tol=1e-5, dtype=mx.float32, what="attention of the third step")


# Tasks 3 and 4: on Metal


def metal(solution):
    return solution.module("kernels.metal_paged").metal_paged_attention


@case(
    task=3,
    params=[
        {"lengths": [1], "D": 8},
        {"lengths": [7, 40, 16], "H": 4, "H_kv": 2, "D": 16},
        {"lengths": [33, 5], "H": 4, "H_kv": 2, "D": 16, "page_size": 1, "threads": 64},
        {"lengths": [50, 3, 20, 1], "H": 3, "H_kv": 3, "D": 16, "page_size": 5, "threads": 32},
        {"lengths": [70, 64], "H": 2, "D": 72, "page_size": 64, "threads": 1024},  # SIMD groups without keys
        {"lengths": [40, 9], "H": 4, "H_kv": 2, "D": 16, "scale": 0.8},
        {"lengths": [20, 35], "H": 4, "H_kv": 2, "D": 128, "dtype": mx.bfloat16},
        {"lengths": [20, 35], "H": 2, "D": 16, "dtype": mx.float16},
    ],
)
class DecodeMatchesFloat64:
    """One query for each of several requests equals the float64 result, whatever the pages and the SIMD groups."""

    def inputs(rng, lengths, threads=256, scale=None, **sizes):
        inputs = random_batch(rng, rows=[1] * len(lengths), lengths=lengths, **sizes) | {"threads": threads}
        return inputs | ({} if scale is None else {"scale": scale})

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        judged(inputs, values)


def feature_by_feature(x):
    """The numbers of x (N, H, L, D) in memory that holds the first feature of all rows, then the second."""
    return mx.contiguous(x.swapaxes(1, 3)).swapaxes(1, 3)


def judged_views(inputs, values):
    """As `judged`; also names whoever took the queries, or the pool, for row-major."""
    wrong = {
        f"the strides of {name} were ignored": lambda name=name: paged64(
            inputs | {name: mx.contiguous(inputs[name].swapaxes(1, 3)).reshape(inputs[name].shape)}
        )
        for name in ("q", "keys", "values")
    }
    judged(inputs, values, more=wrong)


@case(task=3)
class DecodeReadsByStrides:
    """Queries and a pool in another layout give the result of row-major ones."""

    def inputs(rng):
        return random_batch(rng, rows=[1, 1], lengths=[20, 35], H=4, H_kv=2, D=16)

    def observe(solution, inputs):
        views = {name: feature_by_feature(inputs[name]) for name in ("q", "keys", "values")}
        return checked_run(lambda: metal(solution)(**options(inputs | views)))

    def verify(inputs, values):
        judged_views(inputs, values)


@case(task=3, params=[{"page_size": 16}, {"page_size": 64}])
class DecodeReadsNoUnusedSlot:
    """NaNs behind the last position, in free pages and in the dummy page change nothing on Metal."""

    def inputs(rng, page_size):
        sizes = {"H": 4, "H_kv": 2, "D": 16, "page_size": page_size}
        return random_batch(rng, rows=[1, 1, 1], lengths=[7, 40, 17], unused="nan", **sizes)

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        poisoned(values["result"], inputs)
        judged(inputs, values)


@case(task=3, params=[{"threads": 64}, {"threads": 256}])
class DecodeMergesItsParts:
    """SIMD groups whose keys score far apart are merged at one maximum."""

    def inputs(rng, threads):
        inputs = random_batch(rng, rows=[1, 1], lengths=[60, 60], H=2, D=16)
        steep = np.linspace(0.2, 3, inputs["keys"].shape[0])[:, None, None, None]
        keys = np.array(inputs["keys"]) * steep
        return inputs | {"keys": mx.array(keys.astype(np.float32)), "scale": 4.0, "threads": threads}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        compare = paged64(inputs)
        judge(values, compare, tol=1e-4, dtype=mx.float32, suspects=paged_suspects(inputs))


@case(task=3, params=[{"D": 72, "threads": 64}, {"D": 72, "threads": 256, "page_size": 5}])
class DecodeReadsKeysOnce:
    """Each head reads the keys and values of its request once, and writes only the result."""

    def inputs(rng, threads, **sizes):
        return random_batch(rng, rows=[1, 1], lengths=[300, 20], H=2, **sizes) | {"threads": threads}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        H, D = inputs["q"].shape[1], inputs["q"].shape[3]
        keys, groups = int(inputs["lengths"].sum()), 2 * inputs["threads"] // 32
        read = 4 * H * ((2 * keys + groups) * D + 32 * keys)  # every lane may look up the entry of the table
        judge_traffic(values, "paged_decode", {"device_read_bytes": read}, slack=1.4)
        judge_traffic(values, "paged_decode", {"device_write_bytes": inputs["q"].nbytes}, slack=1.0)


@case(task=3)
class DecodeIsComputedByTheKernel:
    """The result is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        return random_batch(rng, rows=[1, 1], lengths=[9, 20], H=2, D=16)

    def observe(solution, inputs):
        return proven_run(lambda: metal(solution)(**options(inputs)), ["paged_decode"])

    def verify(inputs, values):
        judge_proof(values, ["paged_decode"])


@case(
    task=4,
    params=[
        {"rows": [2], "lengths": [2]},
        {"rows": [5, 1, 9], "lengths": [21, 40, 9], "H": 4, "H_kv": 2, "D": 16},
        {"rows": [33, 1, 32, 31], "lengths": [40, 7, 32, 70], "H": 2, "D": 16, "page_size": 5},
        {"rows": [3, 2], "lengths": [35, 4], "H": 3, "H_kv": 3, "D": 16, "page_size": 1},
        {"rows": [1] * 9 + [2] + [1] * 9, "lengths": [*range(1, 10), 20, *range(3, 12)], "D": 16},
        {"rows": [1, 70], "lengths": [100, 70], "H": 2, "D": 16, "page_size": 64},
        {"rows": [35, 2], "lengths": [50, 40], "H": 2, "D": 72},
        {"rows": [9, 1], "lengths": [40, 9], "H": 4, "H_kv": 2, "D": 16, "scale": 0.8},
        {"rows": [20, 2], "lengths": [33, 20], "H": 2, "D": 128, "dtype": mx.bfloat16},
        {"rows": [20, 2], "lengths": [33, 20], "H": 2, "D": 16, "dtype": mx.float16},
    ],
)
class PrefillMatchesFloat64:
    """Tiles of queries of several requests against their pages equal the float64 result, whatever the sizes."""

    def inputs(rng, scale=None, **sizes):
        return random_batch(rng, **sizes) | ({} if scale is None else {"scale": scale})

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        judged(inputs, values)


@case(task=4)
class PrefillReadsByStrides:
    """Queries and a pool in another layout give the result of row-major ones, in tiles too."""

    def inputs(rng):
        return random_batch(rng, rows=[3, 1], lengths=[20, 35], H=4, H_kv=2, D=16)

    def observe(solution, inputs):
        views = {name: feature_by_feature(inputs[name]) for name in ("q", "keys", "values")}
        return checked_run(lambda: metal(solution)(**options(inputs | views)))

    def verify(inputs, values):
        judged_views(inputs, values)


@case(task=4, params=[{"page_size": 16}, {"page_size": 5}])
class PrefillReadsNoUnusedSlot:
    """NaNs behind the last position, in free pages and in the dummy page change nothing in tiles either."""

    def inputs(rng, page_size):
        sizes = {"H": 4, "H_kv": 2, "D": 16, "page_size": page_size}
        return random_batch(rng, rows=[12, 1, 40], lengths=[50, 3, 41], unused="nan", **sizes)

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution)(**options(inputs)))

    def verify(inputs, values):
        poisoned(values["result"], inputs)
        judged(inputs, values)


@case(task=4)
class PrefillSkipsWhatNobodySees:
    """Tiles above the diagonal are not read, the others once, and nothing but the result is written."""

    def inputs(rng):
        whole = random_batch(rng, rows=[128], lengths=[128], D=16)
        return {"whole": whole, "ends": random_batch(rng, rows=[32] * 4, lengths=[128] * 4, D=16)}

    def observe(solution, inputs):
        return {name: checked_run(lambda x=x: metal(solution)(**options(x))) for name, x in inputs.items()}

    def verify(inputs, values):
        read = {
            name: sum(launch["counters"]["device_read_bytes"] for launch in run["launches"])
            for name, run in values.items()
        }
        # Of four tiles of keys the first 32 queries of 128 see one, the next two, ...: 10 of 16.
        if read["whole"] > 13 / 16 * read["ends"]:
            raise AssertionError(
                f"{read['whole']:,} bytes were read for 128 queries over 128 keys, {read['ends']:,} for four times the "
                "last 32 queries of as many, which see everything. Tiles of keys that no query of the threadgroup sees "
                "must be skipped: 10 tiles of 16 are left"
            )
        # Each number of keys and values, and for each of them an entry of the table or two.
        keys = 4 * 128 * inputs["ends"]["q"].shape[1]
        judge_traffic(values["ends"], "paged_prefill", {"device_read_bytes": 4 * 16 * 4 * keys}, slack=1.8)
        wrote = {"device_write_bytes": inputs["whole"]["q"].nbytes}
        judge_traffic(values["whole"], "paged_prefill", wrote, slack=1.0)


@case(task=4)
class PrefillIsComputedByTheKernel:
    """The result is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        return random_batch(rng, rows=[5, 1], lengths=[9, 20], H=2, D=16)

    def observe(solution, inputs):
        return proven_run(lambda: metal(solution)(**options(inputs)), ["paged_prefill"])

    def verify(inputs, values):
        judge_proof(values, ["paged_prefill"])


@case(task=4, timeout=20.0)
class MetalServedModelMatchesFloat64:
    """A model on Metal kernels serves batches of chunks and single tokens over a pool, as float64 does each request."""

    def inputs(rng):
        return model_inputs(rng)

    def observe(solution, inputs):
        kernels = ["paged_decode", "paged_prefill"]
        return proven_run(lambda: served(solution, inputs, "metal-flash"), kernels)

    def verify(inputs, values):
        judge_calls(values, ["paged_decode", "paged_prefill"])
        judge_served(inputs, values)
