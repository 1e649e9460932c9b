"""Day 3, paged KV: plain books, NumPy, Qwen3 in float64, and a model that is a hash are the oracles."""

import io
from itertools import count, pairwise

import mlx.core as mx
import numpy as np

from course.case import case, error_of
from course.checkpoint_files import wide
from course.compare import close, refused
from course.model_case import MULTI_QUERY, SMALL, TOLERANCE, config_of, model_inputs, oracle
from course.page_books import (
    fail_unless,
    for_all,
    judge_allocator,
    judge_memory,
    judge_table,
    run_allocator,
    run_memory,
    run_table,
)
from course.paged_model import PagedModel, play_script, rows_of
from course.serving_case import judge
from course.serving_case.drive import drive
from course.serving_case.workload import workload
from course.suspects import named


def explain(got: object, want: object, text: str, mistakes: dict[str, object]) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    likely = named(mistake for mistake, value in mistakes.items() if value == got)
    fail_unless(got == want, f"{text}\n{likely}")


# Task 1: a page allocator


@case(task=1, params=[{"pages": 1}, {"pages": 7}, {"pages": 64}])
class EveryPageIsGivenOutOnce:
    """Pages 0 .. pages - 1 are given out, each to one owner, until none is left."""

    def inputs(rng, pages):
        cuts = sorted(rng.integers(0, pages + 1, 3).tolist())
        return {"pages": pages, "script": [["allocate", int(n)] for n in np.diff([0, *cuts, pages])]}

    def observe(solution, inputs):
        return run_allocator(solution, inputs["pages"], inputs["script"])

    def verify(inputs, got):
        judge_allocator(inputs["pages"], inputs["script"], got)
        given = sorted(page for did in got for page in did["pages"])
        fail_unless(given == list(range(inputs["pages"])), f"the pages given out in all are {given}")


@case(task=1, params=[{"pages": 5, "first": 3}, {"pages": 5, "first": 5}, {"pages": 2, "first": 0}])
class TooManyPagesAreRefused:
    """More pages than are free, or fewer than none, are refused with a ValueError, and nothing is taken."""

    def inputs(rng, pages, first):
        left = pages - first
        wrong = [["allocate", n] for n in (left + 1, left + int(rng.integers(2, 9)), -1)]
        return {"pages": pages, "script": [["allocate", first], *wrong, ["allocate", left], ["allocate", 0]]}

    def observe(solution, inputs):
        return run_allocator(solution, inputs["pages"], inputs["script"])

    def verify(inputs, got):
        judge_allocator(inputs["pages"], inputs["script"], got)


@case(
    task=1, params=[{"wrong": wrong} for wrong in ("freed before", "dummy", "negative", "named twice", "never given")]
)
class PagesAreFreedOnce:
    """A page that nobody has, or named twice, is refused with a ValueError that names it; none is taken back."""

    def inputs(rng, wrong):
        return {"wrong": wrong, "pages": int(rng.integers(9, 14)), "at": int(rng.integers(0, 4))}

    def observe(solution, inputs):
        allocator = solution.module("cache.paged").PageAllocator(inputs["pages"])
        taken = [int(page) for page in allocator.allocate(6)]
        allocator.free(tuple(taken[4:5]))  # any sequence
        bad = {
            "freed before": taken[4],
            "dummy": inputs["pages"],
            "negative": -1,
            "named twice": taken[0],
            "never given": next(page for page in range(inputs["pages"]) if page not in taken),
        }[inputs["wrong"]]
        pages = taken[:4]
        pages.insert(inputs["at"] if bad != taken[0] else 2, bad)
        before = allocator.available
        error = error_of(lambda: allocator.free(pages))
        after = allocator.available
        rest = [int(page) for page in allocator.allocate(after)]
        return {"bad": bad, "pages": pages, "error": error, "moved": after - before, "taken": taken[:4], "rest": rest}

    def verify(inputs, got):
        what = f"free({got['pages']}), where page {got['bad']} is one {inputs['wrong']},"
        if got["error"]["type"] is None:
            raise AssertionError(f"{what} was accepted: that page is given to two requests next")
        refused(got["error"], what, str(got["bad"]))
        both = sorted(set(got["taken"]) & set(got["rest"]))
        fail_unless(got["moved"] == 0 and not both, f"{what} was refused, but it freed other pages: {both}")


