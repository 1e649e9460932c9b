"""Day 1, the KV cache: concatenation, closed forms, and Qwen3 in float64 over the whole prefix are the oracles."""

from dataclasses import asdict
from itertools import pairwise, product

import mlx.core as mx
import numpy as np

from course.case import case, error_of
from course.checkpoint_files import wide
from course.checkpoints import SHAPES, Shape
from course.compare import close, same
from course.model_case import MULTI_QUERY, SMALL, TOLERANCE, config_of, model_inputs, model_of, oracle, tokens_of
from course.paths import MODELS
from course.qwen3_float64 import Qwen3Float64
from course.qwen3_mistakes import forgetful
from course.suspects import named


def rows_of(rng: np.random.Generator, shape: tuple[int, ...], dtype: mx.Dtype = mx.float32) -> list[mx.array]:
    """Keys and values of some tokens. No number is 0, so that spare room cannot pass for a row."""
    numbers = rng.uniform(1, 2, (2, *shape)) * rng.choice([-1, 1], (2, *shape))
    return [mx.array(x.astype(np.float32)).astype(dtype) for x in numbers]


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """Along the positions."""
    return np.concatenate(parts, axis=2)


def unequal(got: object, want: object, text: str) -> None:
    """Raise AssertionError with `text` where the values differ."""
    if got != want:
        raise AssertionError(text)


def explain(got: object, want: object, text: str, mistakes: dict[str, object]) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    likely = named(mistake for mistake, value in mistakes.items() if value == got)
    unequal(got, want, f"{text}\n{likely}")


def refused(got: dict[str, object], values: list[object], what: str) -> None:
    """Raise AssertionError unless `got` is a ValueError whose message holds all of `values`."""
    if got["type"] != "ValueError":
        raise AssertionError(f"{what} was not refused with a ValueError: got {got['type'] or 'no error'}")
    for value in map(str, values):
        if value not in got["message"]:
            raise AssertionError(f"the message about {what} should name {value}: {got['message']!r}")


def allocated(work) -> int:
    """The most memory in use during `work` beyond what was in use before, in bytes."""
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    work()
    return max(mx.get_peak_memory() - before, 0)


@case(
    task=1,
    params=[
        {"sizes": [1, 1, 1, 1, 1], "capacity": 2},
        {"sizes": [5, 1, 1, 3], "capacity": 4},
        {"sizes": [4, 4, 8, 1], "capacity": 4},  # each time exactly full
        {"sizes": [37], "capacity": 3},  # several doublings at once
        {"sizes": [2, 0, 3], "capacity": 1},
        {"sizes": [3], "capacity": 8, "dtype": mx.float16},
        {"sizes": [3, 9, 2], "capacity": 8, "dtype": mx.float16},
        {"sizes": [1, 6, 1], "capacity": 4, "dtype": mx.bfloat16},
        {"sizes": [200, 57, 300], "shape": (1, 1, 2)},  # the default capacity
    ],
)
class UpdateReturnsAllSoFar:
    """Each update returns exactly the keys and values of all tokens so far, in order and in their dtype."""

    def inputs(rng, sizes, shape=(2, 3, 4), capacity=None, dtype=mx.float32):
        B, H_kv, D = shape
        parts = [rows_of(rng, (B, H_kv, L, D), dtype) for L in sizes]
        return {"parts": parts, "options": {} if capacity is None else {"capacity": capacity}}

    def observe(solution, inputs):
        cache = solution.module("cache.dense").DenseCache(**inputs["options"])
        start, results = cache.offset, []
        for k, v in inputs["parts"]:
            results.append((*cache.update(k, v), cache.offset))
        return {"start": start, "results": results}

    def verify(inputs, got):
        keys = [wide(k) for k, _ in inputs["parts"]]
        values = [wide(v) for _, v in inputs["parts"]]
        unequal(got["start"], 0, f"a new cache has offset {got['start']}, not 0")
        for i, (k, v, offset) in enumerate(got["results"]):
            want = joined(keys[: i + 1]), joined(values[: i + 1])
            S = want[0].shape[2]
            unequal(offset, S, f"after update {i + 1} the offset is {offset}: {S} tokens were given")
            L = inputs["parts"][i][0].shape[2]
            if k.shape[2] > S:
                raise AssertionError(f"update {i + 1} returned {k.shape[2]} rows of which {S} are in use: spare room")
            if k.shape[2] == L < S:
                raise AssertionError(f"update {i + 1} returned {L} rows, those that are new, and not all {S} so far")
            for which, x, all_so_far, other in (("keys", k, *want), ("values", v, *want[::-1])):
                what = f"the {which} that update {i + 1} returned"
                close(x, all_so_far, tol=0.0, dtype=inputs["parts"][i][0].dtype, what=what,
                      suspects=lost_rows(all_so_far, keys[: i + 1], other))  # fmt: skip


def lost_rows(want: np.ndarray, parts: list[np.ndarray], other: np.ndarray) -> dict[str, np.ndarray]:
    """What wrong caches return after these updates, by the mistake."""
    L, S = parts[-1].shape[2], want.shape[2]
    old, new = want[:, :, : S - L], want[:, :, S - L :]
    early = want.copy()
    if L and S > L:
        early[:, :, S - L - 1 : S - 1], early[:, :, S - 1 :] = new, 0
    return {
        "keys stand where values should, or the other way round": other,
        "the older rows were lost when the buffer grew": np.concatenate([np.zeros_like(old), new], axis=2),
        "the new rows were not written": np.concatenate([old, np.zeros_like(new)], axis=2),
        "the new rows were written one position too early": early,
        "the new rows stand in front of the old ones": np.concatenate([new, old], axis=2),
    }


