"""Day 7, planners: exact fractions, profiles that are straight lines, pools that take their time, and brute force."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from math import ceil
from statistics import median

import numpy as np

from course.case import case
from course.cluster_case.pools import SECOND, TICK, Pools
from course.suspects import named

MS = SECOND // 1000


def explain(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got != want:
        raise AssertionError(f"{text}\n{named(m for m, value in (mistakes or {}).items() if value == got)}".strip())


def near(got: float, want: float) -> bool:
    return abs(got - want) <= 1e-9 * max(1.0, abs(want))


def compare(inputs: list, got: list, right: Callable, mistakes: dict[str, Callable], what: str) -> None:
    """Compare `right(row)` with what was got for each row; mistakes: functions of a row that explain all of it."""
    equal = near if got and isinstance(got[0], float) else lambda a, b: a == b
    for row, value in zip(inputs, got, strict=True):
        if not equal(value, right(row)):
            same = (m for m, f in mistakes.items() if all(equal(v, f(r)) for r, v in zip(inputs, got, strict=True)))
            raise AssertionError(f"{what} of {row}: got {value}, expected {right(row)}\n{named(same)}".strip())


def up(amount: Fraction) -> int:
    return max(1, ceil(amount))


# Task 1

EXAMPLES = [[360, 3000, 180, 18, 2500, 1], [360, 150, 180, 20, 75, 1], [360, 3000, 180, 30, 2500, 1]]
HAIRS = [[200, 3885, 90, 9, 3885, 1], [7860, 540, 90, 11, 1441, 6], [3600, 2766, 180, 11, 1383, 2]]
"""Whole numbers of workers, which float arithmetic misses by a hair."""


def amount(row: list[int]) -> Fraction:
    requests, tokens, seconds, _, rate, gpus = row
    return Fraction(requests * tokens, seconds * rate * gpus)


@case(task=1)
class ReplicasAreExact:
    """Workers are what is asked for over what one gives, rounded up; a correction counts below 1 only."""

    def inputs(rng):
        rows = [[*row] for row in (*EXAMPLES, *HAIRS, [0, 3000, 180, 20, 2500, 1])]
        for _ in range(80):
            seconds, rate, gpus = (int(rng.integers(a, b)) for a, b in ((30, 300), (50, 4000), (1, 9)))
            tokens = int(rng.integers(1, 9000))
            rows.append([int(rng.integers(1, 5000)), tokens, seconds, int(rng.integers(1, 45)), rate, gpus])
            rows.append([seconds * int(rng.integers(1, 9)), rate * gpus, seconds, 20, rate, gpus])  # a whole number
        return rows

    def observe(solution, inputs):
        planner = solution.module("cluster.planner")
        got = []
        for requests, tokens, seconds, twentieths, rate, gpus in inputs:
            ours = [float(requests), float(tokens), float(seconds)]
            of = [gpus] if gpus > 1 else []
            prefill = planner.prefill_replicas(*ours, twentieths / 20, float(rate), *of)
            got.append([prefill, planner.decode_replicas(*ours, float(rate), *of)])
        return got

    def verify(inputs, got):
        p = lambda row: Fraction(row[3], 20)  # noqa: E731
        compare(inputs, [prefill for prefill, _ in got], lambda row: up(amount(row) * min(1, p(row))), {
            "a correction above 1 is queueing, and was counted": lambda row: up(amount(row) * p(row)),
            "the correction was not counted": lambda row: up(amount(row)),
            "the correction counts only above 1": lambda row: up(amount(row) * max(1, p(row))),
            "the GPUs of a worker were forgotten": lambda row: up(amount(row) * row[5] * min(1, p(row))),
            "rounded down": lambda row: max(1, int(amount(row) * min(1, p(row)))),
            "one more than enough": lambda row: int(amount(row) * min(1, p(row))) + 1,
            "9.0000000001 are 9 workers, with a rounding error": lambda row: max(
                1, ceil(row[0] * row[1] / row[2] * min(1.0, row[3] / 20) / row[4] / row[5])),
            "nobody came, and yet one worker must be left": lambda row: ceil(amount(row) * min(1, p(row))),
        }, "prefill workers for (requests, tokens, seconds, twentieths of p, rate, gpus)")  # fmt: skip
        compare(inputs, [decode for _, decode in got], lambda row: up(amount(row)), {
            "the GPUs of a worker were forgotten": lambda row: up(amount(row) * row[5]),
            "rounded down": lambda row: max(1, int(amount(row))),
            "one more than enough": lambda row: int(amount(row)) + 1,
            "nobody came, and yet one worker must be left": lambda row: ceil(amount(row)),
        }, "decode workers for (requests, tokens, seconds, -, rate, gpus)")  # fmt: skip


BATCHES, CONTEXTS = [1, 2, 4, 8, 16, 32], [256, 1024, 4096]


def table_of(rng) -> list[list[float]]:
    """Step times in ns that rise with both, so that the best batch is not always the largest that is fast enough."""
    rise = np.cumsum(rng.uniform(0.5, 12, (3, 6)) * np.array([1, 1, 2, 4, 8, 16]), axis=1)
    return (MS * np.cumsum(4 + rise, axis=0)).tolist()


def blended(table: list, context: float) -> list[float]:
    """The row of a context between those of the table."""
    i = 0 if context <= CONTEXTS[1] else 1
    share = min(max((context - CONTEXTS[i]) / (CONTEXTS[i + 1] - CONTEXTS[i]), 0.0), 1.0)
    return [a + (b - a) * share for a, b in zip(table[i], table[i + 1], strict=True)]


def best_rate(
    at: dict, query: list, blend=blended, itl=True, memory=True, per_gpu=True, least=0, largest=False, edges=(0, 0)
) -> float:
    context, target = query
    row = blend(at["itl"], context)
    fit = [
        j
        for j, batch in enumerate(BATCHES)
        if (not itl or row[j] + edges[0] <= target) and (not memory or batch * context + edges[1] <= at["kv_tokens"])
    ]
    rates = [BATCHES[j] * SECOND / row[j] for j in fit or [least]]
    return (rates[-1] if largest else max(rates)) / (at["gpus"] if per_gpu else 1)


@case(task=1, params=[{"gpus": 1}, {"gpus": 4}])
class TheBestRateUnderATarget:
    """The best rate is that of the best batch whose step is fast enough and whose context fits into the memory."""

    def inputs(rng, gpus):
        table = table_of(rng)
        times = sorted(value for row in table for value in row)
        queries = [[float(rng.uniform(100, 5000)), times[i % 18] * float(rng.uniform(0.9, 1.1))] for i in range(54)]
        exact = [[float(CONTEXTS[0]), time] for time in table[0]]  # a step takes just as long as it may
        full = [[40_000 / batch, time * SECOND] for batch in (8, 16, 32) for time in (1, 2)]  # just fits
        return {"itl": table, "gpus": gpus, "kv_tokens": 40_000, "queries": queries + exact + full}

    def observe(solution, inputs):
        profile_of = solution.module("cluster.profile").Profile
        ours = profile_of([1, 2], [1, 2], CONTEXTS, BATCHES, inputs["itl"], inputs["kv_tokens"], 1, inputs["gpus"])
        return [float(ours.decode_rate(context, target)) for context, target in inputs["queries"]]

    def verify(inputs, got):
        nearest = lambda table, c: table[min(range(3), key=lambda i: abs(CONTEXTS[i] - c))]  # noqa: E731
        compare(inputs["queries"], got, lambda q: best_rate(inputs, q), {
            "the KV memory was forgotten": lambda q: best_rate(inputs, q, memory=False),
            "the target was forgotten": lambda q: best_rate(inputs, q, itl=False),
            "the context was not interpolated": lambda q: best_rate(inputs, q, blend=nearest),
            "the rate of a worker was taken, not that of a GPU": lambda q: best_rate(inputs, q, per_gpu=False),
            "the largest batch was taken, not the best rate": lambda q: best_rate(inputs, q, largest=True),
            "if nothing meets the target, the smallest batch comes nearest": lambda q: best_rate(inputs, q, least=-1),
            "a step that takes just as long as it may is fast enough": lambda q: best_rate(inputs, q, edges=(1e-6, 0)),
            "what just fits into the memory does fit": lambda q: best_rate(inputs, q, edges=(0, 1e-6)),
        }, "tokens per second and GPU at (context, ns of a step)")  # fmt: skip


A, B, C, D, E = 8.0 * MS, 0.02 * MS, 5.0 * MS, 0.00002 * MS, 0.05 * MS
"""A profile of straight lines: a prompt takes A + B * tokens, a decode step C + D * batch * context + E * batch."""


def ttft_of(length: float) -> float:
    return A + B * length


def itl_of(context: float, batch: float) -> float:
    return C + D * batch * context + E * batch


def straight(solution, prefill_gpus: int = 1, decode_gpus: int = 1):
    """That profile, as the package's."""
    contexts, batches = [0, 100_000], [0.01, *range(1, 65)]
    itl = [[itl_of(context, batch) for batch in batches] for context in contexts]
    profile_of = solution.module("cluster.profile").Profile
    lengths = [1, 100_000]
    ttft = [ttft_of(n) for n in lengths]
    return profile_of(lengths, ttft, contexts, batches, itl, 10**9, prefill_gpus, decode_gpus)


