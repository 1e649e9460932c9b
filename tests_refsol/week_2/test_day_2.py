"""Day 2, measure first: counting loops, closed forms and a clock that moves only when it is told are the oracles."""

import os
import statistics
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import mlx.core as mx
import numpy as np

from course.case import case, error_of
from course.checkpoint_files import safetensors
from course.checkpoints import SHAPES, Shape, random_weights
from course.model_case import config_of
from course.suspects import named

# How weights are stored: bits, bytes of an activation, group size.
FORMATS = {
    "float32": (32, 4, None),
    "bfloat16": (16, 2, None),
    "8 bits": (8, 2, 64),
    "4 bits": (4, 2, 64),
    "4 bits, small groups": (4, 4, 32),
    "4 bits, large groups": (4, 2, 128),
}
FAST = 1e-9  # relative: sums in another order


def number_bytes(form: tuple[int, int, int | None]) -> float:
    """Bytes of one weight."""
    bits, _, group = form
    return bits / 8 + (4 / group if group else 0)


def near(got: object, want: float) -> bool:
    return isinstance(got, int | float) and abs(got - want) <= FAST * abs(want)


def expect(got: object, want: float, what: str, mistakes: dict[str, float]) -> None:
    """Raise AssertionError unless `got` is `want`; the mistakes that would give `got` are named."""
    if near(got, want):
        return
    likely = named(text for text, value in mistakes.items() if near(got, value) and not near(want, value))
    raise AssertionError(f"{what}: expected {want:.10g}, got {got!r}\n{likely}")


def expect_cost(got: dict, flops: float, size: float, what: str, wrong_flops: dict, wrong_bytes: dict) -> None:
    """Both halves of a Cost."""
    expect(got["flops"], flops, f"flops of {what}", wrong_flops)
    expect(got["bytes"], size, f"bytes of {what}", wrong_bytes)


def refused(got: dict[str, object], values: list[object], what: str) -> None:
    """Raise AssertionError unless `got` is a ValueError whose message holds all of `values`."""
    if got["type"] != "ValueError":
        raise AssertionError(f"{what} was not refused with a ValueError: got {got['type'] or 'no error'}")
    for value in map(str, values):
        if value not in got["message"]:
            raise AssertionError(f"the message about {what} should name {value}: {got['message']!r}")


def sizes_of(rng: np.random.Generator, names: str, least: int = 2, most: int = 400) -> dict[str, int]:
    """A size for each name, all different."""
    chosen = rng.choice(np.arange(least, most), len(names.split()), replace=False)
    return dict(zip(names.split(), map(int, chosen), strict=True))


@case(task=1, params=[{"form": form} for form in FORMATS.values()])
class WeightBytesIncludeTheScales:
    """A weight takes its bits, and its share of the group's 16-bit scale and bias."""

    def inputs(rng, form):
        return {"form": form, "counts": [128, int(rng.integers(1, 999)) * 128]}

    def observe(solution, inputs):
        roofline = solution.module("kernels.roofline")
        precision = roofline.Precision(*inputs["form"])
        return [roofline.weight_bytes(count, precision) for count in inputs["counts"]]

    def verify(inputs, got):
        bits, activation, group = inputs["form"]
        for count, value in zip(inputs["counts"], got, strict=True):
            mistakes = {
                "bits were counted, not bytes": count * number_bytes(inputs["form"]) * 8,
                "the scales and biases were left out": count * bits / 8,
                "activations were counted": count * activation,
            }
            if group:
                mistakes |= {
                    "the scales were counted, but not the biases": count * (bits / 8 + 2 / group),
                    "scales and biases were taken to be 32-bit numbers": count * (bits / 8 + 8 / group),
                    "each weight was given a scale and a bias of its own": count * (bits / 8 + 4),
                }
            expect(value, count * number_bytes(inputs["form"]), f"weight_bytes of {count} weights", mistakes)