@case(task=1, params=[{"shape": (1, 2, 8), "capacity": 16}, {"shape": (3, 1, 4), "capacity": 1}])
class CapacityDoubles:
    """`nbytes` is what both buffers take: 0 at first, then that of the capacity, which doubles when rows do not fit."""

    def inputs(rng, shape, capacity):
        dtype = [mx.float32, mx.bfloat16][int(rng.integers(2))]
        sizes = [1] * (2 * capacity + 3) + [5 * capacity]
        parts = [rows_of(rng, (*shape[:2], L, shape[2]), dtype) for L in sizes]
        return {"parts": parts, "capacity": capacity}

    def observe(solution, inputs):
        cache = solution.module("cache.dense").DenseCache(inputs["capacity"])
        sizes = [cache.nbytes]
        for k, v in inputs["parts"]:
            cache.update(k, v)
            sizes.append(cache.nbytes)
        return sizes

    def verify(inputs, got):
        unequal(got[0], 0, f"before the first update a cache holds nothing: nbytes is {got[0]}, not 0")
        first = inputs["parts"][0][0]
        row, capacity, used = 2 * first[:, :, :1].nbytes, inputs["capacity"], 0
        for i, (k, _) in enumerate(inputs["parts"]):
            used += k.shape[2]
            while capacity < used:
                capacity *= 2
            reasons = {
                "the buffers have no spare room, so each update makes new ones": row * used,
                "only one of the two buffers was counted": row * capacity // 2,
                "the buffers grew before they were full": row * capacity * 2,
                "numbers were counted, not bytes": row * capacity // first.itemsize,
                "the capacity at the beginning was counted, not that in use": row * inputs["capacity"],
            }
            text = (
                f"nbytes is {got[i + 1]} with {used} rows of {row} bytes in use: expected {row * capacity}, which is "
                f"room for {capacity}"
            )
            explain(got[i + 1], row * capacity, text, reasons)


@case(task=1, params=[{"steps": 150}])
class NoCopyPerStep:
    """A step that finds room writes only its own rows: the buffers are copied when they double, and only then."""

    def inputs(rng, steps):
        return {"first": rows_of(rng, (2, 4, 40, 16)), "steps": [rows_of(rng, (2, 4, 1, 16)) for _ in range(steps)]}

    def observe(solution, inputs):
        cache = solution.module("cache.dense").DenseCache(32)
        mx.eval(cache.update(*inputs["first"]), inputs["steps"])
        return [allocated(lambda k=k, v=v: mx.eval(cache.update(k, v))) for k, v in inputs["steps"]]

    def verify(inputs, got):
        row = 2 * inputs["steps"][0][0].nbytes
        copies = [i for i, size in enumerate(got) if size > 24 * row]
        if len(copies) > 2:  # of 40 + 150 rows, the 65th and the 129th do not fit
            raise AssertionError(
                f"{len(copies)} of {len(got)} steps of one token took memory for more than 24 rows, the first is step "
                f"{copies[0] + 1} with {got[copies[0]]} bytes: the buffers are copied at each step"
            )


@case(
    task=1,
    params=[
        {"axis": 0, "name": "B"},
        {"axis": 1, "name": "H_kv"},
        {"axis": 3, "name": "D"},
        {"axis": None, "name": "the dtype"},
    ],
)
class RowsThatDoNotFitAreRefused:
    """Another B, H_kv, D or dtype than in the first update raises a ValueError with both, and changes nothing."""

    def inputs(rng, axis, name):
        shape = [int(n) for n in rng.permutation([2, 3, 5, 7])]
        good = [rows_of(rng, tuple(shape)) for _ in range(2)]
        if axis is None:
            wrong = [{"rows": rows_of(rng, tuple(shape), mx.float16), "values": ["float16", "float32"]}]
        else:
            sizes = (1, 11)  # rows of size 1 would broadcast
            others = [[*shape[:axis], size, *shape[axis + 1 :]] for size in sizes]
            others[1][2] = 99  # and these would not fit
            wrong = [
                {"rows": rows_of(rng, tuple(other)), "values": [size, shape[axis]]}
                for size, other in zip(sizes, others, strict=True)
            ]
        return {"good": good, "wrong": wrong, "name": name}

    def observe(solution, inputs):
        results = []
        for wrong in inputs["wrong"]:
            cache = solution.module("cache.dense").DenseCache(64)  # growing would notice what writing does not
            cache.update(*inputs["good"][0])
            error, sizes = error_of(lambda cache=cache, wrong=wrong: cache.update(*wrong["rows"])), [cache.nbytes]
            result = {"error": error, "offset": cache.offset, "after": cache.update(*inputs["good"][1])}
            results.append(result | {"sizes": [*sizes, cache.nbytes]})
        return results

    def verify(inputs, got):
        first = inputs["good"][0][0].shape[2]
        for wrong, result in zip(inputs["wrong"], got, strict=True):
            what = f"an update in which {inputs['name']} is another one"
            refused(result["error"], wrong["values"], what)
            unequal(result["offset"], first, f"a refused update moved the offset from {first} to {result['offset']}")
            room = 2 * 64 * inputs["good"][0][0][:, :, :1].nbytes
            text = f"nbytes after a refused update and after the next one: {result['sizes']}, expected {room} twice"
            unequal(result["sizes"], [room] * 2, f"{text}: the refused one changed the capacity")
            for which, x, i in (("keys", result["after"][0], 0), ("values", result["after"][1], 1)):
                want = joined([wide(part[i]) for part in inputs["good"]])
                close(x, want, tol=0.0, what=f"the {which} of an update after a refused one")