def straight_rate(context: float, itl: float) -> float:
    """The best rate of that profile: it rises with the batch, so the largest that is fast enough."""
    fit = [n for n in range(1, 65) if itl_of(context, n) <= itl]
    batch = fit[-1] if fit else 0.01
    return batch * SECOND / itl_of(context, batch)


STARTING = 3
"""Decode workers that do not serve yet."""


def seen_of(solution, traffic: dict, decode: int = 1):
    parts = solution.module("cluster.observation")
    pools = Pools({"prefill": 1, "decode": decode})
    pools.scale({"decode": decode + STARTING})
    return parts.Observation(parts.Traffic(**traffic), pools.seen(parts))


def traffic_of(rng, empty: bool = False) -> dict:
    """An interval; the ITL between half of the profile's and three times as much."""
    if empty:
        return {"duration": 180 * SECOND}
    length, output = float(rng.integers(200, 9000)), float(rng.integers(20, 900))
    return {
        "duration": int(rng.integers(60, 200)) * SECOND,
        "requests": int(rng.integers(1, 300)),
        "input_length": length,
        "output_length": output,
        "ttft": ttft_of(length) * float(rng.uniform(0.5, 3)),
        "itl": itl_of(length + output / 2, 16) * float(rng.uniform(0.5, 3)),
        "hit_rate": float(rng.uniform(0, 0.9)),
    }


def corrections(
    history: list, context=lambda t: t["input_length"] + t["output_length"] / 2, split=True, invert=False, more=0
) -> list[float]:
    """p and d after some (traffic, decode engines); where nothing was seen they stay."""
    p, d = 1.0, 1.0
    for traffic, engines in history:
        if "ttft" in traffic:
            p = traffic["ttft"] / ttft_of(traffic["input_length"])
            p = 1 / p if invert else p
        if "itl" in traffic and "output_length" in traffic and engines + more:
            share = engines + more if split else 1
            batch = traffic["requests"] / traffic["duration"] * traffic["output_length"] * traffic["itl"] / share
            d = traffic["itl"] / itl_of(context(traffic), min(max(batch, 0.01), 64))
            d = 1 / d if invert else d
    return [p, d]


PARTS = ("ttft", "itl", "output_length")
"""Means that an interval may lack."""


@case(task=1)
class CorrectionsCompareWithTheProfile:
    """p and d are observed over profiled TTFT and ITL, at Little's batch; what was not seen changes nothing."""

    def inputs(rng):
        histories = []
        for i in range(12):
            engines = int(rng.integers(2, 6))
            histories.append([[traffic_of(rng), engines], *([[traffic_of(rng, empty=True), engines]] * (i % 3 == 0))])
        for name in PARTS:
            lacks = {key: value for key, value in traffic_of(rng).items() if key != name}
            histories.append([[traffic_of(rng), 2], [lacks, 3]])
        return [*histories, [[traffic_of(rng), 2], [traffic_of(rng), 0]]]

    def observe(solution, inputs):
        planner, objective = solution.module("cluster.planner"), solution.module("cluster.goodput").Objective
        got = []
        for history in inputs:
            ours = planner.ClassicPlanner(straight(solution), objective(ttft=10**9, tpot=30 * MS))
            for traffic, engines in history:
                ours.learn(seen_of(solution, traffic, engines))
            demand = ours.demand.next()
            found = [ours.prefill_correction, ours.decode_correction, demand.input_length, demand.requests]
            got.append(list(map(float, found)))
        return got

    def verify(inputs, got):
        for column, name in enumerate(("p", "d")):
            compare(inputs, [row[column] for row in got], lambda h, c=column: corrections(h)[c], {
                "an empty interval was taken for one without delay": lambda h, c=column: (
                    [1.0, 1.0] if "input_length" not in h[-1][0] else corrections(h)
                )[c],
                "profiled over observed": lambda h, c=column: corrections(h, invert=True)[c],
                "the batch was not shared by the decode engines": lambda h, c=column: corrections(h, split=False)[c],
                "engines that do not serve yet share nothing": lambda h, c=column: corrections(h, more=STARTING)[c],
                "what was not seen stays as it was": lambda h, c=column: (
                    corrections([each for each in h if "input_length" in each[0]][-1:]))[c],
                "one mean is missing, and the other is there": lambda h, c=column: corrections(
                    [[t, n] for t, n in h if {*PARTS} <= {*t} and n])[c],
                "the context of the last token": lambda h, c=column: corrections(
                    h, context=lambda t: t["input_length"] + t["output_length"])[c],
                "the context of the prompt": lambda h, c=column: corrections(h, lambda t: t["input_length"])[c],
            }, f"{name} after (traffic, decode engines)")  # fmt: skip
        lengths = [next(t["input_length"] for t, _ in reversed(h) if "input_length" in t) for h in inputs]
        explain([row[2] for row in got], lengths, "learn did not tell the forecast of the demand")
        rates = lambda history: history[-1][0].get("requests", 0) * SECOND / history[-1][0]["duration"]  # noqa: E731
        compare(inputs, [row[3] for row in got], rates, {
            "the forecast was not told of an interval in which nobody came": lambda h: rates(
                [each for each in h if "requests" in each[0]]),
        }, "requests per second that are forecast after (traffic, decode engines)")  # fmt: skip


def workers(row: dict, p=None, rate_itl=None, new=None, context=None) -> dict[str, int]:
    """Prefill and decode workers of the straight profile, for a demand."""
    requests, length, output, target = (row[name] for name in ("requests", "input", "output", "target"))
    new = row.get("new", length) if new is None else new
    context = length + output / 2 if context is None else context
    prefill = requests * ttft_of(new) / SECOND * (1.0 if p is None else p)
    decode = requests * output / straight_rate(context, target if rate_itl is None else rate_itl)
    return {"prefill": up(Fraction(round(prefill, 7))), "decode": up(Fraction(round(decode, 7)))}


def demand_of(rng) -> dict:
    return {
        "requests": float(rng.uniform(5, 400)),
        "input": float(rng.integers(200, 9000)),
        "output": float(rng.integers(20, 900)),
        "hits": float(rng.choice([0, 0.3, 0.9])),
        "observed": float(rng.choice([0.4, 0.9, 1.4, 2.5])),
        "target": float(rng.uniform(8, 40)) * MS,
        "gpus": [int(rng.integers(1, 5)), int(rng.integers(1, 5))],
    }


@case(task=1)
class TheClassicPlannerCorrects:
    """Prefill workers are scaled by p, but never up; decode workers are counted at the ITL target divided by d."""

    def inputs(rng):
        rows = [demand_of(rng) | {"p": float(rng.uniform(0.5, 2)), "d": float(rng.uniform(0.6, 2))} for _ in range(40)]
        return [row | {"new": row["input"] * float(rng.uniform(0.1, 1))} for row in rows]

    def observe(solution, inputs):
        planner, objective = solution.module("cluster.planner"), solution.module("cluster.goodput").Objective
        got = []
        for row in inputs:
            ours = planner.ClassicPlanner(straight(solution, *row["gpus"]), objective(ttft=10**9, tpot=row["target"]))
            ours.prefill_correction, ours.decode_correction = row["p"], row["d"]
            demand = planner.Demand(*(row[name] for name in ("requests", "input", "output", "hits")))
            counts = ours.replicas(demand, row["new"])
            got.append({name: int(count) for name, count in counts.items()})
        return got

    def verify(inputs, got):
        right = lambda r: workers(r, min(1.0, r["p"]), r["target"] / r["d"])  # noqa: E731
        compare(inputs, got, right, {
            "a correction above 1 is queueing, and was counted": lambda r: workers(r, r["p"], r["target"] / r["d"]),
            "the ITL target was not corrected": lambda r: workers(r, min(1.0, r["p"])),
            "the ITL target was multiplied by d": lambda r: workers(r, min(1.0, r["p"]), r["target"] * r["d"]),
            "d was not counted below 1": lambda r: workers(r, min(1.0, r["p"]), r["target"] / max(1.0, r["d"])),
            "cached tokens were counted": lambda r: right(r | {"new": r["input"]}),
            "a worker's rate is that for prompts of `new` tokens": lambda r: right(r) | {"prefill": up(Fraction(round(
                r["requests"] * r["new"] / r["input"] * ttft_of(r["input"]) / SECOND * min(1.0, r["p"]), 7)))},
            "the context of the prompt": lambda r: workers(
                r, min(1.0, r["p"]), r["target"] / r["d"], context=r["input"]),
            "the context of the last token": lambda r: workers(
                r, min(1.0, r["p"]), r["target"] / r["d"], context=r["input"] + r["output"]),
        }, "workers for")  # fmt: skip


TTFT = 500 * MS


def later(row: dict, hits=True, missed=True, observed=False, pick=max) -> dict[str, int]:
    new = max(1.0, row["input"] * (1 - row["hits"])) if hits else row["input"]
    counts, times = workers(row, new=new), row["observed"] if observed else ttft_of(new) / row["ttft"]
    if missed and times > 1:
        counts["prefill"] = pick(counts["prefill"], ceil(times))
    return counts