@case(task=1, params=[{"form": form, "rows": rows} for form in FORMATS.values() for rows in (1, None)])
class MatmulCostCountsEachByteOnce:
    """M rows through an (N, K) layer take 2MNK FLOP; inputs, outputs and weights cross the bus once."""

    def inputs(rng, form, rows):
        sizes = sizes_of(rng, "M N K")
        return {"form": form, **sizes, "M": rows or sizes["M"]}

    def observe(solution, inputs):
        roofline = solution.module("kernels.roofline")
        cost = roofline.matmul_cost(inputs["M"], inputs["N"], inputs["K"], roofline.Precision(*inputs["form"]))
        return asdict(cost)

    def verify(inputs, got):
        M, N, K = (inputs[name] for name in "MNK")
        activation, weights = inputs["form"][1], N * K * number_bytes(inputs["form"])
        size = (M * K + M * N) * activation + weights
        expect_cost(
            got, 2 * M * N * K, size, f"({M}, {K}) through a layer ({N}, {K}), stored as {inputs['form']}",
            {
                "a multiplication with its addition was counted as one": M * N * K,
                "the last addition was left out": M * N * (2 * K - 1),
                "one row was counted": 2 * N * K,
            },
            {
                "the weights were read again for each row": (M * K + M * N) * activation + M * weights,
                "the results were not written": M * K * activation + weights,
                "the inputs were not read": M * N * activation + weights,
                "only the weights were counted": weights,
                "the weights were not read": (M * K + M * N) * activation,
                "weights were counted like activations": (M * K + M * N + N * K) * activation,
                "the inputs were read again for each result": (M * K * N + M * N) * activation + weights,
            },
        )  # fmt: skip


ATTENTIONS = [
    {"B": 1, "H": 4, "H_kv": 4, "L": 1, "S": 9},  # decode
    {"B": 3, "H": 6, "H_kv": 2, "L": 1, "S": 40},
    {"B": 1, "H": 8, "H_kv": 1, "L": 12, "S": 12},  # prefill
    {"B": 2, "H": 6, "H_kv": 3, "L": 5, "S": 17},  # a chunk
    {"B": 1, "H": 2, "H_kv": 1, "L": 1, "S": 1},
    {"B": 5, "H": 16, "H_kv": 8, "L": 300, "S": 700, "D": 128},
]


@case(task=1, params=[sizes | {"form": form} for sizes in ATTENTIONS for form in FORMATS.values()][::4])
class AttentionCostIsCausal:
    """Two products over the keys that each query sees; a KV head's keys and values are read once for its group."""

    def inputs(rng, B, H, H_kv, L, S, form, D=None):
        return {"sizes": [B, H, H_kv, L, S, D or int(rng.integers(3, 40))], "form": form}

    def observe(solution, inputs):
        roofline = solution.module("kernels.roofline")
        return asdict(roofline.attention_cost(*inputs["sizes"], roofline.Precision(*inputs["form"])))

    def verify(inputs, got):
        B, H, H_kv, L, S, D = inputs["sizes"]
        flops, size = attention(B, H, H_kv, L, S, D, inputs["form"][1])
        pairs, a = flops // (4 * B * H * D), inputs["form"][1]
        queries, keys = 2 * B * H * L * D * a, 2 * B * H_kv * S * D * a
        what = f"attention of {B} x {L} queries over {S} keys, {H} heads on {H_kv}, D = {D}"
        expect_cost(
            got, flops, size, what,
            {
                "every query was given every key: attention is causal": 4 * B * H * D * L * S,
                "the queries were taken to be the first of the positions": 4 * B * H * D * L * (L + 1) // 2,
                "a query was not given its own key": 4 * B * H * D * (pairs - L),
                "only the scores were counted, not the weighted values": flops // 2,
                "a multiplication with its addition was counted as one": flops / 2,
                "KV heads were counted, not query heads": 4 * B * H_kv * D * pairs,
                "one sequence was counted": flops // B,
            },
            {
                "keys and values were read again for each query head": queries + keys * H // H_kv,
                "keys and values were read again for each query": queries + keys * L,
                "only L keys and values were read": queries + keys * L // S,
                "the results were not written": queries // 2 + keys,
                "the queries and results were left out": keys,
                "only the keys were read, not the values": queries + keys // 2,
                "the scores went through memory": size + 2 * B * H * L * S * a,
                "the keys were counted as packed weights": queries + keys / a * number_bytes(inputs["form"]),
                "one sequence was counted": size // B,
                "numbers were counted, not bytes": size // a,
            },
        )  # fmt: skip


def attention(B: int, H: int, H_kv: int, L: int, S: int, D: int, a: int) -> tuple[int, int]:
    """FLOP and bytes, counted query by query."""
    flops = 0
    for i in range(L):
        flops += 4 * B * H * D * (S - L + i + 1)
    return flops, 2 * B * (H * L + H_kv * S) * D * a