@case(task=1, params=[{"axis": axis} for axis in (0, 1, 2, 3, None)])
class KeysAndValuesMustBeAlike:
    """Keys and values of different shapes or dtypes are refused with a ValueError that names both, from the first."""

    def inputs(rng, axis):
        shape = [int(n) for n in rng.permutation([2, 3, 4, 5])]
        k, v = rows_of(rng, tuple(shape))
        if axis is None:
            return {"k": k, "v": v.astype(mx.bfloat16), "values": ["float32", "bfloat16"]}
        other = list(shape)
        other[axis] = 6
        return {"k": k, "v": rows_of(rng, tuple(other))[1], "values": [shape[axis], 6]}

    def observe(solution, inputs):
        cache = solution.module("cache.dense").DenseCache(8)
        return error_of(lambda: cache.update(inputs["k"], inputs["v"]))

    def verify(inputs, got):
        refused(got, inputs["values"], f"keys {inputs['k'].shape} with values {inputs['v'].shape} of another kind")


@case(task=1)
class CachesAreIndependent:
    """Two caches that are filled in turn hold their own rows."""

    def inputs(rng):
        return [[rows_of(rng, (1, 2, L, 3)) for L in (2, 1, 4)] for _ in range(2)]

    def observe(solution, inputs):
        DenseCache = solution.module("cache.dense").DenseCache
        caches = [DenseCache(4), DenseCache(4)]
        return [[cache.update(*part) for cache, part in zip(caches, parts, strict=True)] for parts in zip(*inputs)]  # noqa: B905

    def verify(inputs, got):
        for c, parts in enumerate(inputs):
            for i in (0, 1):
                want = joined([wide(part[i]) for part in parts])
                close(got[-1][c][i], want, tol=0.0, what=f"the {('keys', 'values')[i]} of cache {c + 1} of two")


def splits(length: int) -> list[list[int]]:
    """All ways to cut `length` into pieces, as lists of sizes: 2 ** (length - 1) of them."""
    ways = []
    for cuts in product((False, True), repeat=length - 1):
        at = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), length]
        ways.append([b - a for a, b in pairwise(at)])
    return ways


def pieces(tokens: mx.array, sizes: list[int]) -> list[mx.array]:
    ends = np.cumsum(sizes).tolist()
    return [tokens[:, end - size : end] for size, end in zip(sizes, ends, strict=True)]


@case(
    task=1,
    params=[
        {"sizes": SMALL, "B": 2, "L": 6},
        {"sizes": MULTI_QUERY, "B": 1, "L": 5},
        {"sizes": SMALL, "B": 1, "L": 5, "dtype": mx.bfloat16},
    ],
    timeout=20.0,
)
class EverySplitEqualsTheWhole:
    """A model fed in pieces scores as one fed at once, for every way to cut the prompt into pieces."""

    def inputs(rng, sizes, B, L, dtype=mx.float32):
        inputs = model_inputs(rng, sizes, dtype)
        return inputs | {"tokens": tokens_of(rng, inputs, (B, L)), "splits": splits(L)}

    def observe(solution, inputs):
        model, DenseCache = model_of(solution, inputs), solution.module("cache.dense").DenseCache
        results = []
        for sizes in inputs["splits"]:
            caches = [DenseCache(2) for _ in range(inputs["sizes"]["layers"])]
            results.append(mx.concatenate([model(part, caches) for part in pieces(inputs["tokens"], sizes)], axis=1))
        return results

    def verify(inputs, got):
        tokens, dtype = np.array(inputs["tokens"]), next(iter(inputs["weights"].values())).dtype
        want = oracle(inputs).logits(tokens)
        for sizes, logits in zip(inputs["splits"], got, strict=True):
            suspects = {
                "each piece was placed at position 0": lambda sizes=sizes: forgot(inputs, tokens, sizes, True),
                "older pieces were forgotten": lambda sizes=sizes: forgot(inputs, tokens, sizes, False),
            }
            what = f"the logits of a prompt cut into pieces of {sizes}"
            close(logits, want, tol=TOLERANCE[dtype], dtype=dtype, suspects=suspects, what=what)


def forgot(inputs: dict, tokens: np.ndarray, sizes: list[int], remembers: bool) -> np.ndarray:
    return oracle(inputs, forgetful(sizes, remembers)).logits(tokens)


# A script is a list of steps: ("update", L) or ("rewind", length).
FIXED = [
    [("update", 5), ("rewind", 2), ("update", 1)],
    [("update", 5), ("rewind", 0), ("update", 3)],
    [("update", 4), ("rewind", 4), ("update", 1)],
    [("rewind", 0), ("update", 2), ("rewind", 1), ("rewind", 1), ("update", 6)],
    [("update", 9), ("rewind", 3), ("update", 9), ("rewind", 11), ("update", 2)],
]


def script_of(rng: np.random.Generator, steps: int) -> list[tuple[str, int]]:
    script, offset = [], 0
    for _ in range(steps):
        if rng.random() < 0.6:
            script.append(("update", int(rng.integers(0, 7))))
            offset += script[-1][1]
        else:
            offset = int(rng.integers(0, offset + 1))
            script.append(("rewind", offset))
    return [*script, ("update", 2)]