@case(task=1)
class TheLaterPlannerCountsWhatIsNew:
    """Cached tokens cost no prefill worker; a prompt that takes n times the TTFT target asks for n of them at least."""

    def inputs(rng):
        rows = [demand_of(rng) for _ in range(40)]
        for i, row in enumerate(rows):
            row["requests"] = float(rng.integers(1, 3000)) / 100 if i % 2 else 0.02
            row["hits"], row["ttft"] = [0.0, 0.4, 0.95, 1.0][i % 4], TTFT / [1, 5, 25, 100][i // 4 % 4]
        return rows

    def observe(solution, inputs):
        planner, objective = solution.module("cluster.planner"), solution.module("cluster.goodput").Objective
        got = []
        for row in inputs:
            ours = planner.ThroughputPlanner(
                straight(solution, *row["gpus"]), objective(ttft=row["ttft"], tpot=row["target"])
            )
            half = planner.ThroughputPlanner(straight(solution), objective(ttft=row["ttft"], tpot=row["target"]))
            half.learn(seen_of(solution, {"duration": SECOND, "requests": 3, "input_length": row["input"]}))
            empty = ours.targets() | half.targets()
            traffic = {"duration": 100 * SECOND, "requests": round(row["requests"] * 100)}
            traffic |= {"input_length": row["input"], "output_length": row["output"], "hit_rate": row["hits"]}
            ours.learn(seen_of(solution, traffic | {"ttft": row["ttft"] * row["observed"], "itl": 40.0 * MS}))
            got.append([dict(empty), {name: int(count) for name, count in ours.targets().items()}])
        return got

    def verify(inputs, got):
        explain([empty for empty, _ in got], [{}] * len(got), "no answer was seen yet: expected {}")
        compare(inputs, [counts for _, counts in got], later, {
            "cached tokens were counted": lambda r: later(r, hits=False),
            "a target that cannot be met asks for more prefill workers": lambda r: later(r, missed=False),
            "the observed TTFT was taken: in a queue it has no bound": lambda r: later(r, observed=True),
            "the workers for it were added, not the larger taken": lambda r: later(r, pick=lambda a, b: a + b),
        }, "workers for")  # fmt: skip


# Task 2


def theil_sen(points: list, middle=median, bounded=True) -> list[float] | None:
    slopes = [(y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1 :] if x1 != x2]
    if not points:
        return None
    if not slopes:  # one load only: through the origin
        slopes = [y / x if x else 0.0 for x, y in points]
    slope = max(0.0, middle(slopes)) if bounded else middle(slopes)
    return [median([y - slope * x for x, y in points]), slope]


def least_squares(points: list) -> list[float] | None:
    if len({x for x, _ in points}) < 2:
        return None
    slope, base = np.polyfit(*np.array(points).T, 1)
    return [float(base), float(slope)]


def alike(got: list[float] | None, want: list[float] | None) -> bool:
    if got is None or want is None:
        return got is want
    return all(abs(a - b) <= 1e-6 * max(1.0, abs(b)) for a, b in zip(got, want, strict=True))


@case(task=2)
class ALineThroughOutliers:
    """The line is Theil and Sen's: some samples, however wrong, do not bend it, and it never falls."""

    def inputs(rng):
        sets = []
        for i in range(12):
            xs = rng.integers(0, 60 if i % 2 else 6, 24).astype(float)
            ys = 50 + 3 * xs + rng.normal(0, 1, 24)
            ys[: i % 7] *= rng.uniform(5, 60)
            sets.append([[float(x), float(y)] for x, y in zip(xs, ys, strict=True)])
        one_load = [[[3.0, 6.0]], [[4.0, 8.0], [4.0, 9.0], [4.0, 12.0]], [[0.0, 5.0], [0.0, 7.0]]]
        return [*sets, [], *one_load, [[1.0, 9.0], [2.0, 7.0], [5.0, 2.0]]]

    def observe(solution, inputs):
        fit = solution.module("cluster.regression").fit
        lines = [fit([(x, y) for x, y in points]) for points in inputs]
        return [None if line is None else [float(line.base), float(line.slope)] for line in lines]

    def verify(inputs, got):
        for points, line in zip(inputs, got, strict=True):
            want = theil_sen(points)
            mistakes = {
                "least squares: one wrong sample bends it": least_squares(points),
                "the mean was taken, not the median": theil_sen(points, lambda v: sum(v) / len(v)),
                "points of one load do have a line, through the origin": theil_sen(points)
                and [None, [median(y for _, y in points), 0.0]][line is not None],
                "more load never takes less time: a slope below 0 counts as 0": theil_sen(points, bounded=False),
            }
            if not alike(line, want):
                text = f"[base, slope] through {points[:4]}... is {line}, expected {want}"
                raise AssertionError(
                    f"{text}\n{named(m for m, value in mistakes.items() if alike(line, value))}".strip()
                )


@case(task=2)
class ColdSamplesAreLeftOut:
    """What an engine did before it has served for the warm-up is no sample."""

    def inputs(rng):
        warm = int(rng.integers(2, 60)) * SECOND
        ages = [0, 1, warm - 1, warm, warm + 1, warm // 2, 2 * warm, 50 * warm, 3 * warm, warm + 2]
        return {"warm_up": warm, "ages": [ages[i] for i in rng.permutation(10)]}

    def observe(solution, inputs):
        ours = solution.module("cluster.regression").Regression(inputs["warm_up"], window=4, least=1)
        for load, age in enumerate(inputs["ages"]):
            ours.add(age, float(load), 100.0 + load)
        return [[float(load), float(time)] for load, time in ours.points]

    def verify(inputs, got):
        warm, loads = inputs["warm_up"], range(10)
        kept = lambda keep: [[float(i), 100.0 + i] for i in loads if keep(inputs["ages"][i])][-4:]  # noqa: E731
        explain(got, kept(lambda age: age >= warm), f"samples kept of ages {inputs['ages']} with a warm-up of {warm}", {
            "samples of a cold engine were taken": kept(lambda age: True),
            "one at the end of the warm-up is warm": kept(lambda age: age > warm),
            "the warm samples were left out": kept(lambda age: age < warm),
            "the newest samples are kept, not the oldest": [
                [float(i), 100.0 + i] for i in loads if inputs["ages"][i] >= warm][:4],
        })  # fmt: skip


@case(task=2)
class VotesPutTogether:
    """Up if one role asks for it, down if all do; without a vote, or else, it stays."""

    def inputs(rng):
        return [list(votes) for n in range(3) for votes in product((-1, 0, 1), repeat=n)]

    def observe(solution, inputs):
        vote = solution.module("cluster.vote")
        return [int(vote.combined(vote.Vote(v) for v in votes)) for votes in inputs]

    def verify(inputs, got):
        compare(inputs, got, lambda v: 1 if 1 in v else -1 if v and set(v) == {-1} else 0, {
            "up only if all ask for it": lambda v: 1 if v and set(v) == {1} else -1 if v and set(v) == {-1} else 0,
            "one vote down is not enough": lambda v: 1 if 1 in v else -1 if -1 in v else 0,
            "the votes were added up": lambda v: max(-1, min(1, sum(v))),
            "a pool without any vote stays": lambda v: 1 if 1 in v else -1 if set(v) <= {-1} else 0,
        }, "one vote out")  # fmt: skip


BASE, SLOPE, FULL = 20.0 * MS, 0.05 * MS, 4096
"""Lines of the engines of the load planner, and the prompt tokens of a full batch."""
SENSITIVITY, MOST, TOTAL, ITL = 0.8, 0.9, 1000, 40.0 * MS


def samples(solution, kind: str, count: int, slope: float) -> tuple:
    """Warm steps that lie on the line exactly; of decode steps the slope can be another."""
    sample = solution.module("cluster.observation").StepSample
    loads = [100 * (1 + i) for i in range(count)]
    age = 600 * SECOND
    if kind == "prefill":
        return tuple(sample(age, n, 5, BASE + SLOPE * n) for n in loads)
    return tuple(sample(age, 0, n, BASE / 4 + slope * n) for n in loads)


def load_planner(solution, prompt: float = 1000.0, hits: float = 0.0, count: int = 10, slope: float = SLOPE):
    """One that has learned the lines."""
    parts, objective = solution.module("cluster.observation"), solution.module("cluster.goodput").Objective
    ours = solution.module("cluster.load_planner").LoadPlanner(
        objective(ttft=TTFT, tpot=ITL), SENSITIVITY, MOST, FULL, 30 * SECOND
    )
    pools = {
        kind: parts.PoolLoad(1, 0, 0, (parts.EngineLoad(kind, samples=samples(solution, kind, count, slope)),))
        for kind in ("prefill", "decode")
    }
    ours.learn(parts.Observation(parts.Traffic(5 * SECOND, 3, prompt, 50.0, hit_rate=hits), pools))
    return ours


def prompt_time(tokens: float) -> float:
    return BASE * ceil(tokens / FULL) + SLOPE * tokens


def queue_vote(
    row: dict, some=all, own=True, more=True, share=SENSITIVITY, last=False, full=True, edge=0, apart=True
) -> int:
    """Up, stay or down of queues, by the rule or by a wrong one."""
    queues, count = row["queues"], len(row["queues"])
    new = row["prompt"] * (1 - row["hits"])
    mine = (prompt_time(new) if full else BASE + SLOPE * new) if own else 0.0
    waits = [prompt_time(q) + mine if apart else prompt_time(q + new) for q in queues]
    if some(wait + edge > TTFT for wait in waits):
        return 1
    if count == 1 and not last:
        return 0
    grow = count / max(count - 1, 1) if more else 1
    return -1 if all(prompt_time(q * grow) < (TTFT - mine) * share for q in queues) else 0


@case(task=2)
class QueuesDecideOnPrefill:
    """One more prefill worker if every engine would miss the TTFT, one less if N-1 of them would surely meet it."""

    def inputs(rng):
        rows = []
        for _ in range(150):
            top, count = int(rng.choice([200, 4000, 8000, 12_000])), int(rng.integers(1, 5))
            queues = rng.integers(0, top, count).tolist()
            low = int(rng.choice([0, top // 2]))
            hits = float(rng.choice([0, 0.5]))
            rows.append(
                {"queues": [max(q, low) for q in queues], "prompt": float(rng.integers(20, 5000)), "hits": hits}
            )
        rows += [{"queues": [int(q)], "prompt": 4200.0, "hits": 0.0} for q in rng.integers(4300, 5300, 9)]
        just = [{"queues": [6800] * n, "prompt": 2000.0, "hits": 0.0} for n in (1, 2)]  # takes just as long as it may
        return rows + just

    def observe(solution, inputs):
        parts = solution.module("cluster.observation")
        got = []
        for row in inputs:
            engines = tuple(parts.EngineLoad(str(i), queued_tokens=q) for i, q in enumerate(row["queues"]))
            got.append(int(load_planner(solution, row["prompt"], row["hits"]).prefill(engines)))
        few = load_planner(solution, count=3).prefill((parts.EngineLoad("0", queued_tokens=10**6),))
        return {"votes": got, "few": int(few)}

    def verify(inputs, got):
        explain(got["few"], 0, f"after three samples there is no line, and the vote was {got['few']}: expected 0")
        compare(inputs, got["votes"], queue_vote, {
            "up if any engine is late: a router can use the others": lambda r: queue_vote(r, some=any),
            "the prompt's own time was forgotten": lambda r: queue_vote(r, own=False),
            "a prompt that takes two batches has the line's base twice": lambda r: queue_vote(r, full=False),
            "what takes just as long as the TTFT does not miss it": lambda r: queue_vote(r, edge=1),
            "queue and prompt are two times to add: each has batches of its own": lambda r: queue_vote(r, apart=False),
            "the load of the one that goes was forgotten, N/(N-1)": lambda r: queue_vote(r, more=False),
            "no room was kept, the sensitivity": lambda r: queue_vote(r, share=1.0),
            "the last worker was taken away": lambda r: queue_vote(r, last=True),
        }, "the vote")  # fmt: skip


@case(task=2, params=[{"steep": True}, {"steep": False}])
class MemoryDecidesOnDecode:
    """One more decode worker if every step is too slow, one less if N-1 would have both the time and the memory.
    Where steps get slow slowly, the memory ends first."""

    def inputs(rng, steep):
        most = 700 if steep else 1400
        rows = []
        for _ in range(150):
            low = int(rng.choice([0, 0, 500]))
            count, top = int(rng.integers(1, 5)), int(rng.choice([200, 500, 900, most]))
            draw = lambda n: int(rng.integers(0, n))  # noqa: E731
            rows.append([[max(draw(max(top, low + 1)), low), draw(300) * draw(2)] for _ in range(count)])
        rows += [[[450, 0]] * 2, [[500, 100]] * 3, [[700, 0]]]  # one less fills 0.9 of the memory; 40 ms
        return {"rows": rows, "slope": 1.0 if steep else 0.4}

    def observe(solution, inputs):
        parts, ours = solution.module("cluster.observation"), load_planner(solution, slope=SLOPE * inputs["slope"])
        got = []
        for row in inputs["rows"]:
            loads = [{"kv_used": used, "kv_queued": waits, "kv_total": TOTAL} for used, waits in row]
            got.append(int(ours.decode(tuple(parts.EngineLoad(str(i), **load) for i, load in enumerate(loads)))))
        few = load_planner(solution, count=3).decode((parts.EngineLoad("0", kv_used=9 * TOTAL, kv_total=TOTAL),) * 2)
        return {"votes": got, "few": int(few)}

    def verify(inputs, got):
        scale = inputs["slope"]
        explain(got["few"], 0, f"after three samples there is no line, and the vote was {got['few']}: expected 0")

        def vote(**wrong):
            def of(row: list) -> int:
                loads, count = [u + (w if wrong.get("queued", True) else 0) for u, w in row], len(row)
                step = lambda blocks: BASE / 4 + SLOPE * scale * blocks  # noqa: E731
                if wrong.get("some", all)(step(load) + wrong.get("edge", 0) > ITL for load in loads):
                    return 1
                if count == 1 and not wrong.get("last"):
                    return 0
                grow = count / max(count - 1, 1) if wrong.get("more", True) else 1
                share, most = wrong.get("share", SENSITIVITY), wrong.get("most", MOST)
                full = most * TOTAL + wrong.get("full", 0)
                return -1 if all(x * grow < full and step(x * grow) < ITL * share for x in loads) else 0

            return of

        compare(inputs["rows"], got["votes"], vote(), {
            "just the ITL is no miss": vote(edge=1),
            "engines must stay below `kv_most` of their memory": vote(full=1e-6),
            "up if any engine is slow: a router can use the others": vote(some=any),
            "blocks that requests wait for were forgotten": vote(queued=False),
            "the load of the one that goes was forgotten, N/(N-1)": vote(more=False),
            "no room was kept, the sensitivity": vote(share=1.0),
            "the memory may not be full": vote(most=10.0),
            "the last worker was taken away": vote(last=True),
        }, "the vote of engines with [blocks used, waited for]")  # fmt: skip


LIMITS = {"throughput": (1.0, 0.1, 1.0, 0.6), "latency": (0.1, 0.0, 0.4, 0.1)}


def ratio_vote(ratios: list, high: float, low: float, above: bool, **wrong) -> int:
    """Up, stay or down by thresholds. above: a ratio of exactly `high` is not above it."""
    beyond = (lambda r: r > high) if above != bool(wrong.get("edge")) else (lambda r: r >= high)
    below = lambda r: r < low or (r == 0 and not above)  # noqa: E731
    if wrong.get("some", any)(map(beyond, ratios)):
        return 1
    count = len(ratios)
    if count == 1 and not wrong.get("last"):
        return 0
    back = count > 1 and any(beyond(r * count / (count - 1)) for r in ratios)
    if back and wrong.get("guard", True):
        return 0
    return -1 if wrong.get("every", all)(map(below, ratios)) else 0


@case(task=2, params=[{"mode": "throughput"}, {"mode": "latency"}])
class ThresholdsUpIfAnyDownIfAll:
    """Up if any engine is beyond the upper threshold, down if all are below the lower one and would stay in between."""

    def inputs(rng, mode):
        edges = [0, 0, 90, 100, 110, 390, 400, 410, 500, 520, 590, 600, 990, 1000, 1010]
        rows = [[int(rng.choice(edges)) for _ in range(1 + i % 4)] for i in range(200)]
        low = [0, 0, 50, 90, 100] if mode == "latency" else [0, 90, 100, 450, 500, 520, 590]
        rows += [[int(rng.choice(low)) for _ in range(1 + i % 4)] for i in range(120)]
        return {"mode": mode, "rows": rows}

    def observe(solution, inputs):
        ours = solution.module("cluster.threshold").ThresholdPlanner(inputs["mode"], 1000)
        engine = solution.module("cluster.observation").EngineLoad
        got = []
        for row in inputs["rows"]:
            prefill = ours.prefill(tuple(engine(str(i), queued_tokens=n) for i, n in enumerate(row)))
            halves = [(n // 2, n - n // 2, 1 + i % 2) for i, n in enumerate(row)]
            loads = [
                engine(str(i), kv_used=a * size, kv_queued=b * size, kv_total=1000 * size)
                for i, (a, b, size) in enumerate(halves)
            ]
            got.append([int(prefill), int(ours.decode(tuple(loads)))])
        return got

    def verify(inputs, got):
        limits = LIMITS[inputs["mode"]]
        for column, (name, high, low) in enumerate((("prefill", *limits[:2]), ("decode", *limits[2:]))):
            rule = lambda row, high=high, low=low, above=column == 1, **wrong: ratio_vote(  # noqa: E731
                [n / 1000 for n in row], high, low, above, **wrong
            )
            compare(inputs["rows"], [row[column] for row in got], rule, {
                "up only if all engines are above": lambda row, f=rule: f(row, some=all),
                "down if any engine is below": lambda row, f=rule: f(row, every=any),
                "at the upper threshold itself": lambda row, f=rule: f(row, edge=True),
                "what goes down comes up again: N/(N-1) of the load is above": lambda row, f=rule: f(row, guard=False),
                "the last worker was taken away": lambda row, f=rule: f(row, last=True),
                "blocks that requests wait for were forgotten": lambda row, f=rule: f([n // 2 for n in row]),
                "each engine has a memory of its own": lambda row, f=rule: f(
                    [n * (1 + i % 2) for i, n in enumerate(row)]),
            }, f"the {name} vote of thousandths")  # fmt: skip


POOLS = {"prefill": "as seen", "decode": "as seen"}


class Says:
    """A planner that says the same of these pools, and nothing of others."""

    def __init__(self, targets: dict[str, int]):
        self.answer = targets

    def targets(self, pools: dict) -> dict[str, int]:
        return dict(self.answer) if pools == POOLS else {}


@case(task=2)
class BoundsFromBelow:
    """With both planners, the throughput planner's targets are lower bounds; with one, its targets count."""

    def inputs(rng):
        draw = lambda: {name: int(rng.integers(1, 9)) for name in ("prefill", "decode")}  # noqa: E731
        rows = [[draw(), draw()] for _ in range(12)]
        return [*rows, [draw(), {}], [{}, draw()], [{"prefill": 3}, draw()], [draw(), {"decode": 4}], [None, draw()]]

    def observe(solution, inputs):
        loop_of, got = solution.module("cluster.planner_loop").PlannerLoop, []
        for load, bounds in inputs:
            loop = loop_of(None, None, None if load is None else Says(load))
            loop.bounds = dict(bounds)
            asked = loop.asked(dict(POOLS))
            got.append([{name: int(asked[name]) for name in sorted(asked)}, loop.bounds == bounds])
        return got

    def verify(inputs, got):
        def right(row: list, pick=max) -> dict[str, int]:
            load, bounds = row[0] or {}, row[1]
            both = {n: pick(load.get(n, bounds.get(n)), bounds.get(n, load.get(n))) for n in {**load, **bounds}}
            return {name: both[name] for name in sorted(both)}

        compare(inputs, [asked for asked, _ in got], right, {
            "the bounds were not counted": lambda r: dict(sorted((r[1] if r[0] is None else r[0]).items())),
                "the bounds were not counted ": lambda r: dict(sorted((r[0] or r[1]).items())),
                "the bounds took the place of the load planner's": lambda r: dict(
                    sorted(((r[0] or {}) | r[1]).items())),
                "they are lower bounds, not upper ones": lambda r: right(r, min),
        }, "what is asked for by [load planner, bounds]")  # fmt: skip
        explain([kept for _, kept in got], [True] * len(got), "asking changed the bounds")


# Task 3


def actuation_of(solution, limits: dict, budget: int = 1000, **options):
    module = solution.module("cluster.actuation")
    return module.Actuation({name: module.Limit(*limit) for name, limit in limits.items()}, budget, **options)


def drive(solution, ours, pools: Pools, ask: Callable, ticks: int, hands: dict | None = None) -> list[list]:
    """Let a planner ask at each tick, and carry out what is decided. hands: tick -> counts set by hand just before.

    Returns of each tick [decision or None, wanted, held, pending], the latter three before it.
    """
    parts, trace = solution.module("cluster.observation"), []
    for tick in range(ticks):
        pools.scale((hands or {}).get(tick, {}))
        seen = pools.seen(parts)
        wanted = {name: group.wanted for name, group in pools.groups.items()}
        held = {name: group.held for name, group in pools.groups.items()}
        ours.observe(seen, pools.now)
        pending = ours.pending is not None
        decision = ours.decide(ask(tick, wanted), seen, pools.now)
        trace.append([plain(decision), wanted, held, pending])
        if decision is not None:
            pools.scale(decision.targets)
        pools.pass_time()
    return trace


def plain(decision) -> list | None:
    return None if decision is None else [int(decision.number), {n: int(c) for n, c in decision.targets.items()}]


def made(trace: list) -> list[list]:
    """[tick, number, targets] of each decision."""
    return [[tick, *decision] for tick, (decision, *_) in enumerate(trace) if decision is not None]


@case(task=3)
class OneDecisionAtATime:
    """While a decision is pending there is no other; it is done when all workers serve and none starts or drains."""

    def inputs(rng):
        return {"start": int(rng.integers(3, 9)), "drain": int(rng.integers(2, 9)), "more": int(rng.integers(3, 6))}

    def observe(solution, inputs):
        ours = actuation_of(solution, {"decode": (1, 1, 20)}, step=1, patience=TICK)
        ask = lambda tick, wanted: {"decode": 2 + inputs["more"] if tick < 50 else 1}  # noqa: E731
        pools = Pools({"decode": 2, "other": 4}, inputs["start"] * TICK, inputs["drain"] * TICK)
        hands = {tick: {"other": 1 + tick % 5} for tick in range(120)}  # that pool is none of its business
        trace = drive(solution, ours, pools, ask, 120, hands)
        return [made(trace), {int(n): str(o) for n, o in ours.outcomes.items()}]

    def verify(inputs, got):
        more, start, drain = inputs["more"], inputs["start"], inputs["drain"]
        rises = [[start * i, 1 + i, {"decode": 3 + i}] for i in range(more)]
        # the pool has what was asked for; a tick later patience is over
        falls = [[50 + (drain + 1) * i, 1 + more + i, {"decode": 1 + more - i}] for i in range(more + 1)]
        falls = [[tick, number, targets] for tick, number, targets in falls]
        want = rises + falls
        early = [[i, 1 + i, {"decode": 3 + i}] for i in range(more)]
        text = f"decisions [tick, number, targets] were {got[0]}, expected {want}"
        if got[0] != want:
            mistakes = {
                "decided again while a decision was pending": got[0][:more] == early,
                "done before those that drain were gone": got[0][: len(rises)] == rises,
                "a pool without limits is none of its business": got[0][: len(rises)] != rises,
                "decisions are numbered from 1 on": [n for _, n, _ in got[0]] != list(range(1, 1 + len(got[0]))),
            }
            raise AssertionError(f"{text}\n{named(mistake for mistake, is_it in mistakes.items() if is_it)}".strip())
        explain(got[1], dict.fromkeys(range(1, 2 * more + 2), "done"), f"outcomes are {got[1]}: expected all done")


@case(task=3)
class ADecisionEnds:
    """A decision is done, or superseded by a hand, or times out: exactly then the next one can be made."""

    def inputs(rng):
        return {"limit": int(rng.integers(20, 60)), "hand": int(rng.integers(3, 15)), "count": int(rng.integers(6, 9))}

    def observe(solution, inputs):
        results = []
        for hands in ({}, {inputs["hand"]: {"decode": inputs["count"]}}, {inputs["hand"]: {"decode": 2}}):
            ours = actuation_of(solution, {"decode": (1, 1, 20)}, step=2, time_out=inputs["limit"] * TICK)
            pools = Pools({"decode": 2}, start=10_000 * TICK)  # nobody ever gets ready
            trace = drive(solution, ours, pools, lambda tick, wanted: {"decode": 10}, inputs["limit"] + 2, hands)
            results.append([made(trace), {int(n): str(o) for n, o in ours.outcomes.items()}])
        return results

    def verify(inputs, got):
        limit, hand, count = inputs["limit"], inputs["hand"], inputs["count"]
        want = [[0, 1, {"decode": 4}], [limit, 2, {"decode": 6}]]
        explain(got[0][0], want, f"nobody gets ready, and a decision times out after {limit} ticks: decisions were "
            f"{got[0][0]}, expected {want}", {
            "a decision never timed out": want[:1],
            "it times out when time_out ns have passed, not later": [want[0], [limit + 1, 2, {"decode": 6}]],
        })  # fmt: skip
        explain(got[0][1], {1: "timed out"}, f"outcomes are {got[0][1]}: the first timed out")
        want = [[0, 1, {"decode": 4}], [hand, 2, {"decode": min(count + 2, 10)}]]
        explain(got[1][0][:2], want, f"{count} workers were set by hand at tick {hand}, while a decision was pending: "
            f"decisions were {got[1][0]}, expected {want}", {
            "the decision waited for what will never come: somebody else decided": [want[0], [limit, 2, want[1][2]]],
            "the next decision began at its own last target, not at what is wanted now": [
                want[0], [hand, 2, {"decode": 6}]],
        })  # fmt: skip
        explain(got[1][1].get(1), "superseded", f"outcomes are {got[1][1]}: the first was superseded")
        text = f"2 workers were set by hand, and these 2 serve already: outcomes are {got[2][1]}, the first superseded"
        explain(got[2][1].get(1), "superseded", text, {
            "settled, but not at its targets: look first whether somebody changed what is wanted": "done",
        })  # fmt: skip


@case(task=3, params=[{"hand": None}, {"hand": "up"}, {"hand": "down"}])
class PatienceBeforeItShrinks:
    """A pool shrinks only to the most that was asked for within the patience, which begins anew with every change."""

    def inputs(rng, hand):
        patience = int(rng.integers(6, 12))
        quiet = [4, 3, 4, 1, 3, 4, 2, 3, 1, 3, 1, 2, 1, 3, 3, 1, 1, 2, 1, 1, 2, *rng.integers(1, 4, 15).tolist()]
        return {"patience": patience, "asked": quiet, "hand": hand}

    def observe(solution, inputs):
        pools = Pools({"decode": 4}, start=0, drain=0)
        ours = actuation_of(solution, {"decode": (1, 1, 20)}, step=9, patience=inputs["patience"] * TICK)
        hands = {"up": {2: {"decode": 9}}, "down": {8: {"decode": 2}}}.get(inputs["hand"], {})
        trace = drive(solution, ours, pools, lambda tick, wanted: {"decode": inputs["asked"][tick]}, 36, hands)
        return [wanted["decode"] for _, wanted, *_ in trace]

    def verify(inputs, got):
        hand = {"up": (2, 9), "down": (8, 2)}.get(inputs["hand"], (None, 0))
        want = patient(inputs, hand)
        explain(got, want, f"with a patience of {inputs['patience']} ticks, and {inputs['asked']} asked for, workers "
            f"were {got}, expected {want}", {
            "shrank at once, to what was asked for last": patient(inputs, hand, pick=lambda asked, count: asked[-1]),
            "shrank to what was asked for last, not to the most within the patience": patient(
                inputs, hand, pick=lambda asked, count: asked[-1] if max(asked) < count else count),
            "a request of exactly the patience ago does not count any more": patient(
                inputs, hand, patience=inputs["patience"] + 1),
            "patience begins anew with a change, and the workers that there are count as asked for": patient(
                inputs, hand, anew=False),
        })  # fmt: skip


def patient(
    inputs: dict, hand: tuple, patience: int | None = None, pick=lambda asked, count: max(asked), anew=True
) -> list[int]:
    """The workers of each tick. Starting and draining take no time, but a decision is over at the next tick only."""
    patience = inputs["patience"] if patience is None else patience
    count, asked, begin, counts = 4, [], True, []
    for tick, aim in enumerate(inputs["asked"]):
        if tick == hand[0]:
            count, begin = hand[1], True
        if begin and (anew or not tick):
            asked = [(tick, count)]
        counts.append(count)
        asked = [(t, n) for t, n in asked if tick - t < patience] + [(tick, aim)]
        aim = max(aim, min(count, pick([n for _, n in asked], count)))
        begin, count = aim != count, aim
    return counts


@case(task=3)
class OldWishesMakeNothingGrow:
    """`steady` keeps a pool from shrinking below what was asked for lately; old wishes do not make it grow."""

    def inputs(rng):
        calls, now = [], 0
        for _ in range(80):
            now += int(rng.integers(0, 4)) * TICK
            calls.append([now, int(rng.integers(1, 9)), int(rng.integers(1, 9))])
        return {"patience": int(rng.integers(3, 9)) * TICK, "calls": calls}

    def observe(solution, inputs):
        ours = actuation_of(solution, {"decode": (1, 1, 20)}, patience=inputs["patience"])
        ours.observe(Pools({"decode": 4}).seen(solution.module("cluster.observation")), 0)
        return [int(ours.steady("decode", target, current, now)) for now, target, current in inputs["calls"]]

    def verify(inputs, got):
        noted, patience = [(0, 4)], inputs["patience"]
        for i, ((now, target, current), value) in enumerate(zip(inputs["calls"], got, strict=True)):
            noted.append((now, target))
            most = max(count for time, count in noted if now - time < patience)
            want = max(target, min(current, most))
            text = f"call {i}: {target} asked for, {current} wanted, at most {most} asked for in {patience} ns: "
            explain(value, want, f"{text}got {value}, expected {want}", {
                "what was asked for earlier keeps a pool from shrinking, it makes none grow": most,
                "shrank at once": target,
            })  # fmt: skip


@case(task=3)
class StepsAndLimits:
    """A decision moves a pool by at most `step`, and never beyond least and most, wherever a hand has put it."""

    def inputs(rng):
        rows = []
        for _ in range(60):
            least = int(rng.integers(1, 4))
            limit = [1, least, least + int(rng.integers(0, 8))]
            row = [limit, int(rng.integers(1, 4)), int(rng.integers(0, 15)), int(rng.integers(0, 15))]
            rows.append([*row, int(rng.integers(0, 4))])
        return rows

    def observe(solution, inputs):
        parts, got = solution.module("cluster.observation"), []
        for limit, step, count, aim, draining in inputs:
            ours = actuation_of(solution, {"decode": limit, "prefill": [1, 1, 9]}, step=step, patience=0)
            world = Pools({"decode": count, "prefill": 2})
            world.groups["decode"].draining = [SECOND] * draining
            pools = world.seen(parts)
            ours.observe(pools, 0)
            decision = ours.decide({"decode": aim}, pools, 0)
            got.append([count, 2] if decision is None else [decision.targets[n] for n in ("decode", "prefill")])
        return [[int(n) for n in row] for row in got]

    def verify(inputs, got):
        def right(row: list, wide=False, bounded=True, steps_last=False) -> int:
            (_, least, most), step, count, aim, _ = row
            near = aim if wide else max(count - step, min(count + step, aim))
            kept = max(least, min(most, near)) if bounded else near
            return max(least, count - step, min(count + step, min(most, aim))) if steps_last else kept

        what = "workers after [[gpus, least, most], step, workers before, asked for, others that drain]"
        compare(inputs, [n for n, _ in got], right, {
            "the step was not limited": lambda r: right(r, wide=True),
            "least and most were not kept": lambda r: right(r, bounded=False),
            "least and most count more than the step": lambda r: right(r, steps_last=True),
            "a step begins at what is wanted, not with those that drain": lambda r: right(
                [*r[:2], r[2] + r[4], *r[3:]]),
        }, what)  # fmt: skip
        explain([n for _, n in got], [2] * len(got), "a pool without a target keeps its workers")


def shares(row: list, proportional=False, greedy=False, free=False, exact=True) -> list[int]:
    """Each pool its least, then in turns one more."""
    limits, budget, targets = row
    counts, left = [least for _, least, _ in limits], budget - sum(gpus * least for gpus, least, _ in limits)
    if free:
        return [max(a, b) for a, b in zip(counts, targets, strict=True)]
    changed = True
    while changed:
        changed = False
        for i, (gpus, *_) in enumerate(limits):
            cost = gpus if exact else 1
            while counts[i] < targets[i] and cost <= left:
                counts[i], left, changed = counts[i] + 1, left - cost, True
                if not greedy:
                    break
    return counts


@case(task=3)
class TheBudgetIsSharedInTurns:
    """Each pool gets its least, and then in turns one more while it wants one and its GPUs are left."""

    def inputs(rng):
        rows = []
        for i in range(60):
            limits = [[int(rng.choice([1, 2, 4, 8])), int(rng.integers(1, 3)), 30] for _ in range(2 + i % 2)]
            least = sum(gpus * least for gpus, least, _ in limits)
            targets = [int(rng.integers(0, 12)) for _ in limits]
            rows.append([limits, least + int(rng.integers(0, 40)), targets])
        return rows

    def observe(solution, inputs):
        got = []
        for limits, budget, targets in inputs:
            names = [f"pool-{9 - i}" for i in range(len(limits))]
            ours = actuation_of(solution, dict(zip(names, limits, strict=True)), budget)
            counts = ours.share(dict(zip(names, targets, strict=True)))
            got.append([int(counts[name]) for name in names])
        return got

    def verify(inputs, got):
        compare(inputs, got, shares, {
            "the budget was forgotten": lambda r: shares(r, free=True),
            "the first pool took all": lambda r: shares(r, greedy=True),
            "workers were counted, not their GPUs": lambda r: shares(r, exact=False),
        }, "workers for [[gpus, least, most]..., budget, targets]")  # fmt: skip


def beside(row: dict, drained=True, exact=True, late=True, bounded=True) -> list[int]:
    """What is decided where growth must fit beside the GPUs that are held."""
    wanted, asked = row["wanted"], row["asked"]
    held = [n + (extra if drained else 0) for n, extra in zip(wanted, row["draining"], strict=True)]
    needed = sum(g * max(a, b) for g, a, b in zip(row["gpus"], held, asked, strict=True))
    fits = needed <= row["budget"] if exact else needed < row["budget"]
    least = row["least"] if bounded else 0
    return asked if fits or not late else [max(least, min(a, b)) for a, b in zip(asked, wanted, strict=True)]


@case(task=3)
class GrowthFitsBesideWhatIsHeld:
    """A pool grows only into GPUs that nobody holds; as long as they are not free, what shrinks goes first."""

    def inputs(rng):
        rows = []
        for i in range(80):
            gpus, wanted = rng.choice([1, 2, 4], 2).tolist(), rng.integers(1, 6, 2).tolist()
            least = 1 + i % 2
            asked = [max(least, n + int(rng.integers(-2, 3))) for n in wanted]
            draining = rng.integers(0, 3, 2).tolist()
            row = {"gpus": gpus, "wanted": wanted, "asked": asked, "draining": draining, "least": least}
            most = sum(g * max(n + extra, a) for g, n, extra, a in zip(gpus, wanted, draining, asked, strict=True))
            asks = sum(g * a for g, a in zip(gpus, asked, strict=True))
            rows.append(row | {"budget": max(asks, most - (i % 3))})
        return rows

    def observe(solution, inputs):
        parts, got, names = solution.module("cluster.observation"), [], ("prefill", "decode")
        for row in inputs:
            limits = {name: (gpus, row["least"], 20) for name, gpus in zip(names, row["gpus"], strict=True)}
            ours = actuation_of(solution, limits, row["budget"], step=5, patience=0)
            pools = {
                name: parts.PoolLoad(n, 0, extra, tuple(parts.EngineLoad(str(i)) for i in range(n)))
                for name, n, extra in zip(names, row["wanted"], row["draining"], strict=True)
            }
            ours.observe(pools, 0)
            decision = ours.decide(dict(zip(names, row["asked"], strict=True)), pools, 0)
            got.append(row["wanted"] if decision is None else [int(decision.targets[name]) for name in names])
        return got

    def verify(inputs, got):
        compare(inputs, got, beside, {
            "GPUs of workers that drain were taken for free": lambda r: beside(r, drained=False),
            "the budget may be used to the last GPU": lambda r: beside(r, exact=False),
            "it grew and shrank at once, into GPUs that are still held": lambda r: beside(r, late=False),
            "a pool below its least grows to it": lambda r: beside(r, bounded=False),
        }, "[prefill, decode] workers for")  # fmt: skip


def history(rng, ticks: int) -> dict:
    """Limits, a budget that is too small for most, what is asked for, and hands that intervene."""
    limits = {name: [int(rng.choice([1, 2, 4])), int(rng.integers(1, 3)), 12] for name in ("prefill", "decode")}
    least = sum(gpus * low for gpus, low, _ in limits.values())
    counts = {name: low for name, (_, low, _) in limits.items()}
    asked, level = [], dict(counts)
    for _ in range(ticks):
        level = {name: max(0, n + int(rng.integers(-2, 3))) for name, n in level.items()}
        asked.append([level["prefill"], level["decode"]])
    hands = {
        int(tick): {name: low + int(rng.integers(0, 3)) for name, (_, low, _) in limits.items()}
        for tick in rng.choice(ticks, 3, replace=False)
    }
    times = {name: int(rng.integers(0, 9)) for name in ("start", "drain")}
    script = {"asked": asked, "hands": hands if rng.random() < 0.5 else {}}
    return {"limits": limits, "budget": least + int(rng.integers(0, 25)), "counts": counts} | script | times


@case(task=3, params=[{"runs": 25}])
class InvariantsOfRandomHistories:
    """Never two pending, never below the least, never over the budget, also with GPUs that are not free yet."""

    def inputs(rng, runs):
        return [history(rng, 60) for _ in range(runs)]

    def observe(solution, inputs):
        traces = []
        for at in inputs:
            ours = actuation_of(solution, at["limits"], at["budget"], step=2, patience=4 * TICK, time_out=25 * TICK)
            pools = Pools(at["counts"], at["start"] * TICK, at["drain"] * TICK)
            ask = lambda tick, wanted, at=at: dict(zip(("prefill", "decode"), at["asked"][tick], strict=True))  # noqa: E731
            traces.append(drive(solution, ours, pools, ask, 60, {int(k): v for k, v in at["hands"].items()}))
        return traces

    def verify(inputs, got):
        for at, trace in zip(inputs, got, strict=True):
            number, limits = 0, at["limits"]
            gpus = lambda counts, limits=limits: sum(limits[name][0] * counts[name] for name in limits)  # noqa: E731
            for tick, (decision, wanted, held, pending) in enumerate(trace):
                if decision is None:
                    continue
                where = f"tick {tick}, decision {decision}, wanted {wanted}, held {held}, {limits}, {at['budget']} GPUs"
                number += 1
                explain(pending, False, f"{where}: decided while another decision was pending")
                explain(decision[0], number, f"{where}: it is decision {number}")
                explain(decision[1] == wanted, False, f"{where}: nothing changes, so there is nothing to decide")
                low = [name for name, (_, least, _) in limits.items() if decision[1][name] < least]
                explain(low, [], f"{where}: fewer than the least of {low}")
                explain(gpus(decision[1]) <= at["budget"], True, f"{where}: targets over the budget")
                most = {name: max(held[name], decision[1][name]) for name in limits}
                over = gpus(most) > at["budget"] and not at["hands"]
                text = f"{where}: GPUs of workers that drain are not free yet: {gpus(most)} are needed"
                explain(over, False, text)


PLANNERS = ["threshold", "load", "classic"]


def loop_of(solution, kind: str):
    """A planner loop for two pools with up to 12 workers each."""
    objective = solution.module("cluster.goodput").Objective(ttft=TTFT, tpot=ITL)
    loop = solution.module("cluster.planner_loop").PlannerLoop
    patience = (12 if kind == "classic" else 6) * TICK  # it sees all of the jitter in 10 ticks
    ours = actuation_of(solution, {"prefill": (1, 1, 12), "decode": (1, 1, 12)}, 24, patience=patience)
    if kind == "threshold":
        return loop(ours, load=solution.module("cluster.threshold").ThresholdPlanner("throughput", 4000))
    if kind == "load":
        planner = solution.module("cluster.load_planner").LoadPlanner
        return loop(ours, load=planner(objective, SENSITIVITY, MOST, FULL, 30 * SECOND))
    classic = solution.module("cluster.planner").ClassicPlanner
    return loop(ours, classic(straight(solution), objective), interval=2 * TICK)


def engine_under(load: dict, slow: float = 1.0, cold: int = 30 * SECOND) -> Callable:
    """What each of N engines shows under a constant load of the pool. slow: the factor of a cold engine's steps."""

    def engine(pool: str, count: int, age: int) -> dict:
        factor = slow if age < cold else 1.0
        if pool == "prefill":
            queued = load["queued"] // count
            step = [age, min(queued, FULL), 0, factor * (BASE + SLOPE * min(queued, FULL))]
            return {"queued_tokens": queued, "samples": [step]}
        used = load["blocks"] // count
        return {"kv_used": used, "kv_total": TOTAL, "samples": [[age, 0, used, factor * (BASE / 4 + SLOPE * used)]]}

    return engine


def run_loop(solution, kind: str, load: dict, counts: dict, ticks: int, slow: float = 1.0) -> list[list[int]]:
    """Workers wanted at each tick under a constant load, which jitters by a few thousandths.

    slow: of engines that have served for less than half a minute; if there are such, all are new at first.
    """
    parts, loop, wanted = solution.module("cluster.observation"), loop_of(solution, kind), []
    pools = Pools(counts, age=0) if slow > 1 else Pools(counts)
    for tick in range(ticks):
        jitter = 1 + 0.004 * ((tick * 7) % 5 - 2)
        traffic = {"duration": TICK, "requests": round(load["requests"] * jitter), "input_length": 2000.0}
        traffic |= {"output_length": 200.0, "ttft": ttft_of(2000), "itl": itl_of(2100, 16), "hit_rate": 0.0}
        show = engine_under({name: round(value * jitter) for name, value in load.items()}, slow)
        full = lambda *at, show=show: _with_samples(parts, show(*at))  # noqa: E731
        decision = loop.tick(parts.Observation(parts.Traffic(**traffic), pools.seen(parts, full)), pools.now)
        pools.scale(decision.targets if decision is not None else {})
        wanted.append([pools.groups[name].wanted for name in ("prefill", "decode")])
        pools.pass_time()
    return wanted


def _with_samples(parts, shown: dict) -> dict:
    return shown | {"samples": tuple(parts.StepSample(*sample) for sample in shown.get("samples", ()))}


@case(task=3, params=[{"kind": kind} for kind in PLANNERS], timeout=10.0)
class AConstantLoadSettles:
    """Under a load that does not change, but for jitter, the number of workers stops changing."""

    def inputs(rng, kind):
        loads = [
            # jitter must be seen in a queue: steps of one small load say too little of a prompt of 2000 tokens
            {"queued": int(rng.integers(6000, 40_000)), "blocks": int(rng.integers(100, 9000)), "requests": n}
            for n in rng.integers(20, 3000, 3).tolist()
        ]
        loads.append({"queued": 4100, "blocks": 1100, "requests": 99})  # two are half empty, one is too full
        return {"kind": kind, "loads": loads, "counts": [int(rng.integers(1, 12)) for _ in range(8)]}

    def observe(solution, inputs):
        counts = inputs["counts"]
        return [
            run_loop(solution, inputs["kind"], load, {"prefill": counts[2 * i], "decode": counts[2 * i + 1]}, 190)
            for i, load in enumerate(inputs["loads"])
        ]

    def verify(inputs, got):
        for load, wanted in zip(inputs["loads"], got, strict=True):
            late = wanted[150:]
            changes = sum(a != b for a, b in pairwise(late))
            text = (
                f"the {inputs['kind']} planner flaps under {load}: {changes} changes in the last 40 ticks: {late[:12]}"
            )
            explain(changes, 0, text)


def needed(blocks: int) -> int:
    """Decode workers that bring the ITL below its target."""
    return next(n for n in range(1, 13) if BASE / 4 + SLOPE * 1.01 * (blocks // n) <= ITL)


@case(task=3, timeout=10.0)
class ColdEnginesDoNotCallForMore:
    """New engines are ten times slower for half a minute. That is no reason to start more of them."""

    def inputs(rng):
        return {"blocks": [int(rng.integers(1500, 5000)) for _ in range(3)]}

    def observe(solution, inputs):
        loads = [{"queued": 100, "blocks": blocks, "requests": 50} for blocks in inputs["blocks"]]
        counts = [{"prefill": 1, "decode": needed(load["blocks"])} for load in loads]
        runs = [run_loop(solution, "load", load, n, 60, 10.0) for load, n in zip(loads, counts, strict=True)]
        return [[decode for _, decode in run] for run in runs]

    def verify(inputs, got):
        for blocks, counts in zip(inputs["blocks"], got, strict=True):
            need = needed(blocks)
            text = f"{blocks} blocks need {need} decode workers, and there are as many; but then there were {counts}"
            explain(max(counts) <= need, True, f"{text}: samples of cold engines poison the line")
            explain(min(counts) >= need, True, text)


# Task 4


def border(rng, rows: int, columns: int) -> list[list[float]]:
    """Attainment that never falls as workers are added, often equal."""
    steps = rng.choice([0.0, 0.0, 0.02, 0.05, 0.2], (rows, columns))
    grid = np.minimum(np.cumsum(np.cumsum(steps, axis=0), axis=1) * float(rng.choice([0.3, 1, 2])), 1.0)
    return np.round(grid, 3).tolist()


def space_of(inputs: dict) -> dict:
    return {key: inputs[key] for key in ("prefill", "decode", "gpus")}


def cheapest(at: dict, met=lambda share, target: share >= target) -> list[int] | None:
    """By brute force."""
    good = [
        (p * at["gpus"][0] + d * at["gpus"][1], p, d)
        for i, p in enumerate(at["prefill"])
        for j, d in enumerate(at["decode"])
        if met(at["grid"][i][j], at["target"])
    ]
    return list(min(good)[1:]) if good else None


def searched(solution, at: dict) -> dict:
    """What `choose` finds, and what it asked."""
    module, asked = solution.module("cluster.choose"), []

    def attained(sizes) -> float:
        asked.append([int(sizes.prefill), int(sizes.decode)])
        return at["grid"][at["prefill"].index(sizes.prefill)][at["decode"].index(sizes.decode)]

    space = module.Space(tuple(at["prefill"]), tuple(at["decode"]), *at["gpus"])
    chosen = module.choose(space, attained, at["target"])
    if chosen is None:
        return {"sizes": None, "asked": asked}
    predictions = [[int(s.prefill), int(s.decode), float(v)] for s, v in chosen.predictions.items()]
    told = {"gpus": int(chosen.gpus), "attained": float(chosen.attained), "monotone": bool(chosen.monotone)}
    return told | {"sizes": [int(n) for n in chosen.sizes], "asked": asked, "predictions": predictions}


def situations(rng, count: int) -> list[dict]:
    rows = []
    for i in range(count):
        prefill = [0] if i % 6 == 5 else sorted(rng.choice(range(1, 20), int(rng.integers(2, 13)), False).tolist())
        decode = sorted(rng.choice(range(1, 20), int(rng.integers(1, 13)), False).tolist())
        grid = border(rng, len(prefill), len(decode))
        target = float(rng.choice([0.9, 0.5, *grid[len(prefill) // 2]]))
        gpus = [int(rng.choice([1, 2, 4])), int(rng.choice([1, 2, 4]))]
        rows.append({"prefill": prefill, "decode": decode, "grid": grid, "target": target, "gpus": gpus})
    return rows


def told(at: dict, got: dict) -> None:
    """What is said of the choice is what was predicted."""
    p, d = got["sizes"]
    share = at["grid"][at["prefill"].index(p)][at["decode"].index(d)]
    cost = p * at["gpus"][0] + d * at["gpus"][1]
    explain([got["gpus"], got["attained"]], [cost, share], f"{got['sizes']} take {cost} GPUs and attain {share}")
    want = [[p, d, at["grid"][at["prefill"].index(p)][at["decode"].index(d)]] for p, d in got["asked"]]
    explain(got["predictions"], want, "the predictions are not those that were asked for, in that order")


@case(task=4)
class TheCheapestThatIsGoodEnough:
    """The answer is the cheapest deployment that attains the target, or None; of equal ones that with fewer prefill."""

    def inputs(rng):
        return situations(rng, 60)

    def observe(solution, inputs):
        return [searched(solution, at) for at in inputs]

    def verify(inputs, got):
        compare(inputs, [row["sizes"] for row in got], cheapest, {
            "a share of exactly the target is good enough": lambda r: cheapest(r, lambda share, target: share > target),
            "workers were counted, not their GPUs": lambda r: cheapest(r | {"gpus": [1, 1]}),
        }, "[prefill, decode] workers")  # fmt: skip
        for at, row in zip(inputs, got, strict=True):
            if row["sizes"] is not None:
                told(at, row)
                explain(row["monotone"], True, f"nothing contradicts in {row['predictions']}")


@case(task=4)
class FewPredictions:
    """Of two lists of sizes the walk predicts no more than both are long, and the check two more; nothing twice."""

    def inputs(rng):
        rows = situations(rng, 40)
        everything = {"prefill": list(range(1, 17)), "decode": list(range(1, 17)), "target": 0.9, "gpus": [1, 1]}
        stairs = [[0.95 if i + j >= 15 else 0.5 for j in range(16)] for i in range(16)]
        return [*rows, everything | {"grid": stairs}, everything | {"grid": [[0.1] * 16] * 16}]

    def observe(solution, inputs):
        return [searched(solution, at) for at in inputs]

    def verify(inputs, got):
        for at, row in zip(inputs, got, strict=True):
            p, d, asked = len(at["prefill"]), len(at["decode"]), row["asked"]
            explain(len(asked), len({tuple(sizes) for sizes in asked}), f"some sizes were predicted twice: {asked}")
            most = p + d - 1 + (0 if row["sizes"] is None else 2)
            text = f"{len(asked)} predictions for {p} x {d} sizes: a walk along the border needs at most {most}"
            if len(asked) > most:
                whole = {"all sizes were predicted": len(asked) == p * d}
                raise AssertionError(f"{text}\n{named(mistake for mistake, is_it in whole.items() if is_it)}".strip())
            if row["sizes"] is not None:
                check = [
                    [p2, d2] for p2, d2 in ((following(at["prefill"], row["sizes"][0]), row["sizes"][1]),
                                            (row["sizes"][0], following(at["decode"], row["sizes"][1])))
                    if p2 is not None and d2 is not None
                ]  # fmt: skip
                missing = [sizes for sizes in check if sizes not in asked]
                explain(
                    missing, [], f"{row['sizes']} was not checked: the next larger sizes {missing} were not predicted"
                )


def following(sizes: list[int], size: int) -> int | None:
    return next((larger for larger in sizes if larger > size), None)


def bumpy(rng) -> dict:
    """Attainment that falls with more prefill workers from somewhere on: they flood the decode workers."""
    p, d = int(rng.integers(4, 9)), int(rng.integers(4, 9))
    limit = int(rng.integers(1, 3))
    grid = [[0.95 if limit * (i + 1) <= j + 1 + limit and i + j >= 3 else 0.6 for j in range(d)] for i in range(p)]
    for _ in range(int(rng.integers(0, 3))):
        grid[int(rng.integers(0, p))][int(rng.integers(0, d))] = float(rng.choice([0.95, 0.6]))
    sizes = {"prefill": list(range(1, p + 1)), "decode": list(range(1, d + 1))}
    return sizes | {"grid": grid, "target": 0.9, "gpus": [int(rng.choice([1, 2])), int(rng.choice([1, 2]))]}


@case(task=4)
class AContradictionIsNoProof:
    """If a prediction was good enough and a larger one was not, the walk proves nothing: all are tried by cost."""

    def inputs(rng):
        return [bumpy(rng) for _ in range(60)]

    def observe(solution, inputs):
        return [searched(solution, at) for at in inputs]

    def verify(inputs, got):
        seen = 0
        for at, row in zip(inputs, got, strict=True):
            if row["sizes"] is None:
                continue
            told(at, row)
            walked = row["predictions"]
            against = any(
                a[2] >= 0.9 > b[2] and a[0] <= b[0] and a[1] <= b[1] and a[:2] != b[:2] for a in walked for b in walked
            )
            seen += against
            text = f"predictions [prefill, decode, share] were {walked}"
            explain(row["monotone"], not against, f"{text}: monotone is {row['monotone']}, expected {not against}", {
                "a contradiction was not seen": True if against else None})  # fmt: skip
            if against:
                best = cheapest(at)
                explain(row["sizes"], best, f"{text}, which contradict each other. The answer was {row['sizes']}, but "
                    f"{best} is the cheapest of all", {"the walk's answer was kept": row["sizes"]})  # fmt: skip
        explain(seen > 5, True, f"only {seen} of {len(inputs)} searches met a contradiction: the check was left out")