@case(task=1, timeout=8.0)
class LargePoolsAreQuick:
    """80,000 pages are given out and taken back in a moment: no call searches through a list of pages."""

    def inputs(rng):
        return {"pages": 80_000, "parts": sorted(rng.integers(0, 80_000, 9).tolist())}

    def observe(solution, inputs):
        allocator = solution.module("cache.paged").PageAllocator(inputs["pages"])
        taken = [page for _ in range(4) for page in allocator.allocate(inputs["pages"] // 4)]
        ends = [0, *inputs["parts"], inputs["pages"]]
        for start, end in pairwise(ends):
            allocator.free(taken[start:end])
        return {"different": len(set(taken)), "free": int(allocator.available)}

    def verify(inputs, got):
        n = inputs["pages"]
        fail_unless(got == {"different": n, "free": n}, f"{n} pages were allocated and freed: {got}")


@case(task=1, params=[{"pages": pages} for pages in (1, 4, 17)], timeout=20.0)
class AllocatorKeepsItsBooks:
    """After any calls, right ones and wrong ones, the allocator agrees with a plain set of taken pages."""

    def inputs(rng, pages):
        return {"pages": pages, "seed": int(rng.integers(2**31))}

    def observe(solution, inputs):
        return run_allocator(solution, inputs["pages"], inputs["script"])

    def check(observe, inputs):
        from hypothesis import strategies as st

        pages = inputs["pages"]
        take = st.tuples(st.just("allocate"), st.integers(-1, pages + 2))
        give = st.lists(st.integers(0, 40), max_size=4).map(lambda indices: ("free", *indices))
        scripts = st.lists(st.one_of(take, give).map(list), max_size=25)

        def right(script):
            judge_allocator(pages, script, observe({"pages": pages, "script": script}))

        for_all(scripts, inputs["seed"], 60, right)


# Task 2: a page table

SHAPES = [
    {"rows": 3, "max_len": 10, "page_size": 4, "dummy_page": 9},
    {"rows": 2, "max_len": 8, "page_size": 4, "dummy_page": 4},
    {"rows": 1, "max_len": 5, "page_size": 1, "dummy_page": 5},
    {"rows": 4, "max_len": 16, "page_size": 16, "dummy_page": 3},
    {"rows": 2, "max_len": 33, "page_size": 16, "dummy_page": 7},
    {"rows": 2, "max_len": 130, "page_size": 64, "dummy_page": 11},
]


def columns_of(sizes: dict[str, int]) -> int:
    return -(-sizes["max_len"] // sizes["page_size"])


@case(task=2, params=SHAPES)
class EntriesBeginAsTheDummyPage:
    """A new table is int32, has a column for each page of the longest request, and the dummy page in every entry."""

    def inputs(rng, **sizes):
        return sizes

    def observe(solution, sizes):
        PageTable = solution.module("cache.paged").PageTable
        table, names = PageTable(**sizes), ("page_size", "dummy_page", "dummy_row")
        books = {"entries": table.entries.copy(), "dtype": str(table.entries.dtype), "counts": list(table.counts)}
        other = PageTable(**sizes)  # of another engine in this process
        other.entries += 1
        other.counts[0] += 1
        alone = bool((table.entries == books["entries"]).all()) and list(table.counts) == books["counts"]
        return books | {name: int(getattr(table, name)) for name in names} | {"alone": alone}

    def verify(sizes, got):
        rows, columns = sizes["rows"], columns_of(sizes)
        mistakes = {
            "the last page, only partly used, has no column": (rows + 1, sizes["max_len"] // sizes["page_size"]),
            "there is no row for the dummy request": (rows, columns),
            "a column for each position": (rows + 1, sizes["max_len"]),
            "one column too many": (rows + 1, columns + 1),
        }
        shape = got["entries"].shape
        text = f"entries have shape {shape}, expected {(rows + 1, columns)} for {rows} rows of {sizes['max_len']}"
        explain(shape, (rows + 1, columns), text, mistakes)
        fail_unless(got["dtype"] == "int32", f"entries are {got['dtype']}, expected int32: kernels read them")
        dummy = np.full(shape, sizes["dummy_page"])
        pages = {"unused entries hold a real page: whoever reads or writes there disturbs its owner": 0 * dummy}
        last = dummy.copy()
        last[-1] = 0
        pages["the dummy row holds a real page"] = last
        others = np.full(shape, -1)
        others[-1] = sizes["dummy_page"]
        pages["unused entries hold no page at all"] = others
        close(got["entries"], dummy, what="the entries", suspects=pages)
        fail_unless(got["counts"] == [0] * rows + [columns], f"counts are {got['counts']}: 0, all for the dummy row")
        fail_unless(got["alone"], "what is written into another table stands in this one too: each has its own books")
        for name, want in (("page_size", sizes["page_size"]), ("dummy_page", sizes["dummy_page"]), ("dummy_row", rows)):
            fail_unless(got[name] == want, f"{name} is {got[name]}, expected {want}")


@case(task=2, params=[{"shape": shape} for shape in range(len(SHAPES))])
class SlotsFollowThePages:
    """The slot of a position is its page times the page size, plus its place in the page, for every stretch."""

    def inputs(rng, shape):
        sizes = SHAPES[shape] | {"dummy_page": 40}
        columns, s = columns_of(sizes), sizes["page_size"]
        pages = (1 + rng.permutation(39)[:columns]).tolist()
        ends = sorted({0, 1, s - 1, s, s + 1, columns * s - 1, columns * s} & set(range(columns * s + 1)))
        stretches = [[start, end] for start in ends for end in ends if start <= end]
        cut = int(rng.integers(0, columns + 1))
        return {"sizes": sizes, "pages": [pages[:cut], pages[cut:]], "stretches": stretches}

    def observe(solution, inputs):
        table = solution.module("cache.paged").PageTable(**inputs["sizes"])
        for pages in inputs["pages"]:
            table.append(0, pages)
        return [[table.slots(row, start, end) for start, end in inputs["stretches"]] for row in (0, table.dummy_row)]

    def verify(inputs, got):
        pages = np.concatenate(inputs["pages"]).astype(int)
        dummy = np.full(len(pages), 40)
        s = inputs["sizes"]["page_size"]
        for entries, which, slots in ((pages, "a row", got[0]), (dummy, "the dummy row", got[1])):
            for (start, end), part in zip(inputs["stretches"], slots, strict=True):
                fail_unless(str(part.dtype) == "int32", f"slots are {part.dtype}, expected int32")
                p = np.arange(start, end)
                close(part, entries[p // s] * s + p % s, suspects=wrong_slots(entries, s, p),
                      what=f"the slots of positions {start} .. {end - 1} of {which}")  # fmt: skip


def wrong_slots(pages: np.ndarray, s: int, p: np.ndarray) -> dict[str, np.ndarray]:
    """Slots by mistake."""
    last = len(pages) - 1
    return {
        "the page was not multiplied by the page size": pages[p // s] + p % s,
        "the first position of a page was counted to the page before": pages[np.minimum((p + s - 1) // s, last)] * s
        + p % s,
        "the place in the page was forgotten": pages[p // s] * s,
        "the slots are positions: the pages were not looked up": p,
        "places were counted from the first position asked for": pages[p // s] * s + (p - p[:1]) % s,
        "the page was multiplied by the number of entries": pages[p // s] * len(pages) + p % s,
        "pages were looked up by the place in the page": pages[np.minimum(p % s, last)] * s + p % s,
    }


@case(task=2, params=[{"shape": shape} for shape in (0, 4, 5)])
class ClearedRowsAreEmpty:
    """After `clear` a row has no page and every entry is the dummy page; the next request finds nothing of the last."""

    def inputs(rng, shape):
        sizes = SHAPES[shape] | {"dummy_page": 50}
        pages = rng.permutation(50)[: columns_of(sizes) + 2].tolist()
        script = [["append", 0, pages[:-2]], ["append", 1, pages[-2:-1]], ["clear", 0], ["append", 0, pages[-1:]]]
        return {"sizes": sizes, "script": [*script, ["clear", 0], ["clear", 0]]}

    def observe(solution, inputs):
        return run_table(solution, inputs["sizes"], inputs["script"])

    def verify(inputs, got):
        stale = inputs["script"][0][2]
        entries = got[2]["entries"][0].tolist()
        if any(page in stale for page in entries):
            raise AssertionError(
                f"after clear(0) the row still names {sorted(set(entries) & set(stale))}, pages of the request before"
            )
        judge_table(inputs["sizes"], inputs["script"], got)


@case(task=2, params=[{"shape": shape} for shape in (0, 2, 4)])
class WhatARowCannotHoldIsRefused:
    """More pages than a row has entries, and positions or entries without a page, are refused; nothing changes."""

    def inputs(rng, shape):
        sizes = SHAPES[shape] | {"dummy_page": 60}
        columns, s = columns_of(sizes), sizes["page_size"]
        pages = rng.permutation(60).tolist()
        n = columns - 1
        wrong = [["append", 0, pages[n : n + 2]], ["slots", 0, 0, n * s + 1], ["slots", 0, n * s, n * s + s]]
        wrong += [["slots", 0, -1, 1], ["replace", 0, n, pages[-1:]], ["replace", 0, -1, pages[-1:]]]
        wrong += [["replace", 0, n - 1, pages[-2:]], ["append", sizes["rows"], pages[-1:]]]
        return {"sizes": sizes, "script": [["append", 0, pages[:n]], *wrong, ["append", 0, pages[n : n + 1]]]}

    def observe(solution, inputs):
        return run_table(solution, inputs["sizes"], inputs["script"])

    def verify(inputs, got):
        judge_table(inputs["sizes"], inputs["script"], got)


@case(task=2, params=[{"shape": shape} for shape in (0, 2, 4)], timeout=20.0)
class TableKeepsItsBooks:
    """After any calls, right ones and wrong ones, the table agrees with plain lists of pages."""

    def inputs(rng, shape):
        return {"sizes": SHAPES[shape] | {"dummy_page": 90}, "seed": int(rng.integers(2**31))}

    def observe(solution, inputs):
        return run_table(solution, inputs["sizes"], inputs["script"])

    def check(observe, inputs):
        from hypothesis import strategies as st

        sizes = inputs["sizes"]
        row, place = st.integers(0, sizes["rows"] - 1), st.integers(0, columns_of(sizes))
        pages = st.lists(st.integers(0, 89), max_size=3)
        position = st.integers(0, columns_of(sizes) * sizes["page_size"] + 1)
        stretch = st.tuples(position, position).map(sorted).filter(lambda ends: ends[0] < ends[1])
        operation = st.one_of(
            st.tuples(st.just("append"), row, pages),
            st.tuples(st.just("replace"), row, place, pages.filter(len)),
            st.tuples(st.just("clear"), row),
            st.tuples(st.just("slots"), row, stretch).map(lambda op: (*op[:2], *op[2])),
        ).map(list)

        def right(script):
            judge_table(sizes, script, observe({"sizes": sizes, "script": script}))

        for_all(st.lists(operation, max_size=20), inputs["seed"], 60, right)


# Task 3: a pool of pages


def pool_of(solution, inputs: dict):
    """The solution's PagePool of a SMALL model with two layers."""
    config = config_of(solution, inputs["sizes"])
    return solution.module("cache.pool").PagePool(
        config, inputs["pages"], inputs["page_size"], inputs["dtype_of"].dtype
    )


def pool_inputs(rng: np.random.Generator, page_size: int, pages: int, dtype: mx.Dtype, writes: list[int]) -> dict:
    """Rows for random slots of random layers. No number is 0, and no slot comes twice in a write."""
    sizes = model_inputs(rng, SMALL | {"layers": 2})["sizes"]
    H_kv, D = sizes["kv_heads"], sizes["head_dim"]
    parts = []
    for T in writes:
        numbers = rng.uniform(1, 2, (2, T, H_kv, D)) * rng.choice([-1, 1], (2, T, H_kv, D))
        k, v = (mx.array(x.astype(np.float32)).astype(dtype) for x in numbers)
        slots = rng.permutation((pages + 1) * page_size)[:T].astype(np.int32)
        parts.append({"layer": int(rng.integers(2)), "k": k, "v": v, "slots": slots})
    return {"sizes": sizes, "page_size": page_size, "pages": pages, "dtype_of": mx.zeros(1, dtype), "writes": parts}


def pool_books(inputs: dict) -> np.ndarray:
    """(2, layers, pages + 1, H_kv, page_size, D) in float64: keys and values after all writes."""
    sizes, s = inputs["sizes"], inputs["page_size"]
    shape = (2, sizes["layers"], inputs["pages"] + 1, sizes["kv_heads"], s, sizes["head_dim"])
    books = np.zeros(shape)
    for part in inputs["writes"]:
        for i, x in enumerate((part["k"], part["v"])):
            for t, slot in enumerate(part["slots"].tolist()):
                books[i, part["layer"], slot // s, :, slot % s] = wide(x)[t]
    return books


@case(
    task=3,
    params=[
        {"page_size": 1, "pages": 9, "writes": [1, 4, 9]},
        {"page_size": 4, "pages": 5, "writes": [1, 1, 6, 3]},
        {"page_size": 16, "pages": 3, "writes": [20, 7], "dtype": mx.float16},
        {"page_size": 64, "pages": 2, "writes": [100, 1, 64], "dtype": mx.bfloat16},
        {"page_size": 16, "pages": 2, "writes": [0, 2]},
    ],
)
class WritesGoToTheirSlots:
    """Row t of a write goes to slot t of its layer, keys and values alike, and nothing else in the pool changes."""

    def inputs(rng, page_size, pages, writes, dtype=mx.float32):
        return pool_inputs(rng, page_size, pages, dtype, writes)

    def observe(solution, inputs):
        pool = pool_of(solution, inputs)
        for part in inputs["writes"]:
            pool.write(part["layer"], part["k"], part["v"], part["slots"])
        return {"keys": list(pool.keys), "values": list(pool.values)}

    def verify(inputs, got):
        books, dtype = pool_books(inputs), inputs["dtype_of"].dtype
        for i, name in enumerate(("keys", "values")):
            for layer, x in enumerate(got[name]):
                suspects = {
                    "values stand where keys belong, or the other way round": books[1 - i, layer],
                    "written to the wrong layer": books[i, 1 - layer],
                    "nothing was written": 0 * books[i, layer],
                    "page and place in the page were swapped, or the page size is wrong": lambda i=i, layer=layer: (
                        swapped(inputs, i, layer)
                    ),
                }
                close(x, books[i, layer], tol=0.0, dtype=dtype, suspects=suspects, what=f"the {name} of layer {layer}")


def swapped(inputs: dict, i: int, layer: int) -> np.ndarray:
    """A layer of the pool if slots had been split by the number of pages."""
    books, n = 0 * pool_books(inputs)[i, layer], inputs["pages"] + 1
    for part in inputs["writes"]:
        if part["layer"] == layer:
            for t, slot in enumerate(part["slots"].tolist()):
                books[slot % n, :, slot // n] = wide((part["k"], part["v"])[i])[t]
    return books


@case(
    task=3,
    params=[
        {"page_size": 1, "pages": 11},
        {"page_size": 4, "pages": 7},
        {"page_size": 16, "pages": 5, "dtype": mx.bfloat16},
        {"page_size": 64, "pages": 3, "dtype": mx.float16},
    ],
)
class GatherReadsInOrder:
    """`gather` gives the first positions of the pages in their order, for every length, and not one more."""

    def inputs(rng, page_size, pages, dtype=mx.float32):
        inputs = pool_inputs(rng, page_size, pages, dtype, [(pages + 1) * page_size] * 4)
        for layer, part in enumerate(inputs["writes"]):
            part["layer"] = layer % 2
        own = rng.permutation(pages)[: max(pages - 1, 2)].tolist()
        most = len(own) * page_size
        lengths = sorted({1, page_size, min(page_size + 1, most), most - 1, most, int(rng.integers(1, most + 1))})
        return inputs | {"own": own, "lengths": lengths}

    def observe(solution, inputs):
        pool = pool_of(solution, inputs)
        for part in inputs["writes"]:
            pool.gather(part["layer"], inputs["own"], inputs["lengths"][-1])  # what was written later counts, too
            pool.write(part["layer"], part["k"], part["v"], part["slots"])
        return [pool.gather(layer, inputs["own"], length) for layer in range(2) for length in inputs["lengths"]]

    def verify(inputs, got):
        books, s, own = pool_books(inputs), inputs["page_size"], inputs["own"]
        calls = [(layer, length) for layer in range(2) for length in inputs["lengths"]]
        for (layer, length), pair in zip(calls, got, strict=True):
            for i, x in enumerate(pair):
                dense = books[i, layer][own]  # (n, H_kv, s, D)
                want = np.moveaxis(dense, 1, 0).reshape(dense.shape[1], -1, dense.shape[3])[None, :, :length]
                suspects = {
                    "it was read from another layer": np.moveaxis(books[i, 1 - layer][own], 1, 0).reshape(
                        want.shape[1], -1, want.shape[3]
                    )[None, :, :length],
                    "heads and pages were mixed: bring the heads in front before pages and places are joined": (
                        dense.reshape(want.shape[1], -1, want.shape[3])[None, :, :length]
                    ),
                }
                if x.ndim == 4 and x.shape[2] > length:
                    raise AssertionError(
                        f"gather of {length} positions in pages of {s} gave {x.shape[2]}: the rest of the last page is "
                        "not part of the request"
                    )
                what = f"the {('keys', 'values')[i]} of layer {layer}, {length} positions in pages {own} of {s}"
                close(x, want, tol=0.0, dtype=inputs["dtype_of"].dtype, suspects=suspects, what=what)


@case(task=3, params=[{"page_size": 1}, {"page_size": 16}, {"page_size": 64}])
class ThePoolIsNotCopied:
    """A step that writes a few rows and reads them takes memory for these rows, not for the pool."""

    def inputs(rng, page_size):
        inputs = pool_inputs(rng, page_size, 16384 // page_size, mx.float32, [3, 1, 8, 1, 1, 5])
        for part in inputs["writes"]:
            part["layer"] = 0
        return inputs

    def observe(solution, inputs):
        pool = pool_of(solution, inputs)
        pages, sizes = list(range(0, 48 // inputs["page_size"] or 1)), []
        mx.eval([part["k"] for part in inputs["writes"]], [part["v"] for part in inputs["writes"]])
        for part in inputs["writes"]:
            before = mx.get_active_memory()
            mx.reset_peak_memory()
            pool.write(0, part["k"], part["v"], part["slots"])
            keys, values = pool.gather(0, pages, len(pages) * inputs["page_size"])
            mx.eval(keys.sum() + values.sum(), pool.keys[0], pool.values[0])
            sizes.append(max(mx.get_peak_memory() - before, 0))
            del keys, values
        return {"steps": sizes, "layer": pool.keys[0].nbytes}

    def verify(inputs, got):
        copied = [size for size in got["steps"] if size > got["layer"] // 2]
        if copied:
            raise AssertionError(
                f"{len(copied)} of {len(got['steps'])} steps took up to {max(copied)} bytes, and the keys of a layer "
                f"take {got['layer']}: the pool was copied. Write with an indexed assignment to the array in the list, "
                "and keep no other reference to it"
            )


@case(task=3)
class ThePoolOnlyBuildsTheGraph:
    """A write and a gather compute nothing: that happens when a result is needed, with all else of the batch."""

    def inputs(rng):
        return pool_inputs(rng, 16, 64, mx.float32, [1000])

    def observe(solution, inputs):
        pool, part = pool_of(solution, inputs), inputs["writes"][0]
        mx.eval(part["k"], part["v"])
        mx.synchronize()
        before = mx.get_active_memory()
        k, v = part["k"] + 1.0, part["v"] + 1.0
        pool.write(0, k, v, part["slots"])
        written = mx.get_active_memory() - before
        gathered = pool.gather(0, list(range(64)), 1000)
        read = mx.get_active_memory() - before - written
        return {"calls": {"write": written, "gather": read}, "bytes": k.nbytes, "shape": list(gathered[0].shape)}

    def verify(inputs, got):
        for name, size in got["calls"].items():
            if size > got["bytes"] // 4:
                raise AssertionError(
                    f"the call of {name} alone computed {size:,} bytes: it must only add to the graph, or the engine "
                    "waits in each layer for all that was launched before"
                )


def operations(arrays: list[mx.array]) -> int:
    """How many operations the graph of some arrays holds that were not evaluated."""
    graph = io.StringIO()
    mx.export_to_dot(graph, *arrays)
    return graph.getvalue().count("shape=rectangle")


@case(task=3)
class AWriteIsOneStep:
    """However many rows a write has, it adds the same few operations to the graph: all rows are written at once."""

    def inputs(rng):
        return pool_inputs(rng, 4, 40, mx.float32, [2, 60])

    def observe(solution, inputs):
        counts = []
        for part in inputs["writes"]:
            pool = pool_of(solution, inputs)
            mx.eval(part["k"], part["v"])
            pool.write(part["layer"], part["k"], part["v"], part["slots"])
            counts.append(operations([*pool.keys, *pool.values]))
        return counts

    def verify(inputs, got):
        few, many = got
        if many > 2 * few:
            raise AssertionError(
                f"a write of 60 rows added {many} operations to the graph, one of 2 rows {few}: write all rows with "
                "one indexed assignment, not row by row"
            )


@case(task=3, params=[{"length": 1}, {"length": 40}])
class GatherTakesWhatItNeeds:
    """A gather takes memory for the pages up to its last position, however many pages the request has."""

    def inputs(rng, length):
        return pool_inputs(rng, 16, 1000, mx.float32, [16]) | {"length": length}

    def observe(solution, inputs):
        pool, part = pool_of(solution, inputs), inputs["writes"][0]
        pool.write(part["layer"], part["k"], part["v"], part["slots"])
        mx.eval(pool.keys, pool.values)
        before = mx.get_active_memory()
        mx.reset_peak_memory()
        keys, values = pool.gather(part["layer"], list(range(1000)), inputs["length"])
        mx.eval(keys, values)
        return {"took": max(mx.get_peak_memory() - before, 0), "layer": pool.keys[0].nbytes}

    def verify(inputs, got):
        if got["took"] > got["layer"] // 4:
            raise AssertionError(
                f"gather of {inputs['length']} positions from a request with 1000 pages took {got['took']:,} bytes, "
                f"and the keys of all its pages have {got['layer']:,}: pages behind the last position were read"
            )


SIZES = [
    {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 8, "page_size": 16, "dtype": mx.float32},
    {"layers": 28, "heads": 16, "kv_heads": 8, "head_dim": 128, "hidden": 1024, "page_size": 1, "dtype": mx.bfloat16},
    {"layers": 3, "heads": 6, "kv_heads": 3, "head_dim": 10, "page_size": 64, "dtype": mx.float16},
]


def page_mistakes(sizes: dict, s: int, itemsize: int) -> dict[str, int]:
    """Bytes of a page by mistake."""
    right = 2 * sizes["layers"] * sizes["kv_heads"] * s * sizes["head_dim"] * itemsize
    return {
        "only keys, or only values": right // 2,
        "one layer was counted": right // sizes["layers"],
        "query heads were counted, not key/value heads": right // sizes["kv_heads"] * sizes["heads"],
        "one position was counted, not a page of them": right // s,
        "numbers were counted, not bytes": right // itemsize,
        "hidden_size / heads was taken for head_dim": right // sizes["head_dim"] * (sizes["hidden"] // sizes["heads"]),
    }


@case(task=3, params=SIZES)
class PageBytesIsAClosedForm:
    """A page takes the bytes of the keys and values of its positions, in all layers."""

    def inputs(rng, page_size, dtype, **sizes):
        shape = model_inputs(rng, SMALL)["sizes"] | sizes
        return {"sizes": shape, "page_size": page_size, "dtype_of": mx.zeros(1, dtype)}

    def observe(solution, inputs):
        config = config_of(solution, inputs["sizes"])
        return solution.module("cache.pool").page_bytes(config, inputs["page_size"], inputs["dtype_of"].dtype)

    def verify(inputs, got):
        sizes, s, itemsize = inputs["sizes"], inputs["page_size"], inputs["dtype_of"].itemsize
        want = 2 * sizes["layers"] * sizes["kv_heads"] * s * sizes["head_dim"] * itemsize
        explain(got, want, f"a page takes {got} bytes, expected {want}", page_mistakes(sizes, s, itemsize))


@case(task=3, params=SIZES)
class PagesFitTheMemory:
    """`pages_that_fit` gives the most pages of a pool that is not larger than the memory, its dummy page included."""

    def inputs(rng, page_size, dtype, **sizes):
        shape = model_inputs(rng, SMALL)["sizes"] | sizes
        page = 2 * shape["layers"] * shape["kv_heads"] * page_size * shape["head_dim"] * dtype.size
        pages = [2, 3, int(rng.integers(4, 1000))]
        memory = [n * page + extra for n in pages for extra in (0, 1, page - 1)]
        return {"sizes": shape, "page_size": page_size, "dtype_of": mx.zeros(1, dtype), "memory": memory, "page": page}

    def observe(solution, inputs):
        config, pool = config_of(solution, inputs["sizes"]), solution.module("cache.pool")
        fit = [
            error_of(lambda m=m: pool.pages_that_fit(m, config, inputs["page_size"], inputs["dtype_of"].dtype))
            for m in [*inputs["memory"], 2 * inputs["page"] - 1, 0]
        ]
        return {"fit": fit[:-2], "small": fit[-2:]}

    def verify(inputs, got):
        for memory, fit in zip(inputs["memory"], got["fit"], strict=True):
            n = memory // inputs["page"]
            text = f"{memory} bytes hold {n} pages of {inputs['page']}: expected {n - 1} and the dummy page, got {fit}"
            mistakes = {"the dummy page needs memory too": n, "rounded up": n + 1, "one too few": n - 2}
            explain(fit.get("value"), n - 1, text, mistakes)
        page = inputs["page"]
        for memory, error in zip((2 * page - 1, 0), got["small"], strict=True):
            refused(error, f"a memory of {memory} bytes for pages of {page}", str(memory), str(page))


# Task 4: a memory of pages

MEMORIES = [
    {"rows": 3, "max_len": 40, "page_size": 1, "pages": 90},
    {"rows": 3, "max_len": 40, "page_size": 4, "pages": 24},
    {"rows": 4, "max_len": 130, "page_size": 16, "pages": 30},
    {"rows": 2, "max_len": 200, "page_size": 64, "pages": 7},
]


@case(task=4, params=MEMORIES)
class RowsGrowByPages:
    """A row has the pages that its positions need, and no more: less than one page of it is unused."""

    def inputs(rng, **sizes):
        s, most = sizes["page_size"], sizes["max_len"]
        lengths = {1, s - 1, s, s + 1, 2 * s, 2 * s + 1, most - 1, most, int(rng.integers(1, most))}
        script = [["open", 0], ["open", 1], ["grow", 1, 1]]
        script += [["grow", 0, length] for length in sorted(lengths) if 0 < length <= most]
        return {"sizes": sizes, "script": [*script, ["grow", 0, 1], ["grow", 0, most], ["close", 0], ["close", 1]]}

    def observe(solution, inputs):
        return run_memory(solution, inputs["sizes"], inputs["script"])

    def verify(inputs, got):
        judge_memory(inputs["sizes"], inputs["script"], got)


@case(task=4, params=MEMORIES)
class AGrowThatFailsChangesNothing:
    """Too many pages raise OutOfPagesError, too many positions a ValueError; everybody has what he had before."""

    def inputs(rng, rows, max_len, page_size, pages):
        pages = -(-max_len // page_size) + 2  # one request of full length, and a little more
        sizes = {"rows": rows, "max_len": max_len, "page_size": page_size, "pages": pages}
        part = max_len - page_size * int(rng.integers(0, 2))
        script = [["open", 0], ["open", 1], ["grow", 0, part], ["grow", 1, page_size]]
        script += [["grow", 1, max_len], ["grow", 0, max_len + 1], ["grow", 0, max_len + page_size * pages]]
        left = pages - -(-part // page_size) - 1
        script += [
            ["grow", 1, page_size * (1 + left)],
            ["grow", 0, part],
            ["close", 0],
            ["grow", 1, max_len],
            ["close", 1],
        ]
        return {"sizes": sizes, "script": script}

    def observe(solution, inputs):
        return run_memory(solution, inputs["sizes"], inputs["script"])

    def verify(inputs, got):
        judge_memory(inputs["sizes"], inputs["script"], got)


@case(task=4, params=MEMORIES)
class RowsAreGivenOnceAndBackOnce:
    """A request has one row from open to close; a second open or close is refused, and so is a grow without a row."""

    def inputs(rng, **sizes):
        rows = sizes["rows"]
        length = int(rng.integers(1, sizes["page_size"] + 1))
        script = [["open", 0], ["grow", 0, length], ["open", 0]]
        script += [[name, uid, *more] for uid in range(1, rows) for name, *more in (["open"], ["grow", length])]
        again = [
            ["open", 0],
            ["open", rows],
            ["grow", rows, 1],
            ["close", 1],
            ["close", 1],
            ["open", 1],
            ["grow", 1, 1],
        ]
        return {"sizes": sizes, "script": script + again + [["close", uid] for uid in (0, 0, *range(1, rows))]}

    def observe(solution, inputs):
        return run_memory(solution, inputs["sizes"], inputs["script"])

    def verify(inputs, got):
        judge_memory(inputs["sizes"], inputs["script"], got)


@case(task=4, params=MEMORIES, timeout=20.0)
class MemoryKeepsItsBooks:
    """However requests come, grow, and are given up at any moment: the books agree, and in the end all is free."""

    def inputs(rng, **sizes):
        return {"sizes": sizes, "seed": int(rng.integers(2**31))}

    def observe(solution, inputs):
        return run_memory(solution, inputs["sizes"], inputs["script"])

    def check(observe, inputs):
        from hypothesis import strategies as st

        sizes, s = inputs["sizes"], inputs["sizes"]["page_size"]
        uid = st.integers(0, sizes["rows"])
        edge = st.tuples(st.integers(0, 5), st.integers(-1, 1)).map(lambda at: max(at[0] * s + at[1], 1))
        length = st.one_of(st.integers(1, sizes["max_len"] + 2), edge)
        operation = st.one_of(
            st.tuples(st.just("open"), uid),
            st.tuples(st.just("grow"), uid, length),
            st.tuples(st.just("grow"), uid, length),
            st.tuples(st.just("close"), uid),
        ).map(list)

        def right(script):
            script = [*script, *(["close", uid] for uid in range(sizes["rows"] + 1))]
            judge_memory(sizes, script, observe({"sizes": sizes, "script": script}))

        for_all(st.lists(operation, max_size=25), inputs["seed"], 40, right)


@case(task=4, params=[{"page_size": 1}, {"page_size": 16}])
class ARowBeginsWithItsPrefix:
    """`open` puts the pages of the prefix first and counts its positions; `release` frees those behind `keep`."""

    def inputs(rng, page_size):
        return {
            "page_size": page_size,
            "prefix": int(rng.integers(1, 4)),
            "more": int(rng.integers(1, 2 * page_size + 1)),
        }

    def observe(solution, inputs):
        s, n = inputs["page_size"], inputs["prefix"]
        memory = solution.module("serving.paged_memory").PagedMemory(2, 12 * s, s, 20)
        kept = [int(page) for page in memory.allocator.allocate(n)]
        prefix = solution.module("serving.memory").Prefix(n * s, tuple(kept))
        request = solution.module("serving.request").Request(3, [0] * (12 * s - 1), 1)
        memory.open(request, prefix)
        opened = {
            "cached_len": request.cached_len,
            "pages": memory.table.pages(request.row),
            "held": memory.held(request),
        }
        memory.grow(request, n * s + inputs["more"])
        grown = memory.table.pages(request.row)
        memory.release(request, n)
        row, released = request.row, memory.available
        error_of(lambda: memory.allocator.free(kept))
        after = {"row": row, "released": released, "rows": memory.free_rows, "freed": memory.available}
        return {"kept": kept, "opened": opened, "grown": grown} | after

    def verify(inputs, got):
        n, s = inputs["prefix"], inputs["page_size"]
        kept, opened = got["kept"], got["opened"]
        fail_unless(opened["cached_len"] == n * s, f"cached_len is {opened['cached_len']} with a prefix of {n * s}")
        text = f"the row begins as {opened['pages']}, the prefix has pages {kept}"
        fail_unless(opened["pages"] == kept and opened["held"] == n, text)
        grown, want = got["grown"], n - (-inputs["more"] // s)
        fail_unless(grown[:n] == kept, f"after a grow the row is {grown}: it must still begin with {kept}")
        explain(
            len(grown),
            want,
            f"the row has {len(grown)} pages for {n} of a prefix and {inputs['more']} positions more: expected {want}",
            {"the pages of the prefix were not counted as held": want + n},
        )
        fail_unless(got["row"] is None, f"after release the request still has row {got['row']}")
        left = 20 - n
        explain(
            got["released"],
            left,
            f"after a release that keeps {n} pages {got['released']} of 20 are free, expected {left}",
            {"the pages to keep were freed too": 20, "the pages to keep were freed, the others not": 20 - want + n},
        )
        fail_unless(got["rows"] == 2, f"{got['rows']} of 2 rows are free")
        fail_unless(got["freed"] == 20, f"when their owner has freed the kept pages too, {got['freed']} of 20 are free")


@case(task=4)
class GrowEvictsWhatIsShort:
    """Where a subclass can evict, `grow` counts those pages as available, and asks for just what is short."""

    def inputs(rng):
        return {"unused": int(rng.integers(4, 7)), "first": int(rng.integers(1, 4))}

    def observe(solution, inputs):
        asked, errors = [], solution.module("serving.memory")

        class Lending(solution.module("serving.paged_memory").PagedMemory):
            """Some pages are with a cache that gives them back when asked."""

            def lend(self, pages):
                self.lent = self.allocator.allocate(pages)

            @property
            def available(self):
                return self.allocator.available + len(self.lent)

            def evict(self, pages):
                asked.append(pages)
                self.allocator.free([self.lent.pop() for _ in range(pages)])

        memory = Lending(2, 64, 4, 10)
        memory.lend(inputs["unused"])
        Request = solution.module("serving.request").Request
        one, two = Request(0, [0], 1), Request(1, [0], 1)
        for request in (one, two):
            memory.open(request, errors.Prefix())
        lengths = [4 * (9 - inputs["unused"]), 4 * (10 - inputs["unused"] + inputs["first"])]
        for length in lengths:
            memory.grow(one, length)
        failed = error_of(lambda: memory.grow(two, 4 * (inputs["unused"] - inputs["first"] + 1)))["type"]
        return {"asked": asked, "available": memory.available, "held": memory.held(one), "failed": failed}

    def verify(inputs, got):
        first, unused = inputs["first"], inputs["unused"]
        text = f"evict was asked for {got['asked']}, expected [{first}]: only what the allocator is short of"
        explain(got["asked"], [first], text, {"it evicts all pages that are missing, free ones too": [first + 1]})
        fail_unless(got["available"] == unused - first, f"{got['available']} pages are available, not {unused - first}")
        fail_unless(got["held"] == 10 - unused + first, f"the row has {got['held']} pages, not {10 - unused + first}")
        fail_unless(
            got["failed"] == "OutOfPagesError", f"more than available gave {got['failed']}, not OutOfPagesError"
        )


@case(
    task=4,
    params=[
        {"page_size": 1, "rows": 4, "max_len": 24, "pages": 96},
        {"page_size": 4, "rows": 5, "max_len": 40, "pages": 50},
        {"page_size": 16, "rows": 4, "max_len": 48, "pages": 12},
        {"page_size": 64, "rows": 3, "max_len": 100, "pages": 6},
        {"page_size": 4, "rows": 6, "max_len": 40, "pages": 17, "chunked": True},
        {"page_size": 16, "rows": 6, "max_len": 48, "pages": 5, "chunked": True},
    ],
    timeout=20.0,
)
class AnyWorkloadAnswersAsAlone:
    """Whatever shares the pages, each request gets its own tokens, ends once, and leaves its row and pages free."""

    def inputs(rng, page_size, rows, max_len, pages, chunked=False):
        seeds = rng.integers(2**31, size=6).tolist()
        scripts = [workload(int(n), max_len=max_len, page_size=page_size, aborts=0.0, requests=10) for n in seeds]
        return {"sizes": [rows, max_len, page_size, pages], "scripts": scripts, "chunked": chunked}

    def observe(solution, inputs):
        name = ("serving.chunked", "ChunkedScheduler") if inputs["chunked"] else ("serving.scheduler", "Scheduler")
        scheduler = getattr(solution.module(name[0]), name[1])
        PagedMemory = solution.module("serving.paged_memory").PagedMemory
        return [drive(solution, scheduler(PagedMemory(*inputs["sizes"]), 32), script) for script in inputs["scripts"]]

    def verify(inputs, got):
        for script, trace in zip(inputs["scripts"], got, strict=True):
            judge.verify(script, trace)


@case(
    task=4,
    params=[
        {"model": SMALL | {"layers": 2}, "page_size": 1, "rows": 3, "pages": 36},
        {"model": SMALL | {"layers": 2}, "page_size": 4, "rows": 3, "pages": 10},
        {"model": MULTI_QUERY, "page_size": 16, "rows": 2, "pages": 3},
        {"model": SMALL, "page_size": 64, "rows": 2, "pages": 2},
        {"model": SMALL | {"layers": 2}, "page_size": 4, "rows": 3, "pages": 10, "dtype": mx.bfloat16},
    ],
    timeout=20.0,
)
class PagedEqualsDense:
    """Logits over pages are those of the whole prefix, whatever the batches, and also in rows and pages used before."""

    def inputs(rng, model, page_size, rows, pages, dtype=mx.float32):
        inputs = model_inputs(rng, model, dtype)
        lengths = rng.integers(2, 13, 7).tolist()
        prompts = [rng.integers(0, inputs["sizes"]["vocab"], n).tolist() for n in lengths]
        sizes = {"rows": rows, "max_len": 12, "page_size": page_size, "pages": pages}
        return inputs | {"prompts": prompts, "memory": sizes, "script": play_script(rng, lengths, rows)}

    def observe(solution, inputs):
        model = PagedModel(solution, inputs, inputs["memory"])
        logits = model.play(inputs["script"])
        return {"logits": logits, "available": int(model.memory.available), "rows": int(model.memory.free_rows)}

    def verify(inputs, got):
        compare_rows(inputs, got["logits"])
        sizes = inputs["memory"]
        left = (got["available"], got["rows"])
        fail_unless(left == (sizes["pages"], sizes["rows"]), f"in the end {left} pages and rows are free, not all")


def compare_rows(inputs: dict, logits: list[mx.array]) -> None:
    """Each row of each batch against float64."""
    model, dtype = oracle(inputs), next(iter(inputs["weights"].values())).dtype
    want = [model.logits(np.array([ids]))[0] for ids in inputs["prompts"]]
    for at, (rows, x) in enumerate(zip(rows_of(inputs["script"]), logits, strict=True), 1):
        right = np.stack([want[uid][position] for uid, position in rows])
        first = {
            "each request read the pages of the first one": lambda rows=rows: np.stack(
                [want[rows[0][0]][min(p, len(want[rows[0][0]]) - 1)] for _, p in rows]
            )
        }
        what = f"the logits of batch {at}, rows (request, position) {rows[:6]}"
        close(x[: len(rows)], right, tol=TOLERANCE[dtype], dtype=dtype, what=what, suspects=first)


# Task 5: a request that does not exist

DEFAULT = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@case(
    task=5,
    params=[
        {"sizes": [1, 2, 3, 5, 8, 9, 31, 256, 257]},
        {"sizes": [1, 2, 3, 6, 7, 13, 24, 25], "ladder": [2, 6, 24]},
        {"sizes": [1, 5], "prefill": True},
    ],
)
class BatchesArePaddedToTheLadder:
    """A decode batch gets dummy steps up to the next size; a prefill and a larger batch stay as they are."""

    def inputs(rng, sizes, ladder=None, prefill=False):
        batches = []
        for n in sizes:
            starts = rng.integers(0, 30, n).tolist()
            ends = [start + 1 for start in starts]
            if prefill:
                ends[int(rng.integers(n))] += 1
            batches.append([list(step) for step in zip(starts, ends, strict=True)])
        return {"batches": batches, "ladder": ladder, "row": int(rng.integers(300, 400))}

    def observe(solution, inputs):
        request, padding = solution.module("serving.request"), solution.module("serving.padding")
        more = [] if inputs["ladder"] is None else [tuple(inputs["ladder"])]
        results, batches = [], []
        for number, steps in enumerate(inputs["batches"]):
            own = tuple(
                request.Step(request.Request(uid, [7] * 40, 1), start, end, True)
                for uid, (start, end) in enumerate(steps)
            )
            given = request.Batch(own)
            batches.append((own, given, padding.padded(given, inputs["row"] + number, *more)))
        for own, given, batch in batches:  # an engine has two of them in flight
            extra = [[step.request.row, step.start, step.end, step.samples] for step in batch.steps[len(own) :]]
            same = all(a is b for a, b in zip(own, batch.steps, strict=False))
            known = all(len(step.request.ids) >= step.end for step in batch.steps)
            result = {"own": same, "extra": extra, "sampling": len(batch.sampling), "known": known}
            results.append(result | {"given": len(given.steps) == len(own)})
        return results

    def verify(inputs, got):
        ladder = inputs["ladder"] or DEFAULT
        for dummy, steps, result in zip(count(inputs["row"]), inputs["batches"], got, strict=False):
            n, tokens = len(steps), sum(end - start for start, end in steps)
            size = min([x for x in ladder if x >= n], default=n)
            text = f"a batch of {n} steps and {tokens} tokens"
            want = size - n if tokens == n else 0
            extra = result["extra"]
            mistakes = {
                "a batch that is just full was padded too": min([x for x in ladder if x > n], default=n) - n,
                "it was padded to the largest size": ladder[-1] - n,
                "a batch beyond the ladder stays as it is": 2 * size - n,
            }
            if tokens != n:
                mistakes = {"a prefill stays as it is": size - n}
            explain(len(extra), want, f"{text} got {len(extra)} dummy steps, expected {want}", mistakes)
            fail_unless(result["own"], f"{text}: its own steps must come first and stay as they are")
            fail_unless(result["given"], f"{text}: the batch that was given was changed: nobody may see the padding")
            for row, start, end, samples in extra:
                fail_unless(row == dummy, f"{text}: a dummy step is in row {row}, not the dummy row {dummy}")
                fail_unless(
                    (start, end) == (0, 1), f"{text}: a dummy step runs {start} .. {end - 1}, expected position 0"
                )
                fail_unless(not samples, f"{text}: a dummy step chooses a token, so results belong to the wrong steps")
            fail_unless(result["sampling"] == n, f"{text}: {result['sampling']} steps choose a token, expected {n}")
            fail_unless(result["known"], f"{text}: a dummy step runs a token that its request does not have")


@case(
    task=5,
    params=[
        {"page_size": 1, "rows": 3, "pages": 36},
        {"page_size": 4, "rows": 5, "pages": 15},
        {"page_size": 16, "rows": 3, "pages": 3, "model": MULTI_QUERY},
        {"page_size": 64, "rows": 3, "pages": 3, "ladder": (4, 8)},
    ],
    timeout=20.0,
)
class PaddedEqualsUnpadded:
    """Padding changes no logits of a real row, and its lanes write to the dummy page only."""

    def inputs(rng, page_size, rows, pages, model=None, ladder=DEFAULT):
        inputs = model_inputs(rng, model or (SMALL | {"layers": 2}))
        lengths = rng.integers(2, 9, 6).tolist()
        prompts = [rng.integers(1, inputs["sizes"]["vocab"], n).tolist() for n in lengths]
        sizes = {"rows": rows, "max_len": 12, "page_size": page_size, "pages": pages}
        script = play_script(rng, lengths, rows, decode=True)
        return inputs | {"prompts": prompts, "memory": sizes, "script": script, "ladder": list(ladder)}

    def observe(solution, inputs):
        results = {}
        for name, ladder in (("padded", tuple(inputs["ladder"])), ("plain", None)):
            model = PagedModel(solution, inputs, inputs["memory"], ladder)
            logits = model.play(inputs["script"])
            pools = [[x[:-1] for x in layers] for layers in (model.pool.keys, model.pool.values)]
            results[name] = {"logits": logits, "pools": pools}
        return results

    def verify(inputs, got):
        batches = rows_of(inputs["script"])
        for rows, x in zip(batches, got["padded"]["logits"], strict=True):
            size = min([n for n in inputs["ladder"] if n >= len(rows)])
            fail_unless(len(x) == size, f"a batch of {len(rows)} ran {len(x)} rows, expected {size}")
        compare_rows(inputs, got["padded"]["logits"])
        for i, name in enumerate(("keys", "values")):
            for layer, (x, y) in enumerate(zip(got["padded"]["pools"][i], got["plain"]["pools"][i], strict=True)):
                what = (
                    f"the real pages of the {name} of layer {layer}, with and without padding: a dummy lane wrote there"
                )
                close(x, wide(y), what=what, tol=1e-5)


@case(task=5, params=[{"page_size": 1}, {"page_size": 16}], timeout=20.0)
class NobodySeesThePadding:
    """An engine with padded batches answers as one without: a dummy step has no result and no end."""

    def inputs(rng, page_size):
        seeds = rng.integers(2**31, size=5).tolist()
        scripts = [workload(int(n), max_len=40, page_size=page_size, aborts=0.0, requests=12) for n in seeds]
        return {"sizes": [7, 40, page_size, 7 * -(-40 // page_size)], "scripts": scripts}

    def observe(solution, inputs):
        PagedMemory = solution.module("serving.paged_memory").PagedMemory
        Scheduler = solution.module("serving.scheduler").Scheduler
        Engine, PaddedRunner = solution.module("serving.engine").Engine, solution.module("serving.padding").PaddedRunner

        def engine(scheduler, runner):
            return Engine(scheduler, PaddedRunner(runner, scheduler.memory.table))

        schedulers = [Scheduler(PagedMemory(*inputs["sizes"]), 64) for _ in inputs["scripts"]]
        return [drive(solution, s, script, engine) for s, script in zip(schedulers, inputs["scripts"], strict=True)]

    def verify(inputs, got):
        for script, trace in zip(inputs["scripts"], got, strict=True):
            judge.verify(script, trace)
            for batch in trace["batches"]:
                if all(end - start == 1 for _, start, end, _ in batch):
                    n = len(batch)
                    fail_unless(n in DEFAULT, f"a decode batch of {n} steps was run: that is no size of the ladder")