@case(task=2, params=[{"capacity": 1}, {"capacity": 4}, {"capacity": 64}, {"capacity": 2, "dtype": mx.bfloat16}])
class RewindForgets:
    """After any updates and rewinds the cache holds exactly the rows that a list cut to `length` would hold."""

    def inputs(rng, capacity, dtype=mx.float32):
        scripts = FIXED + [script_of(rng, 12) for _ in range(12)]
        rows = [[rows_of(rng, (2, 1, n, 3), dtype) if step == "update" else None for step, n in s] for s in scripts]
        return {"scripts": scripts, "rows": rows, "capacity": capacity}

    def observe(solution, inputs):
        DenseCache = solution.module("cache.dense").DenseCache
        return [
            played(DenseCache(inputs["capacity"]), script, rows)
            for script, rows in zip(inputs["scripts"], inputs["rows"], strict=True)
        ]

    def verify(inputs, got):
        for script, rows, results in zip(inputs["scripts"], inputs["rows"], got, strict=True):
            held = np.zeros((2, 2, 1, 0, 3))
            for i, ((step, n), part, result) in enumerate(zip(script, rows, results, strict=True)):
                after, before = f"after {script[: i + 1]}", held.shape[3]
                if result["type"] is not None:
                    raise AssertionError(f"{after}: {result['type']}: {result['message']}")
                held = held[..., :n, :] if step == "rewind" else np.concatenate([held, stacked(part)], axis=3)
                offset, S = result["value"][0], held.shape[3]
                wrong = {"length was taken as the number of rows to drop": before - n} if step == "rewind" else {}
                explain(offset, S, f"{after} the offset is {offset}, not {S}", wrong)
                for j, x in enumerate(result["value"][1:]):
                    what = f"the {('keys', 'values')[j]} {after}"
                    close(x, held[j], tol=0.0, dtype=part[0].dtype, what=what)


def stacked(part: list[mx.array]) -> np.ndarray:
    """Keys and values in one array."""
    return np.stack([wide(x) for x in part])


def played(cache, script: list, rows: list) -> list[dict[str, object]]:
    """After each step: the offset, and after an update keys and values too; or the error."""

    def play(step: str, n: int, part: list | None) -> tuple:
        returned = cache.rewind(n) if step == "rewind" else cache.update(*part)
        return (cache.offset, *(returned or ()))

    return [error_of(lambda args=(*step, part): play(*args)) for step, part in zip(script, rows, strict=True)]


@case(task=2, params=[{"length": 3}, {"length": 0}, {"length": 9}])
class RewindMovesOnlyTheOffset:
    """A rewind keeps the buffers, sets the offset, and does not change arrays that were returned before."""

    def inputs(rng, length):
        return {"first": rows_of(rng, (1, 2, 9, 4)), "second": rows_of(rng, (1, 2, 5, 4)), "length": length}

    def observe(solution, inputs):
        cache = solution.module("cache.dense").DenseCache(4)
        before = cache.update(*inputs["first"])
        bytes_before = cache.nbytes
        cache.rewind(inputs["length"])
        offset, bytes_after = cache.offset, cache.nbytes
        mx.eval(cache.update(*inputs["second"]))
        return {"before": before, "offset": offset, "nbytes": [bytes_before, bytes_after, cache.nbytes]}

    def verify(inputs, got):
        n = inputs["length"]
        unequal(got["offset"], n, f"after rewind({n}) of 9 rows the offset is {got['offset']}, not {n}")
        sizes = got["nbytes"]
        if len(set(sizes)) > 1:
            raise AssertionError(
                f"nbytes before a rewind, after it, and with new rows: {sizes}: the buffers should stay as they are"
            )
        for i, which in enumerate(("keys", "values")):
            close(got["before"][i], wide(inputs["first"][i]), tol=0.0,
                  what=f"the {which} returned before the rewind, looked at after it")  # fmt: skip


@case(task=2)
class RewindRefusesOtherLengths:
    """A negative length, or one beyond the offset, raises a ValueError with the length, and changes nothing."""

    def inputs(rng):
        return {"rows": rows_of(rng, (1, 1, 5, 2)), "over": int(rng.integers(6, 9)), "below": -int(rng.integers(1, 5))}

    def observe(solution, inputs):
        DenseCache = solution.module("cache.dense").DenseCache
        cache, empty = DenseCache(16), DenseCache(16)
        cache.update(*inputs["rows"])
        cache.rewind(5)
        return {
            "over": error_of(lambda: cache.rewind(inputs["over"])),
            "below": error_of(lambda: cache.rewind(inputs["below"])),
            "empty": error_of(lambda: empty.rewind(1)),
            "offsets": [cache.offset, empty.offset],
        }

    def verify(inputs, got):
        refused(got["over"], [inputs["over"], 5], f"rewind({inputs['over']}) of 5 rows in buffers for 16")
        refused(got["below"], [inputs["below"]], f"rewind({inputs['below']})")
        refused(got["empty"], [1], "rewind(1) of an empty cache")
        unequal(got["offsets"], [5, 0], f"offsets after refused rewinds are {got['offsets']}, not [5, 0]")


@case(task=2, params=[{"sizes": SMALL, "B": 2}, {"sizes": MULTI_QUERY, "B": 1}])
class RewoundEqualsNeverGoneFurther:
    """A model that goes on from any rewind scores as one that was never shown the tokens forgotten."""

    def inputs(rng, sizes, B):
        inputs = model_inputs(rng, sizes)
        return inputs | {"wrong": tokens_of(rng, inputs, (B, 7)), "right": tokens_of(rng, inputs, (B, 3))}

    def observe(solution, inputs):
        model, DenseCache = model_of(solution, inputs), solution.module("cache.dense").DenseCache
        results = []
        for length in range(inputs["wrong"].shape[1] + 1):
            caches = [DenseCache(4) for _ in range(inputs["sizes"]["layers"])]
            mx.eval(model(inputs["wrong"][:, :5], caches), model(inputs["wrong"][:, 5:], caches))
            for cache in caches:
                cache.rewind(length)
            results.append(model(inputs["right"], caches))
        return results

    def verify(inputs, got):
        wrong, right = np.array(inputs["wrong"]), np.array(inputs["right"])
        logits = oracle(inputs).logits
        for length, result in enumerate(got):
            want = logits(np.concatenate([wrong[:, :length], right], axis=1))[:, length:]
            suspects = {
                "the tokens forgotten were still seen": logits(np.concatenate([wrong, right], axis=1))[:, -3:],
                "nothing was kept": logits(right),
            }
            what = f"the logits after a rewind from 7 to {length}"
            close(result, want, tol=TOLERANCE[mx.float32], suspects=suspects, what=what)