@case(task=1)
class QueriesBeyondTheContextAreRefused:
    """More queries than positions raise a ValueError with both numbers."""

    def inputs(rng):
        S = int(rng.integers(2, 50))
        return {"L": S + int(rng.integers(51, 99)), "S": S}

    def observe(solution, inputs):
        roofline = solution.module("kernels.roofline")
        precision = roofline.Precision(16, 2)
        return error_of(lambda: asdict(roofline.attention_cost(1, 2, 1, inputs["L"], inputs["S"], 8, precision)))

    def verify(inputs, got):
        refused(got, [inputs["L"], inputs["S"]], f"{inputs['L']} queries of {inputs['S']} positions")


@case(task=2, params=[{"side": side} for side in ("memory", "arithmetic", "ridge", "nothing")])
class TheSlowerClockDecides:
    """Arithmetic and memory work at once, so the time is at least that of the slower one."""

    def inputs(rng, side):
        flops, bandwidth = rng.uniform(1e9, 1e15), rng.uniform(1e9, 1e13)
        seconds = rng.uniform(1e-6, 10)
        arithmetic, memory = {
            "memory": (rng.uniform(0.1, 0.9), 1),
            "arithmetic": (1, rng.uniform(0.1, 0.9)),
            "ridge": (1, 1),
            "nothing": (0, 0),
        }[side]
        cost = {"flops": flops * seconds * arithmetic, "bytes": bandwidth * seconds * memory}
        return {"machine": {"flops": flops, "bandwidth": bandwidth}, "cost": cost}

    def observe(solution, inputs):
        roofline = solution.module("kernels.roofline")
        return roofline.lower_bound(roofline.Cost(**inputs["cost"]), roofline.Machine(**inputs["machine"]))

    def verify(inputs, got):
        a = inputs["cost"]["flops"] / inputs["machine"]["flops"]
        m = inputs["cost"]["bytes"] / inputs["machine"]["bandwidth"]
        mistakes = {
            "the two were added: they run at the same time": a + m,
            "the faster one was taken": min(a, m),
            "only arithmetic was counted": a,
            "only memory was counted": m,
        }
        expect(got, max(a, m), f"lower_bound of {a:.4g} s arithmetic and {m:.4g} s memory", mistakes)


STEPS = [
    {"B": 1, "L": 1, "S": 128, "form": FORMATS["bfloat16"]},
    {"B": 16, "L": 1, "S": 100, "form": FORMATS["4 bits"]},
    {"B": 1, "L": 64, "S": 64, "form": FORMATS["float32"]},
    {"B": 3, "L": 7, "S": 30, "form": FORMATS["8 bits"]},
]


@case(task=2, params=[{"name": name, **step} for name in ("random", "0.6b", "8b") for step in STEPS])
class ModelCostIsTheSumOfItsLayers:
    """Seven products and an attention in each layer, and the head on the last position of each sequence."""

    def inputs(rng, name, form, B, L, S):
        random = Shape(
            hidden=int(rng.integers(20, 90)),
            layers=int(rng.integers(3, 9)),
            intermediate=int(rng.integers(91, 200)),
            heads=6,
            kv_heads=3,
            head_dim=int(rng.integers(5, 9)) * 2,
            vocab=int(rng.integers(300, 900)),
        )
        return {"sizes": asdict(SHAPES.get(name, random)), "form": form, "B": B, "L": L, "S": S}

    def observe(solution, inputs):
        roofline = solution.module("kernels.roofline")
        config, precision = config_of(solution, inputs["sizes"]), roofline.Precision(*inputs["form"])
        return asdict(roofline.model_cost(config, inputs["B"], inputs["L"], inputs["S"], precision))

    def verify(inputs, got):
        step = f"B = {inputs['B']}, L = {inputs['L']}, S = {inputs['S']}"
        flops, size = whole(inputs)
        variants = {text: whole(inputs, **change) for text, change in MODEL_MISTAKES.items()}
        expect_cost(
            got, flops, size, f"a run of the model with {step}, stored as {inputs['form']}",
            {text: value[0] for text, value in variants.items()},
            {text: value[1] for text, value in variants.items()}
            | {"the weights were read again for each sequence": size + (inputs["B"] - 1) * read_weights(inputs)},
        )  # fmt: skip


MODEL_MISTAKES = {
    "the head was run on every position": {"head": "all"},
    "the head was left out": {"head": "none"},
    "one layer was counted": {"layers": "one"},
    "attention was left out": {"attend": "none"},
    "attention was counted once, not in each layer": {"attend": "once"},
    "keys and values were projected to as many heads as queries": {"kv": "H"},
    "only the new tokens were attended to, not the context": {"context": "new"},
    "the products were counted for one sequence": {"rows": "one"},
    "hidden_size / heads was taken for head_dim": {"dims": "guess"},
    "the MLP was given two matrices, not three": {"mlp": "two"},
    "the output projection was left out": {"output": "none"},
}