@case(task=2, params=[{"name": name} for name in (*SHAPES, "random")])
class CacheBytesIsAClosedForm:
    """Two rows of D numbers per token, KV head and layer, in the dtype given: nothing else is kept."""

    def inputs(rng, name):
        random = Shape(
            hidden=int(rng.integers(20, 90)),
            layers=int(rng.integers(3, 9)),
            heads=12,
            kv_heads=3,
            head_dim=int(rng.integers(5, 9)) * 2,
        )
        shape = SHAPES.get(name, random)
        counts = [0, 1, int(rng.integers(2, 99)), int(rng.integers(1000, 40000))]
        return {"sizes": asdict(shape), "counts": counts}

    def observe(solution, inputs):
        config, cache_bytes = config_of(solution, inputs["sizes"]), solution.module("cache.dense").cache_bytes
        dtypes = (mx.float32, mx.float16, mx.bfloat16, mx.int8)
        return [[cache_bytes(config, tokens, dtype) for tokens in inputs["counts"]] for dtype in dtypes]

    def verify(inputs, got):
        s = inputs["sizes"]
        per_token = 2 * s["layers"] * s["kv_heads"] * s["head_dim"]
        factors = {
            "only keys or only values were counted": 1 / 2,
            "query heads were counted: only KV heads are kept": s["heads"] / s["kv_heads"],
            "one layer was counted": 1 / s["layers"],
            "hidden_size was counted: a row has H_kv * D numbers": s["hidden"] / (s["kv_heads"] * s["head_dim"]),
            "hidden_size / heads was taken for head_dim": s["hidden"] // s["heads"] / s["head_dim"],
        }
        for size, row in zip((4, 2, 2, 1), got, strict=True):
            for tokens, value in zip(inputs["counts"], row, strict=True):
                want = per_token * tokens * size
                mistakes = factors | {"numbers were counted, not bytes": 1 / size, "bits were counted": 8}
                text = f"cache_bytes for {tokens} tokens of {size} bytes a number: {value}, expected {want}"
                explain(value, want, text, {mistake: want * factor for mistake, factor in mistakes.items()})
                unequal(type(value), int, f"cache_bytes returned a {type(value).__name__}: bytes are an int")


class JoinedCache:
    """A cache as simple as can be: it joins what it is given. Good for one layer and one number of sequences."""

    def __init__(self):
        self.offset, self.rows, self.sequences = 0, None, None

    def update(self, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array]:
        self.sequences = self.sequences or len(k)
        if len(k) != self.sequences:
            raise ValueError(f"B is {len(k)}, the cache was begun with {self.sequences}: another one needs new caches")
        self.rows = (k, v) if self.rows is None else tuple(map(self._append, self.rows, (k, v)))
        self.offset += k.shape[2]
        return self.rows

    def rewind(self, length: int) -> None:
        if not 0 <= length <= self.offset:
            raise ValueError(f"cannot rewind to {length}: the cache holds {self.offset} positions")
        self.rows = None if length == 0 else tuple(x[:, :, :length] for x in self.rows)
        self.offset = length

    @staticmethod
    def _append(old: mx.array, new: mx.array) -> mx.array:
        return mx.concatenate([old, new], axis=2)


class Failed(Exception):
    """What a table raises when it is told to fail."""


def recorder(solution):
    """A table of the solution's that notes what runs: `ran` per block and run, `scored` per head, `caches` in use."""

    class Recorder(solution.module("model.qwen3").Ops):
        def __init__(self):
            self.ran, self.scored, self.caches, self.fail_after = [], [], [], None

        def attend(self, q, k, v, cache=None):
            offset = None if cache is None else cache.offset
            self.ran.append((offset, q.shape[2]))
            if all(cache is not seen for seen in self.caches):
                self.caches.append(cache)
            return super().attend(q, k, v, cache)

        def mlp(self, layer, x):
            if self.fail_after is not None:
                self.fail_after -= 1
                if self.fail_after < 0:
                    raise Failed
            return super().mlp(layer, x)

        def head(self, model, x):
            self.scored.append(x.shape[:2])
            return super().head(model, x)

    return Recorder()


def cached_of(solution, inputs: dict, chunk: int = 512):
    """The solution's cached model on caches of ours, and its recorder."""
    ops = recorder(solution)
    model = model_of(solution, inputs, ops)
    return solution.module("cache.cached").CachedModel(model, JoinedCache, chunk), ops


def last_logits(inputs: dict, tokens: mx.array) -> np.ndarray:
    """(B, 1, V) of the whole prefix."""
    return oracle(inputs).logits(np.array(tokens))[:, -1:]


def dtype_of(inputs: dict) -> mx.Dtype:
    return next(iter(inputs["weights"].values())).dtype


@case(
    task=3,
    params=[
        {"sizes": SMALL, "B": 1, "L": 6, "chunk": 512},
        {"sizes": SMALL, "B": 2, "L": 6, "chunk": 2},
        {"sizes": MULTI_QUERY, "B": 3, "L": 5, "chunk": 1},
        {"sizes": SMALL, "B": 1, "L": 5, "chunk": 3, "dtype": mx.float16},
        {"sizes": SMALL, "B": 2, "L": 5, "chunk": 3, "dtype": mx.bfloat16},
    ],
    timeout=20.0,
)
class EveryWayToGrowEqualsTheFullPrefix:
    """However the prefix grows from call to call, and in chunks, each call scores as the model on the whole prefix."""

    def inputs(rng, sizes, B, L, chunk, dtype=mx.float32):
        inputs = model_inputs(rng, sizes, dtype)
        return inputs | {"tokens": tokens_of(rng, inputs, (B, L)), "splits": splits(L), "chunk": chunk}

    def observe(solution, inputs):
        results = []
        for sizes in inputs["splits"]:
            cached, _ = cached_of(solution, inputs, inputs["chunk"])
            results.append([cached(inputs["tokens"][:, :end]) for end in np.cumsum(sizes).tolist()])
        return results

    def verify(inputs, got):
        whole, dtype = oracle(inputs).logits(np.array(inputs["tokens"])), dtype_of(inputs)
        first = whole[:, :1]
        for sizes, results in zip(inputs["splits"], got, strict=True):
            for end, logits in zip(np.cumsum(sizes).tolist(), results, strict=True):
                what = f"the logits of the first {end} tokens, grown by {sizes}, in chunks of {inputs['chunk']}"
                check_shape(logits, (len(whole), 1, whole.shape[-1]), what)
                start = end - sizes[np.cumsum(sizes).tolist().index(end)]
                suspects = {
                    "the first position was scored, not the last": first,
                    "the first new position was scored, not the last": whole[:, start : start + 1],
                    "only the new tokens were seen": last_of(inputs, start, end),
                }
                want = whole[:, end - 1 : end]
                close(logits, want, tol=TOLERANCE[dtype], dtype=dtype, suspects=suspects, what=what)


def last_of(inputs: dict, start: int, end: int):
    return lambda: last_logits(inputs, inputs["tokens"][:, start:end])


def check_shape(logits: mx.array, want: tuple[int, ...], what: str) -> None:
    shape = tuple(logits.shape)
    if shape == want:
        return
    hint = ""
    if len(shape) == 3 and shape[1] > 1:
        hint = ": more than the last position was scored"
    elif shape == (want[0], want[2]):
        hint = ": the axis of positions is missing"
    raise AssertionError(f"{what} have shape {shape}, not {want}{hint}")