def whole(inputs: dict, **change: str) -> tuple[float, float]:
    """FLOP and bytes of a run, or what a mistake makes of them."""
    s, B, L, S = inputs["sizes"], inputs["B"], inputs["L"], inputs["S"]
    E, I, H, H_kv = s["hidden"], s["intermediate"], s["heads"], s["kv_heads"]  # noqa: E741
    D = E // H if "dims" in change else s["head_dim"]
    M = L if "rows" in change else B * L
    kv = H if "kv" in change else H_kv
    products = [(M, H * D, E), (M, kv * D, E), (M, kv * D, E), (M, I, E), (M, E, I)]
    products += [] if "mlp" in change else [(M, I, E)]
    products += [] if "output" in change else [(M, E, H * D)]
    layers = 1 if "layers" in change else s["layers"]
    attends = {"none": 0, "once": 1}.get(change.get("attend"), layers)
    head = {"all": [(B * L, s["vocab"], E)], "none": []}.get(change.get("head"), [(B, s["vocab"], E)])
    flops, size = attention(B, H, H_kv, L, L if "context" in change else S, D, inputs["form"][1])
    flops, size = attends * flops, attends * size
    for M, N, K in products * layers + head:
        flops += 2 * M * N * K
        size += M * (N + K) * inputs["form"][1] + N * K * number_bytes(inputs["form"])
    return flops, size


def read_weights(inputs: dict) -> float:
    """Bytes of all matrices."""
    nothing = {**inputs, "B": 0}
    return whole(nothing)[1]


@case(task=2)
class ADecodeStepReadsEveryMatrixOnce:
    """What a decode step reads besides activations and cache are the bytes of the checkpoint's matrices."""

    def inputs(rng):
        shape = Shape(hidden=int(rng.integers(20, 60)), vocab=int(rng.integers(90, 200)), tied=False)
        matrices = [w.size for name, w in random_weights(rng, shape) if w.ndim == 2 and "embed" not in name]
        return {"sizes": asdict(shape), "numbers": sum(matrices)}

    def observe(solution, inputs):
        roofline, config = solution.module("kernels.roofline"), config_of(solution, inputs["sizes"])
        wide, narrow = roofline.Precision(32, 2), roofline.Precision(16, 2)
        costs = [roofline.model_cost(config, 4, 1, 50, precision) for precision in (wide, narrow)]
        return costs[0].bytes - costs[1].bytes

    def verify(inputs, got):
        mistakes = {"the weights were read again for each sequence": 8 * inputs["numbers"]}
        expect(got, 2 * inputs["numbers"], "bytes that two more bytes a weight cost in a decode step", mistakes)


@case(task=2, params=[{"form": form} for form in FORMATS.values()])
class CrossoverIsWhereBothClocksAgree:
    """At the crossover the FLOP of M rows take as long as the bytes of the weights."""

    def inputs(rng, form):
        machines = [
            {"flops": 989e12, "bandwidth": 3.35e12},  # an H100: 295 rows in bfloat16
            {"flops": 148e12, "bandwidth": 4.0e12},  # an H20: 37
            {"flops": rng.uniform(1e10, 1e15), "bandwidth": rng.uniform(1e9, 1e13)},
        ]
        return {"form": form, "machines": machines}

    def observe(solution, inputs):
        roofline = solution.module("kernels.roofline")
        precision = roofline.Precision(*inputs["form"])
        return [roofline.crossover_batch(roofline.Machine(**machine), precision) for machine in inputs["machines"]]

    def verify(inputs, got):
        bits, activation, _ = inputs["form"]
        for machine, value in zip(inputs["machines"], got, strict=True):
            balance, weight = machine["flops"] / machine["bandwidth"], number_bytes(inputs["form"])
            mistakes = {
                "a multiplication with its addition was counted as one": balance * weight,
                "the size of a weight was left out": balance,
                "the scales and biases were left out": balance * bits / 16,
                "the bytes of an activation were taken": balance * activation / 2,
                "the ratio is upside down": 2 / (balance * weight),
            }
            expect(value, balance * weight / 2, f"crossover_batch of {machine}, stored as {inputs['form']}", mistakes)


class HandClock:
    """A clock that moves only when it is told."""

    def __init__(self):
        self.now, self.readings = 100.0, 0

    def __call__(self) -> float:
        self.readings += 1
        return self.now