@case(task=3, params=[{"L": L, "chunk": chunk} for L, chunk in ((13, 5), (12, 4), (3, 8), (7, 1), (9, 8))])
class RunsInChunksAndScoresOnce:
    """A prompt runs in chunks of at most `chunk` tokens, in order, and only its last position is scored."""

    def inputs(rng, L, chunk):
        inputs = model_inputs(rng, SMALL)
        return inputs | {"tokens": tokens_of(rng, inputs, (2, L)), "chunk": chunk}

    def observe(solution, inputs):
        cached, ops = cached_of(solution, inputs, inputs["chunk"])
        cached(inputs["tokens"])
        return {"ran": ops.ran[:: inputs["sizes"]["layers"]], "scored": [list(shape) for shape in ops.scored]}

    def verify(inputs, got):
        L, chunk, sizes = inputs["tokens"].shape[1], inputs["chunk"], [size for _, size in got["ran"]]
        text = f"a prompt of {L} tokens with chunk {chunk} ran in pieces of {sizes}"
        unequal(sum(sizes), L, f"{text}: together {sum(sizes)} tokens")
        if max(sizes) > chunk:
            raise AssertionError(f"{text}: some are larger than the chunk")
        unequal(len(sizes), -(-L // chunk), f"{text}: more pieces than it takes")
        unequal(got["scored"], [[2, 1]], f"the head got (B, L) = {got['scored']}: expected [[2, 1]], the last position")


# What each call shows the model, as (last row, columns, changes); and where it has to begin. A change is (row, column)
# of a token that becomes another one; "equal" makes the second row equal to the first.
STORIES = {
    "grows": [((0, 6, []), 0), ((0, 7, []), 6), ((0, 9, []), 7)],
    "same again": [((0, 6, []), 0), ((0, 6, []), 5), ((0, 6, []), 5)],
    "shorter": [((0, 8, []), 0), ((0, 5, []), 4), ((0, 9, []), 5)],
    "changed in the middle": [((0, 8, []), 0), ((0, 10, [(0, 4)]), 4), ((0, 10, []), 4)],
    "changed at the end": [((0, 8, []), 0), ((0, 8, [(0, 7)]), 7), ((0, 9, [(0, 7)]), 8)],
    "changed at the beginning": [((0, 6, []), 0), ((0, 7, [(0, 0)]), 0), ((0, 8, [(0, 0)]), 7)],
    "one row of two changed": [((1, 7, []), 0), ((1, 9, [(1, 3)]), 3), ((1, 9, [(1, 3), (0, 5)]), 5)],
    "changed, with equal tokens behind": [((0, 9, []), 0), ((0, 9, [(0, 2)]), 2)],
    "each row changed elsewhere": [((1, 8, []), 0), ((1, 8, [(0, 6), (1, 2)]), 2)],
    "another number of rows": [((0, 6, []), 0), ((1, 7, []), 0), ((1, 8, []), 7), ((0, 8, []), 0)],
    "one of two equal rows": [((1, 6, "equal"), 0), ((0, 7, "equal"), 0), ((1, 8, "equal"), 0)],
    "a single token": [((0, 1, []), 0), ((0, 1, []), 0), ((0, 2, []), 1), ((0, 1, []), 0)],
}


@case(task=3, params=[{"story": name, "chunk": chunk} for name in STORIES for chunk in (512, 3)])
class RunsOnlyWhatIsNew:
    """A call runs what follows the prefix that all rows share with the call before, and at least one token."""

    def inputs(rng, story, chunk):
        inputs = model_inputs(rng, SMALL)
        tokens = np.array(tokens_of(rng, inputs, (2, 12)))
        calls, starts = [], []
        for (rows, columns, changes), start in STORIES[story]:
            shown = tokens[[0, 0] if changes == "equal" else [0, 1]][: rows + 1, :columns]
            for row, column in changes if changes != "equal" else []:
                shown[row, column] = (shown[row, column] + 1) % SMALL["vocab"]
            calls.append(mx.array(shown))
            starts.append(start)
        return inputs | {"calls": calls, "starts": starts, "chunk": chunk}

    def observe(solution, inputs):
        cached, ops = cached_of(solution, inputs, inputs["chunk"])
        results = []
        for tokens in inputs["calls"]:
            ops.ran.clear()
            logits = cached(tokens)
            results.append({"logits": logits, "ran": ops.ran[:: inputs["sizes"]["layers"]]})
        return results

    def verify(inputs, got):
        calls = [np.array(tokens).tolist() for tokens in inputs["calls"]]
        for i, (tokens, start, result) in enumerate(zip(inputs["calls"], inputs["starts"], got, strict=True)):
            B, L = tokens.shape
            what = f"call {i + 1} of {calls[: i + 1]}"
            kept, ran = L - sum(size for _, size in result["ran"]), result["ran"]
            text = f"{what} ran {L - kept} of {L} tokens, not {L - start}: {start} are kept in every row"
            explain(kept, start, text, wrong_starts(calls, i, start))
            unequal(ran[0][0], start, f"{what} began to run at position {ran[0][0]}, not {start}")
            check_shape(result["logits"], (B, 1, SMALL["vocab"]), f"the logits of {what}")
            close(result["logits"], last_logits(inputs, tokens), tol=TOLERANCE[mx.float32], what=f"logits of {what}")


def wrong_starts(calls: list, i: int, start: int) -> dict[str, int]:
    """Where a wrong rule begins to run in call `i`, by the mistake; those that are right here are left out."""
    new, old = calls[i], calls[i - 1] if i else [[]]
    L, n = len(new[0]), min(len(calls[i][0]), len(old[0]))
    pairs = [[a == b for a, b in zip(x, y, strict=False)] for x, y in zip(new, old, strict=False)]
    runs = [next((j for j, equal in enumerate(row) if not equal), n) for row in pairs]
    rules = {
        "nothing was left to run: the last token must run, or there are no logits": L,
        "everything was run again: nothing was kept": 0,
        "the lengths were compared, not the tokens: a changed token was not seen": min(n, L - 1),
        "only the first row was compared": min(runs[0], L - 1) if runs else 0,
        "the longest prefix of any row was kept, not the shortest": min(max(runs, default=0), L - 1),
        "all equal tokens were counted, also those after the first difference": min(
            sum(map(all, zip(*pairs, strict=False))), L - 1
        ),
        "one token too few was kept": start - 1,
    }
    return {text: value for text, value in rules.items() if value != start}


@case(task=3, params=[{"sizes": SMALL}, {"sizes": MULTI_QUERY}])
class EachLayerHasItsOwnCache:
    """`make_cache` makes the cache of each layer, and one cache serves one layer."""

    def inputs(rng, sizes):
        inputs = model_inputs(rng, sizes)
        return inputs | {"tokens": tokens_of(rng, inputs, (1, 5))}

    def observe(solution, inputs):
        cached, ops = cached_of(solution, inputs)
        cached(inputs["tokens"])
        ours = all(type(cache) is JoinedCache for cache in ops.caches)
        offsets = [cache.offset for cache in ops.caches if cache is not None]
        return {"caches": len(ops.caches), "ours": ours, "offsets": offsets}

    def verify(inputs, got):
        layers = inputs["sizes"]["layers"]
        if not got["ours"]:
            raise AssertionError("a layer ran without a cache that make_cache had made")
        unequal(
            got["caches"], layers, f"{layers} layers ran on {got['caches']} caches: each layer needs one of its own"
        )
        unequal(got["offsets"], [5] * layers, f"after 5 tokens the caches hold {got['offsets']} positions")


@case(task=3, params=[{"chunk": 3}, {"chunk": 512}], timeout=20.0)
class AFailedCallLeavesNoTrace:
    """A call that fails in any layer of any chunk does not spoil the next one."""

    def inputs(rng, chunk):
        inputs = model_inputs(rng, MULTI_QUERY)
        first, other = tokens_of(rng, inputs, (1, 6)), tokens_of(rng, inputs, (1, 4))
        # The second call goes back to 2 tokens and fails. Then either the first one goes on, or the second is repeated.
        inputs["first"], inputs["fails"] = first, mx.concatenate([first[:, :2], other], axis=1)
        inputs["then"] = [mx.concatenate([first, other], axis=1), inputs["fails"]]
        steps = inputs["sizes"]["layers"] * -(-4 // chunk)
        return inputs | {"chunk": chunk, "steps": steps}

    def observe(solution, inputs):
        results = []
        for then in inputs["then"]:
            for step in range(inputs["steps"]):
                cached, ops = cached_of(solution, inputs, inputs["chunk"])
                cached(inputs["first"])
                ops.fail_after = step
                error = error_of(lambda cached=cached: cached(inputs["fails"]))
                ops.fail_after = None
                after = error_of(lambda cached=cached, then=then: cached(then))
                results.append({"block": step + 1, "then": then, "error": error["type"], "after": after})
        return results

    def verify(inputs, got):
        for result in got:
            unequal(result["error"], "Failed", f"the error of a block came out as {result['error']}")
            after, then = result["after"], result["then"]
            what = f"the call after one that failed in block {result['block']}"
            if after["type"] is not None:
                raise AssertionError(
                    f"{what} raised {after['type']}: {after['message']}: the tokens noted are not those in the caches"
                )
            mixed = mx.concatenate([inputs["fails"], then[:, inputs["fails"].shape[1] :]], axis=1)
            suspects = {"the rows of the call that failed were taken for those kept": last_logits(inputs, mixed)}
            want = last_logits(inputs, then)
            close(after["value"], want, tol=TOLERANCE[mx.float32], suspects=suspects, what=f"the logits of {what}")


@case(task=3)
class TheCallersArrayStaysTheCallers:
    """The caller may write into its array of tokens between two calls: what was kept is compared with what was run."""

    def inputs(rng):
        inputs = model_inputs(rng, SMALL)
        return inputs | {"tokens": tokens_of(rng, inputs, (1, 6))}

    def observe(solution, inputs):
        cached, _ = cached_of(solution, inputs)
        tokens = mx.array(inputs["tokens"])
        cached(tokens)
        tokens[0, 2] = (int(tokens[0, 2]) + 1) % SMALL["vocab"]
        return {"tokens": mx.array(tokens), "logits": cached(tokens)}

    def verify(inputs, got):
        want = last_logits(inputs, got["tokens"])
        suspects = {"the caller's array was kept, so the change went unseen": last_logits(inputs, inputs["tokens"])}
        close(got["logits"], want, tol=TOLERANCE[mx.float32], suspects=suspects, what="the logits of changed tokens")


@case(task=3, params=[{"shape": shape} for shape in ((4,), (1, 0), (2, 0), (1, 2, 3))])
class TokensOfAnotherShapeAreRefused:
    """Tokens that are not (B, L) with at least one token raise a ValueError that names their shape."""

    def inputs(rng, shape):
        inputs = model_inputs(rng, SMALL)
        return inputs | {"tokens": tokens_of(rng, inputs, shape)}

    def observe(solution, inputs):
        cached, _ = cached_of(solution, inputs)
        return error_of(lambda: cached(inputs["tokens"]))

    def verify(inputs, got):
        refused(got, [inputs["tokens"].shape], f"tokens of shape {inputs['tokens'].shape}")


@case(task=3)
class GenerateRunsEachTokenOnce:
    """`generate` on a cached model gives the tokens of the full-prefix model, and runs each token once."""

    def inputs(rng):
        while True:
            inputs = model_inputs(rng, SMALL)
            tokens, margins = np.array(tokens_of(rng, inputs, (1, 5))), []
            for _ in range(8):
                logits = np.sort(oracle(inputs).logits(tokens)[0, -1])
                margins.append(logits[-1] - logits[-2])
                tokens = np.append(tokens, [[np.argmax(oracle(inputs).logits(tokens)[0, -1])]], axis=1)
            if min(margins) > 1e-3:  # far from a tie
                return inputs | {"prompt": tokens[0, :5].tolist(), "want": tokens[0, 5:].tolist()}

    def observe(solution, inputs):
        cached, ops = cached_of(solution, inputs)
        text = solution.module("text.generate")
        tokens = list(text.generate(cached, inputs["prompt"], text.greedy, max_tokens=8))
        return {"tokens": tokens, "ran": [size for _, size in ops.ran[:: inputs["sizes"]["layers"]]]}

    def verify(inputs, got):
        same(got["tokens"], inputs["want"], "the tokens generated with a cached model")
        unequal(got["ran"], [5, *[1] * 7], f"a prompt of 5 and 8 steps ran {got['ran']} tokens, not 5 and then 1 each")


@case(task=3, params=[{"chunk": 512}, {"chunk": 7}], timeout=20.0)
class TheEmbeddedModelScoresTheSame:
    """The embedded model, shown a text token by token on dense caches, scores as its full prefix does in float64."""

    def inputs(rng, chunk):
        return {"tokens": mx.array(rng.integers(0, 2048, (1, 26)).astype(np.int32)), "chunk": chunk}

    def observe(solution, inputs):
        model = solution.module("model.checkpoint").load_model(MODELS / "tiny", mx.float32)
        DenseCache = solution.module("cache.dense").DenseCache
        cached = solution.module("cache.cached").CachedModel(model, lambda: DenseCache(4), inputs["chunk"])
        return [cached(inputs["tokens"][:, :end]) for end in (17, *range(18, 27))]

    def verify(inputs, got):
        want = embedded_oracle().logits(np.array(inputs["tokens"]))
        for end, logits in zip((17, *range(18, 27)), got, strict=True):
            what = f"the logits of the first {end} tokens"
            close(logits, want[:, end - 1 : end], tol=TOLERANCE[mx.float32], what=what)


def embedded_oracle() -> Qwen3Float64:
    """The embedded model in float64."""
    weights = mx.load(str(MODELS / "tiny" / "model.safetensors"))
    shape = Shape(256, 4, 768, 4, 2, 64, 2048)
    return Qwen3Float64(shape, {name: wide(w) for name, w in weights.items()})