@case(
    task=3,
    params=[
        {"warmup": 2, "repeats": 5},
        {"warmup": 0, "repeats": 4},  # the median of an even number
        {"warmup": 1, "repeats": 1},
        {"warmup": 3, "repeats": 2},
        {"warmup": 4, "repeats": 11},
    ],
)
class TimingIsTheMedianAndTheEnds:
    """Median, least and most of the measured runs; warm-up runs come first and are not measured."""

    def inputs(rng, warmup, repeats):
        slow = rng.uniform(50, 90, warmup)
        times = rng.uniform(1, 2, repeats)
        times[rng.integers(repeats)] *= 10  # something else ran on the machine
        return {"warmup": warmup, "repeats": repeats, "times": [*slow.tolist(), *times.tolist()]}

    def observe(solution, inputs):
        clock, left = HandClock(), list(inputs["times"])

        def work():
            if not left:
                raise AssertionError(f"work was called more than {len(inputs['times'])} times")
            clock.now += left.pop(0)

        measure = solution.module("kernels.roofline").measure
        timing = measure(work, warmup=inputs["warmup"], repeats=inputs["repeats"], clock=clock)
        return {"timing": asdict(timing), "left": len(left)}

    def verify(inputs, got):
        times = inputs["times"]
        measured = times[inputs["warmup"] :]
        calls = len(times) - got["left"]
        if got["left"]:
            raise AssertionError(
                f"work ran {calls} times: {inputs['warmup']} warm-up runs and {inputs['repeats']} measured ones"
            )
        middle = sorted(measured)
        wrong = {
            "the mean was taken, not the median": statistics.fmean(measured),
            "the warm-up runs were measured too": statistics.median(times),
            "the least was taken for the median": min(measured),
            "the most was taken for the median": max(measured),
            "the readings were not sorted": measured[len(measured) // 2],
            "the upper of the two in the middle was taken, not their mean": middle[len(middle) // 2],
            "the sum was taken": sum(measured),
            "the first run was left out": statistics.median(measured[1:] or measured),
        }
        what = f"of runs of {[round(t, 3) for t in measured]} seconds"
        expect_near(got["timing"]["median"], statistics.median(measured), f"the median {what}", wrong)
        ends = {"the warm-up runs were measured too": min(times), "least and most were swapped": max(measured)}
        expect_near(got["timing"]["least"], min(measured), f"the least {what}", ends)
        ends = {"the warm-up runs were measured too": max(times), "least and most were swapped": min(measured)}
        expect_near(got["timing"]["most"], max(measured), f"the most {what}", ends)


def expect_near(got: float, want: float, what: str, mistakes: dict[str, float]) -> None:
    """`expect`, for differences of clock readings: rounded, so that equal times are equal."""
    expect(round(got, 6), round(want, 6), what, {text: round(value, 6) for text, value in mistakes.items()})


class Tape:
    """Arrays that show when they were evaluated.

    `lazy()` is an array read from a file when it is evaluated, and each reading of the clock writes its number into
    that file. So the value is the number of the clock's last reading before the evaluation.
    """

    def __init__(self, folder: Path):
        self.path, self.count = folder / "tape.safetensors", 0
        self.path.write_bytes(safetensors({"count": mx.zeros((1,), dtype=mx.int32)}))
        self.file = os.open(self.path, os.O_WRONLY)
        self.runs: list[tuple[int, mx.array]] = []

    def clock(self) -> float:
        self.count += 1
        os.pwrite(self.file, np.int32(self.count).tobytes(), os.path.getsize(self.path) - 4)
        return float(self.count)

    def lazy(self) -> mx.array:
        """To be evaluated after something slow that was started before it."""
        mx.async_eval(mx.sort(mx.random.uniform(shape=(1 << 17,))))
        count = mx.load(str(self.path))["count"]
        self.runs.append((self.count, count))
        return count

    def seen(self) -> list[tuple[int, int]]:
        """For each run: the clock's reading when it began, and when its array was evaluated."""
        return [(began, int(count[0])) for began, count in self.runs]


@contextmanager
def tape():
    """A tape in a folder that is removed at the end."""
    with TemporaryDirectory() as folder:
        it = Tape(Path(folder))
        try:
            yield it
        finally:
            mx.synchronize()
            os.close(it.file)


SHAPES_OF_RESULTS = {
    "array": lambda x: x,
    "list": lambda x: [mx.zeros(1), x],
    "tuple": lambda x: (x, None),
    "dict": lambda x: {"a": {"b": [x]}},
}


@case(task=3, params=[{"result": name} for name in SHAPES_OF_RESULTS])
class EvaluatesInsideTheClock:
    """MLX computes when asked: the result is evaluated, and there, before the clock is read again."""

    def inputs(rng, result):
        return {"result": result, "warmup": int(rng.integers(0, 3)), "repeats": int(rng.integers(2, 4))}

    def observe(solution, inputs):
        measure, put = solution.module("kernels.roofline").measure, SHAPES_OF_RESULTS[inputs["result"]]
        with tape() as it:
            count = {"warmup": inputs["warmup"], "repeats": inputs["repeats"]}
            measure(lambda: put(it.lazy()), **count, clock=it.clock)
            return it.seen()

    def verify(inputs, got):
        measured_runs(got, inputs, "its result was not evaluated before the clock was read")
        for began, evaluated in got[: inputs["warmup"]]:
            if evaluated > began + 1:
                raise AssertionError(
                    f"a warm-up run began after reading {began} of the clock, and its result was evaluated after "
                    f"reading {evaluated}: nothing was warmed up"
                )


def measured_runs(got: list, inputs: dict, text: str) -> None:
    """Raise AssertionError with `text` if a measured run was not over at the next reading of the clock."""
    for i, (began, evaluated) in enumerate(got[inputs["warmup"] :]):
        if evaluated != began:
            raise AssertionError(
                f"measured run {i + 1} began after reading {began} of the clock and ended after reading {evaluated}: "
                f"{text}"
            )


@case(task=3)
class WaitsForWhatWasStarted:
    """What a run started and did not return is waited for: the device is idle when the clock is read again."""

    def inputs(rng):
        return {"warmup": 1, "repeats": 3}

    def observe(solution, inputs):
        measure = solution.module("kernels.roofline").measure
        ready = mx.zeros(1)
        mx.eval(ready)

        def work():
            mx.async_eval(it.lazy())
            return ready

        with tape() as it:
            measure(work, warmup=1, repeats=3, clock=it.clock)
            return it.seen()

    def verify(inputs, got):
        measured_runs(got, inputs, "what it had started was still running: nobody synchronised")


@case(task=3)
class WorkFromBeforeIsNotMeasured:
    """What was started before `measure` was called is waited for before the clock is first read."""

    def inputs(rng):
        return {"repeats": int(rng.integers(1, 3))}

    def observe(solution, inputs):
        measure = solution.module("kernels.roofline").measure
        with tape() as it:
            mx.async_eval(it.lazy())
            measure(lambda: None, warmup=0, repeats=inputs["repeats"], clock=it.clock)
            return it.seen()

    def verify(inputs, got):
        if got != [(0, 0)]:
            raise AssertionError(
                f"work started before the first reading of the clock ended after reading {got[0][1]}: it was measured"
            )


@case(task=3)
class SecondsByDefault:
    """Without a clock of the caller's, a run that sleeps 10 ms takes 0.01 s or a little more."""

    def inputs(rng):
        return {"seconds": 0.01}

    def observe(solution, inputs):
        measure = solution.module("kernels.roofline").measure
        return asdict(measure(lambda: time.sleep(inputs["seconds"]), warmup=0, repeats=3))

    def verify(inputs, got):
        for name, value in got.items():
            if not inputs["seconds"] * 0.99 <= value < 2:
                raise AssertionError(f"{name} of runs that sleep {inputs['seconds']} s is {value}: expected seconds")


@case(task=3, params=[{"warmup": 1, "repeats": 0}, {"warmup": 0, "repeats": -3}, {"warmup": -2, "repeats": 5}])
class BadCountsAreRefused:
    """Fewer than one repeat or a negative warm-up raises a ValueError with the number, before anything runs."""

    def inputs(rng, warmup, repeats):
        return {"warmup": warmup, "repeats": repeats}

    def observe(solution, inputs):
        measure, calls = solution.module("kernels.roofline").measure, []
        error = error_of(lambda: asdict(measure(lambda: calls.append(1), **inputs, clock=HandClock())))
        return {"error": error, "calls": len(calls)}

    def verify(inputs, got):
        wrong = inputs["repeats"] if inputs["repeats"] < 1 else inputs["warmup"]
        refused(got["error"], [wrong], f"a measurement with {inputs}")
        if got["calls"]:
            raise AssertionError(f"work ran {got['calls']} times before the counts were refused")
