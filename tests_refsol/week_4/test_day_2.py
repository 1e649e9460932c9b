"""Day 2, workloads and SLOs: laws of probability, counts by hand, and asyncio's own loop."""

import asyncio
import gc
import heapq
import math
import random
import warnings
from collections.abc import Callable
from itertools import count, pairwise
from types import SimpleNamespace

import numpy as np

from course.case import case, error_of
from course.suspects import named

SECOND = 1_000_000_000


def explain(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got != want:
        raise AssertionError(f"{text}\n{named(m for m, value in (mistakes or {}).items() if value == got)}".strip())


def expect(holds: bool, text: str, mistakes: dict[str, bool] | None = None) -> None:
    """Raise AssertionError with `text`, and the mistakes that are true, unless it holds."""
    if not holds:
        raise AssertionError(f"{text}\n{named(m for m, made in (mistakes or {}).items() if made)}".strip())


def near(got: float | None, want: float | None) -> bool:
    return got is want is None or (got is not None and want is not None and math.isclose(got, want, rel_tol=1e-9))


def explain_near(got: float | None, want: float | None, text: str, mistakes: dict[str, float | None]) -> None:
    """The same for a number that may differ in its last digits."""
    if not near(got, want):
        found = named(m for m, value in mistakes.items() if near(got, value) and not near(want, value))
        raise AssertionError(f"{text}: got {got}, expected {want}\n{found}".strip())


def refused(result: dict, kind: str, what: str, *words: str) -> None:
    """An error of `kind` whose message contains `words`."""
    if result["type"] != kind or not all(word in result["message"] for word in words):
        got = "nothing was raised" if result["type"] is None else f"{result['type']}: {result['message']}"
        raise AssertionError(f"{what}: expected a {kind} that names {', '.join(words) or 'it'}; {got}")


def gamma_cdf(shape: float, scale: float) -> Callable[[np.ndarray], np.ndarray]:
    """The distribution function of a Gamma distribution: a series."""

    def cdf(x: np.ndarray) -> np.ndarray:
        x = np.clip(np.asarray(x, np.float64) / scale, 1e-300, 60)
        terms, total = np.full_like(x, 1 / math.gamma(shape + 1)), np.zeros_like(x)
        for n in range(1, 220):
            total += terms
            terms = terms * x / (shape + n)
        return np.minimum(total * np.exp(shape * np.log(x) - x), 1)

    return cdf


def fits(values: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Kolmogorov and Smirnov; a right sample fails once in 100,000 times."""
    n = len(values)
    at = cdf(np.sort(values))
    off = max(np.max(at - np.arange(n) / n), np.max(np.arange(1, n + 1) / n - at))
    return bool(off * math.sqrt(n) < 2.5)


# Task 1


@case(task=1, params=[{"burstiness": 0.25}, {"burstiness": 1.0}, {"burstiness": 4.0}])
class GapsAreGammaDistributed:
    """Gaps between arrivals follow a Gamma distribution with mean 1 / rate and shape `burstiness`, also the first."""

    def inputs(rng, burstiness):
        return {"rate": float(rng.uniform(0.5, 200)), "burstiness": burstiness, "seed": int(rng.integers(1 << 30))}

    def observe(solution, inputs):
        arrival_times = solution.module("cluster.workload").arrival_times
        rng, other = (np.random.default_rng(inputs["seed"]) for _ in range(2))
        many = arrival_times(rng, inputs["rate"], 6000, inputs["burstiness"])
        firsts = [arrival_times(rng, inputs["rate"], 1, inputs["burstiness"]) for _ in range(1500)]
        return {
            "many": many,
            "firsts": np.concatenate(firsts),
            "again": arrival_times(other, inputs["rate"], 6000, inputs["burstiness"]),
            "dense": arrival_times(rng, 1e11, 200_000, inputs["burstiness"])[-1:],
        }

    def verify(inputs, got):
        rate, b = inputs["rate"], inputs["burstiness"]
        what = f"{rate:.3g} arrivals per second with burstiness {b}"
        many = got["many"]
        explain((str(many.dtype), many.shape), ("int64", (6000,)), f"{what}: got {many.dtype} {many.shape}, expected "
            "6000 times in whole ns, int64", {"times are in seconds, not rounded": ("float64", (6000,))})  # fmt: skip
        explain(many.tolist(), got["again"].tolist(), "two generators of one seed gave different times: take all "
            "randomness from `rng`")  # fmt: skip
        gaps = np.diff(many, prepend=0) / SECOND
        expect((gaps >= 0).all(), f"{what}: the times go backwards")
        mistakes = {
            "times are in microseconds": gamma_cdf(b, 1 / (rate * b) / 1000),
            "times are in milliseconds": gamma_cdf(b, 1 / (rate * b) / 1e6),
            "the mean gap was not divided by the burstiness": gamma_cdf(b, 1 / rate),
            "burstiness is upside down: below 1 must be burstier": gamma_cdf(1 / b, b / rate),
            "burstiness was ignored": gamma_cdf(1, 1 / rate),
            "the rate was taken for the mean gap": gamma_cdf(b, rate / b),
            "gaps are uniform": lambda x: np.clip(x * rate / 2, 0, 1),
        }
        for values, which in ((gaps, "gaps"), (got["firsts"] / SECOND, "times of the first arrival")):
            right = gamma_cdf(b, 1 / (rate * b))
            text = (
                f"{what}: {which} have mean {values.mean():.4g} s and deviation {values.std():.4g} s, expected a Gamma "
                f"distribution with mean {1 / rate:.4g} and deviation {1 / rate / math.sqrt(b):.4g}"
            )
            expect(fits(values, right), text, {m: fits(values, cdf) for m, cdf in mistakes.items()})
        last = int(got["dense"][0])  # 2,000 ns, with a deviation of less than 10
        expect(abs(last - 2000) < 80, f"200,000 arrivals, 100 in each ns, took {last} ns, expected about 2000", {
            "each gap was rounded, and the errors add up": True})  # fmt: skip


@case(task=1)
class AMetronomeDoesNotDrift:
    """Infinite burstiness is one arrival every 1 / rate, to the ns even after a long time; wrong rates are refused."""

    def inputs(rng):
        return {"rate": float(rng.integers(1, 400)) * 3 + 0.1}

    def observe(solution, inputs):
        arrival_times = solution.module("cluster.workload").arrival_times
        rng, bad = np.random.default_rng(0), [(0.0, 1.0), (-2.0, 1.0), (math.nan, 1.0), (5.0, 0.0), (5.0, -0.5)]
        return {
            "times": arrival_times(rng, inputs["rate"], 50_000, math.inf),
            "none": len(arrival_times(rng, 5.0, 0, 2.0)),
            "errors": [error_of(lambda pair=pair: arrival_times(rng, pair[0], 3, pair[1]).tolist()) for pair in bad],
        }

    def verify(inputs, got):
        gap = SECOND / inputs["rate"]
        want = np.arange(1, 50_001) * gap
        off = np.abs(got["times"] - want)
        late = np.arange(1, 50_001)
        suspects = {
            "each gap was rounded, and the errors add up": late * round(gap),
            "each gap was cut to whole ns, and the errors add up": late * math.floor(gap),
            "the first arrival comes at 0, without a gap before it": want - gap,
        }
        text = f"at {inputs['rate']}/s arrival 50,000 is {off[-1]:.0f} ns off, the first {off[0]:.0f}"
        expect(off.max() <= 3, text, {m: np.abs(got["times"] - v).max() < 3 for m, v in suspects.items()})
        explain(got["none"], 0, "no arrivals were asked for")
        for result, words in zip(got["errors"], ["0.0", "-2.0", "nan", "0.0", "-0.5"], strict=True):
            refused(result, "ValueError", f"a rate or burstiness of {words}", words)


def zipf_law(kinds: int, exponent: float) -> np.ndarray:
    weights = np.arange(1, kinds + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


@case(task=1, params=[{"kinds": k, "exponent": e} for k, e in [(5, 1.0), (12, 0.5), (7, 2.0), (4, 0.0), (1, 1.0)]])
class PopularityFollowsZipf:
    """Kind k is drawn with a probability proportional to 1 / (k + 1) ** exponent; kinds count from 0."""

    def inputs(rng, kinds, exponent):
        return {"kinds": kinds, "exponent": exponent, "seed": int(rng.integers(1 << 30))}

    def observe(solution, inputs):
        rng = np.random.default_rng(inputs["seed"])
        return np.asarray(solution.module("cluster.workload").zipf(rng, inputs["kinds"], inputs["exponent"], 20_000))

    def verify(inputs, got):
        kinds, exponent, n = inputs["kinds"], inputs["exponent"], len(got)
        explain(n, 20_000, f"{n} draws, expected 20,000")
        explain(got.dtype.kind, "i", f"draws are {got.dtype}: expected integers, they are used as indices")
        if got.min() < 0 or got.max() >= kinds:
            raise AssertionError(f"draws go from {got.min()} to {got.max()}: expected kinds 0 to {kinds - 1}")
        counts = np.bincount(got, minlength=kinds)

        def like(law: np.ndarray) -> bool:
            return bool((np.abs(counts - n * law) <= 5.5 * np.sqrt(n * law * (1 - law)) + 1e-9).all())

        law, k = zipf_law(kinds, exponent), np.arange(kinds)
        suspects = {
            "the popular ones are at the end": law[::-1],
            "the exponent was ignored": zipf_law(kinds, 1.0),
            "all kinds are equally popular": np.full(kinds, 1 / kinds),
            "popularity falls by a factor from kind to kind, not by a power of the rank": 2.0**-k / (2.0**-k).sum(),
            "ranks begin at 2": zipf_law(kinds + 1, exponent)[1:] / zipf_law(kinds + 1, exponent)[1:].sum(),
            "the first or the last kind lacks its share": np.concatenate([law[1:], law[:1]]),
        }
        shares, wanted = (", ".join(f"{share:.3f}" for share in law) for law in (counts / n, law))
        expect(
            like(law),
            f"{kinds} kinds, exponent {exponent}: shares are {shares}, expected {wanted}",
            {text: like(other) for text, other in suspects.items()},
        )


def blocks(tokens: int, size: int) -> int:
    return -(-tokens // size)


@case(task=1, params=[
    {"prefix": None, "size": 512}, {"prefix": 70, "size": 32}, {"prefix": 64, "size": 32}, {"prefix": 20, "size": 32},
])  # fmt: skip
class PromptsShareWholeBlocks:
    """Prompts of a kind share the ids of the whole blocks of their system prompt, and no other block is ever equal."""

    def inputs(rng, prefix, size):
        n = 400
        times = np.cumsum(rng.integers(0, 1000, n)).astype(np.int64)
        own, out = int(rng.integers(40, 200)), int(rng.integers(2, 90))
        seed = int(rng.integers(1 << 30))
        return {"times": times, "own": own, "out": out, "prefix": prefix, "size": size, "kinds": 3, "seed": seed}

    def observe(solution, inputs):
        m = solution.module("cluster.workload")
        rng, prefixes = np.random.default_rng(inputs["seed"]), None
        if inputs["prefix"] is not None:
            prefixes = m.SharedPrefixes(inputs["kinds"], inputs["prefix"], 1.0)
        made = m.generate(
            rng, inputs["times"], m.Lengths(inputs["own"]), m.Lengths(inputs["out"]), prefixes, inputs["size"]
        )
        types = [type(value).__name__ for value in (*made[0][:3], *made[0].hash_ids[:1], type(made[0].hash_ids)())]
        return {"types": types, "made": [[*a[:3], list(a.hash_ids), a.session] for a in made]}

    def verify(inputs, got):
        prefix, size, own, out = inputs["prefix"] or 0, inputs["size"], inputs["own"], inputs["out"]
        explain(got["types"], ["int"] * 4 + ["tuple"], f"times, lengths and ids are {got['types'][:4]}, ids are in a "
            f"{got['types'][4]}: NumPy's integers must not reach the kernel, expected int and tuple")  # fmt: skip
        made, shared = got["made"], prefix // size
        explain([a[0] for a in made], inputs["times"].tolist(), "the times are not those that were given")
        lengths = sorted({a[1] for a in made})
        explain(lengths, [prefix + own], f"prompts have {lengths} tokens: a system prompt of {prefix} and {own} of "
            f"their own are {prefix + own}", {
            "the system prompt's tokens were not added": [own],
            "only the whole blocks of the system prompt were added": [shared * size + own],
        })  # fmt: skip
        explain({a[2] for a in made}, {out}, f"answers have {sorted({a[2] for a in made})} tokens, expected {out}")
        n_ids = sorted({len(a[3]) for a in made})
        want = blocks(prefix + own, size)
        explain(n_ids, [want], f"prompts of {prefix + own} tokens have {n_ids} ids of blocks of {size}, expected "
            f"{want}", {
            "the last block, which is cut short, has no id": [(prefix + own) // size],
            "the blocks of the system prompt were counted twice": [want + shared],
        })  # fmt: skip
        heads = {tuple(a[3][:shared]) for a in made}
        kinds = inputs["kinds"] if shared else 1
        explain(len(heads), kinds, f"there are {len(heads)} different beginnings of {shared} blocks, expected {kinds}")
        own_ids = [i for a in made for i in a[3][shared:]]
        common = set(own_ids) & {i for head in heads for i in head}
        found = {
            "the block in which the system prompt ends was shared, though it goes on differently": bool(
                prefix % size and shared < blocks(prefix, size) and len({a[3][shared] for a in made}) <= inputs["kinds"]
            )
        }
        explain((len(set(own_ids)), common), (len(own_ids), set()), "blocks that only one prompt has carry the id of "
            "another block", {m: (len(set(own_ids)), common) for m, hit in found.items() if hit})  # fmt: skip
        if shared:
            tops = sorted((sum(tuple(a[3][:shared]) == head for a in made) for head in heads), reverse=True)
            z = (np.array(tops) - 400 * zipf_law(3, 1.0)) / np.sqrt(400 * zipf_law(3, 1.0))
            expect((np.abs(z) < 5).all(), f"the kinds have {tops} requests: expected about 218, 109, 73 (Zipf's law)")


@case(task=1)
class LengthsAreIndependent:
    """Prompts and answers have the lengths that were asked for, each drawn on its own."""

    def inputs(rng):
        return {"seed": int(rng.integers(1 << 30)), "own": float(rng.uniform(200, 2000))}

    def observe(solution, inputs):
        m, runs = solution.module("cluster.workload"), []
        for seed in (0, 0, 1):
            rng = np.random.default_rng(inputs["seed"] + seed)
            made = m.generate(rng, np.arange(6000), m.Lengths(inputs["own"], 0.5), m.Lengths(300, 1.0))
            runs.append(np.array([[a.input_length, a.output_length] for a in made], np.float64))
        return runs

    def verify(inputs, got):
        got, again, other = got
        for column, what in enumerate(("prompts", "answers")):
            same = [bool((got[:, column] == some[:, column]).all()) for some in (again, other)]
            explain(same, [True, False], f"lengths of {what} are the same for [the same seed, another seed]: {same}: "
                "all randomness comes from `rng`")  # fmt: skip
        for values, mean, cv, what in ((got[:, 0], inputs["own"], 0.5, "prompts"), (got[:, 1], 300, 1.0, "answers")):
            off = abs(values.mean() - mean) / (mean * cv / math.sqrt(6000))
            text = f"{what} have {values.mean():.4g} tokens on average, expected {mean:.4g}"
            expect(off < 6, text, {"prompts and answers were exchanged": off > 50})
        together = float(np.corrcoef(got.T)[0, 1])
        expect(abs(together) < 0.1, f"lengths of prompts and answers are correlated ({together:.2f}): the same random "
            "numbers were used twice")  # fmt: skip


def drive(workload: object, service: int, most: int = 4000) -> list[list]:
    """Serve everybody at once, for `service` ns each. Returns [time, arrival as plain values, when it was asked]."""
    heap, seen, order = [], [], count()
    for arrival in workload.initial():
        heapq.heappush(heap, (arrival.time_ns, next(order), "arrive", arrival, 0))
    while heap and len(seen) < most:
        now, _, what, arrival, asked = heapq.heappop(heap)
        if what == "arrive":
            seen.append([now, [*arrival[:3], list(arrival.hash_ids), arrival.session], asked])
            heapq.heappush(heap, (now + service, next(order), "done", arrival, 0))
        elif (after := workload.after(arrival, now)) is not None:
            heapq.heappush(heap, (after.time_ns, next(order), "arrive", after, now))
    return seen


def assert_thinking(pauses: np.ndarray, think: float) -> None:
    """Pauses are exponential with mean `think`, all 0 for 0."""
    if not think:
        expect(pauses.max() == 0, f"think is 0, but somebody paused for {pauses.max():.3g} s")
        return
    text = (
        f"pauses have mean {pauses.mean():.3g} s and deviation {pauses.std():.3g} s: expected an exponential one, mean"
    )
    expect(fits(pauses, gamma_cdf(1, think)), f"{text} {think}", {
        "nobody thinks": (pauses == 0).all(),
        "everybody thinks equally long": pauses.std() < 0.01 * think < pauses.mean(),
    })  # fmt: skip


@case(task=1, params=[{"users": 1, "think": 0.0}, {"users": 7, "think": 0.0}, {"users": 5, "think": 0.3}])
class UsersWaitForTheirAnswers:
    """In a closed loop each user asks again only after its answer and a pause, until `requests` were asked."""

    def inputs(rng, users, think):
        seed, service = (int(rng.integers(1, 1 << 28)) for _ in range(2))
        return {"users": users, "think": think, "requests": 900 + users, "seed": seed, "service": service}

    def observe(solution, inputs):
        m, w = solution.module("cluster.closed_loop"), solution.module("cluster.workload")

        def make(requests: int):
            rng = np.random.default_rng(inputs["seed"])
            options = {"inputs": w.Lengths(100), "outputs": w.Lengths(10), "think": inputs["think"]}
            return m.ClosedLoop(rng=rng, users=inputs["users"], requests=requests, **options)

        return {
            "seen": drive(make(inputs["requests"]), inputs["service"]),
            "few": len(drive(make(1), inputs["service"])),
            "alien": make(50).after(w.Arrival(0, 1, 1), 5) is None,
        }

    def verify(inputs, got):
        users, service, seen = inputs["users"], inputs["service"], got["seen"]
        explain(len(seen), inputs["requests"], f"{len(seen)} requests were asked, expected {inputs['requests']}", {
            "nobody stops: `left` was not looked at, or not counted down": 4000,
            "the last one was not asked": inputs["requests"] - 1,
            "only the first question of each user was asked": users,
        })  # fmt: skip
        explain(got["few"], 1, f"{got['few']} requests were asked, of 1")
        explain(got["alien"], True, "a request without a session belongs to no user: nothing follows it")
        changes = sorted([(now, 1) for now, *_ in seen] + [(now + service, -1) for now, *_ in seen])
        most = int(max(np.cumsum([change for _, change in changes])))
        expect(most <= users, f"{users} users had {most} questions at a time: somebody asked before its answer")
        others = sum(a[4] not in range(users) for _, a, _ in seen)
        expect(not others, f"{others} questions carry other sessions than users 0 .. users - 1")
        ids = [i for _, a, _ in seen for i in a[3]]
        explain(len(set(ids)), len(ids), "each question is a new conversation, but blocks came again")
        pauses = np.array([(now - asked) / SECOND for now, _, asked in seen[users:]])
        expect((pauses >= 0).all(), "a question came before the answer to the one before")
        assert_thinking(pauses, inputs["think"])


@case(task=1, params=[{"size": 32, "think": 0.0}, {"size": 100, "think": 0.0}, {"size": 512, "think": 0.2}])
class ATurnRepeatsWhatWasSaid:
    """A turn's prompt is all that was said, answers too, and new tokens; whole blocks of the last prompt come again."""

    def inputs(rng, size, think):
        draw = lambda low, high: int(rng.integers(low, high))  # noqa: E731
        return {
            "size": size, "think": think, "new": draw(30, 300), "answer": draw(10, 200), "turns": draw(3, 7),
            "times": rng.integers(0, SECOND, 60).tolist(), "seed": draw(0, 1 << 30), "service": draw(1, 5000),
        }  # fmt: skip

    def observe(solution, inputs):
        m, w = solution.module("cluster.closed_loop"), solution.module("cluster.workload")
        talks = m.Conversations(
            rng=np.random.default_rng(inputs["seed"]),
            times=np.array(inputs["times"]),
            turns=w.Lengths(inputs["turns"]),
            inputs=w.Lengths(inputs["new"]),
            outputs=w.Lengths(inputs["answer"]),
            think=inputs["think"],
            block_tokens=inputs["size"],
        )
        alien = talks.after(w.Arrival(0, 1, 1), 5) is None
        most = len(inputs["times"]) * (inputs["turns"] + 5)
        return {"seen": drive(talks, inputs["service"], most), "alien": alien}

    def verify(inputs, got):
        size, new, answer, turns = (inputs[name] for name in ("size", "new", "answer", "turns"))
        explain(got["alien"], True, "a request without a session belongs to no conversation: nothing follows it")
        talks = [[(now, a, asked) for now, a, asked in got["seen"] if a[4] == s] for s in range(len(inputs["times"]))]
        lengths = sorted({len(talk) for talk in talks})
        explain(lengths, [turns], f"conversations have {lengths} turns, expected {turns}", {
            "one turn too many": [turns + 1], "one turn too few": [turns - 1], "nothing follows an answer": [1],
            "the turns are never counted down": lengths if max(lengths) > turns + 1 else None,
        })  # fmt: skip
        for talk in talks:
            for turn, ((before, one, _), (now, two, asked)) in enumerate(pairwise(talk), 1):
                explain(asked, before + inputs["service"], "a turn came without the answer to the one before")
                expect(now >= asked, f"turn {turn} comes {asked - now} ns before the answer to the one before")
                said = one[1] + answer
                explain(two[1], said + new, f"turn {turn} has a prompt of {two[1]} tokens, after {one[1]} and an "
                    f"answer "
                    f"of {answer} expected {said + new}", {
                    "the answer is not part of what was said": one[1] + new,
                    "only the new tokens are in the prompt": new,
                    "only the last answer was kept": answer + new,
                    "nobody asked anything new": said,
                })  # fmt: skip
                whole = one[1] // size
                kept = next((i for i, (a, b) in enumerate(zip(one[3], two[3], strict=False)) if a != b), len(one[3]))
                explain(kept, whole, f"the prompt before had {one[1]} tokens: {whole} whole blocks of {size} come "
                    f"again, "
                    f"got {kept}", {
                    "the block that the prompt cut short was taken for whole": blocks(one[1], size),
                    "no block comes again": 0,
                    "blocks with tokens of the answer come again": min(said // size, len(one[3])),
                })  # fmt: skip
                explain(len(two[3]), blocks(two[1], size), f"a prompt of {two[1]} tokens has {len(two[3])} ids")
        pauses = np.array([(now - asked) / SECOND for talk in talks for now, _, asked in talk[1:]])
        assert_thinking(pauses, inputs["think"])
        kept = [[0, *(a[1] // size for _, a, _ in talk)] for talk in talks]
        fresh = [i for t, talk in enumerate(talks) for n, (_, a, _) in enumerate(talk) for i in a[3][kept[t][n] :]]
        explain(len(set(fresh)), len(fresh), "blocks that are new carry ids that were used before")


# Task 2


def history(rng: np.random.Generator, n: int) -> list[dict]:
    """Records as plain fields: answered, aborted, rejected, and still running."""
    made, time = [], 0
    for uid in range(n):
        time += int(rng.integers(0, SECOND // 4))
        kind = rng.choice(["stop", "length", "abort", "rejected", "running"], p=[0.4, 0.3, 0.1, 0.1, 0.1])
        length = int(rng.integers(1, 900))
        hit = int(rng.integers(0, length + 1)) if rng.random() < 0.7 else 0
        fields = {"uid": uid, "input_length": length, "arrival": time, "spans": [], "hit_tokens": 0}
        fields |= {"blocks": blocks(length, 64), "hit_blocks": 0, "finish_reason": str(kind)}
        fields["done"] = time + int(rng.integers(1, SECOND // 5))
        if kind != "rejected":
            tokens = 1 if rng.random() < 0.15 else int(rng.integers(2, 30))
            times = time + np.cumsum(rng.integers(1, SECOND // 20, tokens))
            cut = int(rng.integers(0, tokens)) if tokens > 3 else 0
            fields |= {"spans": [times[:cut].tolist(), times[cut:].tolist()] if cut else [times.tolist()]}
            fields |= {"done": int(times[-1] + rng.integers(0, 900)), "hit_tokens": hit, "hit_blocks": hit // 64}
            fields |= {"prefill_start": time, "prefill_end": int(times[0]), "decode_start": int(times[0])}
        if kind == "running":
            fields |= {"done": None, "finish_reason": None}
        made.append(fields)
    return made


def records(solution, fields: list[dict]) -> list[object]:
    """Records of the package under test; every second piece of times is an array, as in a run."""
    record = solution.module("cluster.record").Record
    arrays = [[np.array(s) if i % 2 else s for i, s in enumerate(f["spans"])] for f in fields]
    return [record(**{**f, "spans": spans}) for f, spans in zip(fields, arrays, strict=True)]


def window(solution, bounds: list[int]) -> object:
    return solution.module("cluster.window").Window(*bounds)


def times_of(fields: dict) -> list[int]:
    return [time for span in fields["spans"] for time in span]


def complete(fields: dict) -> bool:
    return fields["finish_reason"] in ("stop", "length")


def latencies(f: dict) -> dict[str, float | None]:
    """TTFT, TPOT and E2E of a request, by their definitions."""
    times, done = times_of(f), f["done"]
    return {
        "ttft": times[0] - f["arrival"] if times else None,
        "e2e": None if done is None else done - f["arrival"],
        "tpot": (done - times[0]) / (len(times) - 1) if done is not None and len(times) > 1 else None,
    }


@case(task=2)
class LatenciesOfARequest:
    """TTFT to the first token, E2E to the end, TPOT = (E2E - TTFT) / (n - 1): None where nothing can be measured."""

    def inputs(rng):
        made = history(rng, 120)
        return [*made, made[0] | {"arrival": 0, "spans": [[0, 0]], "done": 0, "finish_reason": "length"}]

    def observe(solution, inputs):
        made = records(solution, inputs)
        return [[r.ttft, r.e2e, r.tpot] for r in made]

    def verify(inputs, got):
        for f, (ttft, e2e, tpot) in zip(inputs, got, strict=True):
            times, arrival, done = times_of(f), f["arrival"], f["done"]
            what = f"a request of {f['arrival']} ns with tokens at {times[:3]}..{times[-1:]}, done at {done}"
            want = latencies(f)
            first = times[0] if times else None
            explain_near(ttft, want["ttft"], f"TTFT of {what}", {
                "it is a time of the clock, not since the arrival": first,
                "the last token was taken": times[-1] - arrival if times else None,
            })  # fmt: skip
            explain_near(e2e, want["e2e"], f"E2E of {what}", {
                "it is a time of the clock, not since the arrival": done,
                "it ends with the last token, not when the answer has ended": times[-1] - arrival if times else 0,
                "it begins with the first token": done - first if first is not None and done is not None else 0,
            })  # fmt: skip
            if done is not None and times:
                n = len(times)
                explain_near(tpot, want["tpot"], f"TPOT of {what}, {n} tokens", {
                    "it was divided by the tokens: between n tokens there are n - 1 gaps": (done - first) / n,
                    "the time to the first token was not taken away": (done - arrival) / max(n - 1, 1),
                    "it ends with the last token, not when the answer has ended": (times[-1] - first) / max(n - 1, 1),
                    "with one token there is no gap to average": done - first,
                    "with one token there is no gap, and no 0 either": 0.0 if n == 1 else None,
                    "it was rounded to whole ns": (done - first) // max(n - 1, 1),
                })  # fmt: skip
            else:
                explain(tpot, want["tpot"], f"TPOT of {what}: got {tpot}, expected None")


@case(task=2)
class WarmUpAndDrainAreDropped:
    """The measured window begins `warm_up` after the first arrival and ends at the last arrival."""

    def inputs(rng):
        fields = history(rng, 40)
        rng.shuffle(fields)
        span = max(f["arrival"] for f in fields) - min(f["arrival"] for f in fields)
        return {"fields": fields, "warm_up": int(rng.integers(1, span)), "span": span}

    def observe(solution, inputs):
        steady, made = solution.module("cluster.window").steady_state, records(solution, inputs["fields"])
        span = inputs["span"]
        asked = [(made, inputs["warm_up"]), (made, 0), (made, span), (made, span + 7), ([], 5)]
        return [error_of(lambda r=r, w=w: [int(edge) for edge in steady(r, w)]) for r, w in asked]

    def verify(inputs, got):
        arrivals, warm_up = [f["arrival"] for f in inputs["fields"]], inputs["warm_up"]
        low, high = min(arrivals), max(arrivals)
        ends = [f["done"] for f in inputs["fields"] if f["done"] is not None]
        for result, skipped in zip(got[:2], (warm_up, 0), strict=True):
            explain(result["type"], None, f"steady_state refused a warm-up of {skipped} ns: {result.get('message')}")
            value = result["value"]
            explain(value, [low + skipped, high], f"a warm-up of {skipped} ns of arrivals from {low} to {high}: got "
                f"{value}, expected {[low + skipped, high]}", {
                "the drain was measured too": [low + skipped, max(ends)],
                "the drain was measured too, to just after the last end": [low + skipped, max(ends) + 1],
                "the warm-up was counted from 0, not from the first arrival": [skipped, high],
                "the records were taken to be in the order of their arrivals": [arrivals[0] + skipped, arrivals[-1]],
                "the warm-up was not dropped": [low, high],
            })  # fmt: skip
        for result in got[2:]:
            refused(result, "ValueError", "a warm-up that leaves nothing")


def spread(values: list[float]) -> list[float] | None:
    """Count, mean, deviation, median, p90, p99, maximum."""
    if not values:
        return None
    array = np.array(values, np.float64)
    return [len(values), array.mean(), array.std(), *np.percentile(array, [50, 90, 99]), array.max()]


@case(task=2, params=[{"edges": edges} for edges in ("arrivals", "tokens", "ends", "empty")])
class ASummaryIsOfItsWindow:
    """Latencies of complete requests that arrived in the window, rates of what left in it, and each pool's rho."""

    def inputs(rng, edges):
        fields = history(rng, 80)
        last = fields[-1]["arrival"]
        whole = sorted((f for f in fields if complete(f)), key=lambda f: f["done"])
        early, late = whole[len(whole) // 4], whole[len(whole) * 3 // 4]
        bounds = {
            "arrivals": [early["arrival"], late["arrival"]],
            "tokens": [times_of(early)[-1], times_of(late)[0]],
            "ends": [early["done"], late["done"]],
            "empty": [last * 2, last * 3],
        }[edges]
        work = np.cumsum(rng.integers(1, last // 90, 120)).tolist()
        busy = [[work[i : i + 2] for i in range(0, 60, 2)], [work[i : i + 2] for i in range(1, 119, 2)]]
        return {"fields": fields, "window": bounds, "busy": busy}

    def observe(solution, inputs):
        made, pools = records(solution, inputs["fields"]), []
        for intervals in inputs["busy"]:
            server = solution.module("cluster.busy").BusyTime()
            for start, end in intervals:
                server.add(start, end)
            pools.append(server)
        s = solution.module("cluster.metrics").summarise(
            made, window(solution, inputs["window"]), {"both": pools, "second": pools[1:]}
        )
        plain = lambda d: None if d is None else [float(v) for v in d]  # noqa: E731
        return {
            "window": list(s.window),
            **{name: plain(getattr(s, name)) for name in ("ttft", "tpot", "itl", "e2e")},
            "rates": [float(s.requests_per_second), float(s.tokens_per_second)],
            "hits": [float(v) for v in s.hits],
            "utilisation": {name: float(v) for name, v in s.utilisation.items()},
        }

    def verify(inputs, got):
        fields, (start, end) = inputs["fields"], inputs["window"]
        inside = lambda time: time is not None and start <= time < end  # noqa: E731
        seconds = (end - start) / SECOND
        came = [f for f in fields if inside(f["arrival"]) and complete(f)]
        explain(got["window"], [start, end], "the summary's window is not the one that it was given")
        others = {
            "requests that ended after the window were left out: the slow ones": [f for f in came if inside(f["done"])],
            "those that ended in the window were taken": [f for f in fields if inside(f["done"]) and complete(f)],
            "all requests were taken, of the warm-up too": [f for f in fields if complete(f)],
            "aborted, rejected or unfinished requests were counted": [f for f in fields if inside(f["arrival"])],
        }
        for name in ("ttft", "tpot", "e2e"):
            pick = lambda chosen, name=name: spread([v for f in chosen if (v := latencies(f)[name]) is not None])  # noqa: E731
            self_check(name, got[name], pick(came), {text: pick(chosen) for text, chosen in others.items()})
        gaps = lambda chosen: [float(g) for f in chosen for g in np.diff(times_of(f))]  # noqa: E731
        self_check("itl", got["itl"], spread(gaps(came)), {
            "gaps were averaged per request: that is TPOT, ITL pools all gaps": spread(
                [float(np.mean(np.diff(times_of(f)))) for f in came if len(times_of(f)) > 1]),
            "the time to the first token was counted as a gap": spread(
                [float(g) for f in came for g in np.diff([f["arrival"], *times_of(f)])]),
            **{text: spread(gaps(chosen)) for text, chosen in others.items()},
        })  # fmt: skip
        ended = sum(complete(f) and inside(f["done"]) for f in fields)
        explain_near(got["rates"][0], ended / seconds, "requests per second", {
            "those that arrived were counted, not those that ended": len(came) / seconds,
            "every end was counted, of aborted and rejected ones too": sum(inside(f["done"]) for f in fields) / seconds,
            "it was divided by ns": ended / (end - start),
            "all ends of the run were counted": sum(map(complete, fields)) / seconds,
        })  # fmt: skip
        left = sum(inside(time) for f in fields for time in times_of(f))
        explain_near(got["rates"][1], left / seconds, "tokens per second", {
            "all tokens of those that arrived in the window": sum(len(times_of(f)) for f in came) / seconds,
            "only tokens of those that arrived in the window": sum(
                inside(time) for f in came for time in times_of(f)) / seconds,
            "only tokens of complete requests": sum(
                inside(time) for f in fields if complete(f) for time in times_of(f)) / seconds,
            "all tokens of the run": sum(len(times_of(f)) for f in fields) / seconds,
            "it was divided by ns": left / (end - start),
        })  # fmt: skip
        for i, name in enumerate(("block", "token", "request")):
            explain_near(got["hits"][i], rates(came)[i], f"{name} hit rate", {
                text: rates(chosen)[i] for text, chosen in others.items()})  # fmt: skip
        busy = [sum(max(0, min(b, end) - max(a, start)) for a, b in server) for server in inputs["busy"]]
        for name, share in (("both", sum(busy) / 2), ("second", busy[1])):
            value = got["utilisation"].get(name)
            explain_near(value, share / (end - start), f"utilisation of the pool {name!r}", {})


def self_check(name: str, got: list | None, want: list | None, mistakes: dict[str, list | None]) -> None:
    """Compare two distributions."""
    same = lambda a, b: (a is None) == (b is None) and (a is None or bool(np.allclose(a, b, rtol=1e-9)))  # noqa: E731
    if not same(got, want):
        found = named(m for m, value in mistakes.items() if same(got, value))
        brief = lambda d: "none" if d is None else f"{d[0]:.0f} values with mean {d[1]:.6g}"  # noqa: E731
        raise AssertionError(f"{name}: got {brief(got)}, expected {brief(want)}\n{found}".strip())


def rates(chosen: list[dict]) -> list[float]:
    """The three hit rates, by hand."""
    total = lambda name: sum(f[name] for f in chosen)  # noqa: E731
    return [
        total("hit_blocks") / max(total("blocks"), 1),
        total("hit_tokens") / max(total("input_length"), 1),
        sum(f["hit_tokens"] / f["input_length"] for f in chosen) / max(len(chosen), 1),
    ]


@case(task=2)
class ThreeHitRates:
    """Hits over all blocks, over all tokens, and the mean over requests of their own share are three numbers."""

    def inputs(rng):
        return [f for f in history(rng, 60) if complete(f)]

    def observe(solution, inputs):
        hit_rates = solution.module("cluster.metrics").hit_rates
        return [[float(v) for v in hit_rates(records(solution, fields))] for fields in (inputs, [])]

    def verify(inputs, got):
        want = rates(inputs)
        per_block = sum(f["hit_blocks"] / f["blocks"] for f in inputs) / len(inputs)
        share = sum(f["hit_tokens"] > 0 for f in inputs) / len(inputs)
        for name, value, right in zip(("block", "token", "request"), got[0], want, strict=True):
            explain_near(value, right, f"the hit rate weighted by {name}s", {
                "that is the rate weighted by blocks": want[0],
                "that is the rate weighted by tokens": want[1],
                "that is the rate weighted by requests": want[2],
                "shares of blocks were averaged over requests": per_block,
                "requests with a hit were counted, not what they hit": share,
            })  # fmt: skip
        explain(got[1], [0.0] * 3, f"hit rates of no request are {got[1]}, expected 0")


@case(task=2, params=[{"cut": False}, {"cut": True}])
class LittlesLawHolds:
    """Requests in the system on average: the area under their number over the window's length, so L = lambda W."""

    def inputs(rng, cut):
        fields = history(rng, 120)
        ends = [f["done"] for f in fields if f["done"] is not None]
        if not cut:
            fields = [f for f in fields if complete(f)]
            ends = [f["done"] for f in fields]
        return {"fields": fields, "window": [max(ends) // 5, max(ends) // 2] if cut else [0, max(ends)]}

    def observe(solution, inputs):
        mean = solution.module("cluster.metrics").mean_in_system
        return float(mean(records(solution, inputs["fields"]), window(solution, inputs["window"])))

    def verify(inputs, got):
        fields, (start, end) = inputs["fields"], inputs["window"]

        def area(chosen: list[dict], close: Callable[[dict], int | None]) -> float:
            inside = [(max(f["arrival"], start), min(e, end)) for f in chosen if (e := close(f)) is not None]
            return sum(max(0, b - a) for a, b in inside) / (end - start)

        let_in = [f for f in fields if f["finish_reason"] != "rejected"]
        explain_near(got, area(let_in, lambda f: end if f["done"] is None else f["done"]), "requests in the system", {
            "those that have not ended were left out": area(let_in, lambda f: f["done"]),
            "rejected requests were counted": area(fields, lambda f: end if f["done"] is None else f["done"]),
            "only those that are inside the window from their arrival to their end": sum(
                f["done"] - f["arrival"] for f in let_in
                if f["done"] is not None and start <= f["arrival"] and f["done"] <= end) / (end - start),
            "the parts outside the window were counted": sum(
                (end if f["done"] is None else f["done"]) - f["arrival"] for f in let_in) / (end - start),
        })  # fmt: skip
        if start == 0:
            rate, mean = len(fields) / end, sum(f["done"] - f["arrival"] for f in fields) / len(fields)
            expect(math.isclose(got, rate * mean, rel_tol=1e-12), f"L is {got}, lambda W is {rate * mean}")


@case(task=2, params=[{"bounds": b} for b in ("ttft", "tpot", "e2e", "all", "none")])
class GoodAnswersMeetAllObjectives:
    """Attainment: the share of arrivals with a whole answer inside all bounds. Goodput: such answers per second."""

    def inputs(rng, bounds):
        fields = history(rng, 120)
        known = [latencies(f) for f in fields if complete(f)]
        middle = {n: int(np.median([v[n] for v in known if v[n] is not None])) for n in ("ttft", "tpot", "e2e")}
        chosen = {n: v for n, v in middle.items() if bounds in (n, "all")}
        exact = next(v["ttft"] for v in known if v["ttft"] > 0)  # somebody is exactly at the bound
        if bounds == "ttft":
            chosen["ttft"] = exact
        last = fields[-1]["arrival"]
        return {"fields": fields, "bounds": chosen, "window": [last // 5, last * 4 // 5]}

    def observe(solution, inputs):
        m = solution.module("cluster.goodput")
        made, w = records(solution, inputs["fields"]), window(solution, inputs["window"])
        objective = m.Objective(**inputs["bounds"])
        return {
            "met": [bool(objective.met(r)) for r in made],
            "attainment": float(m.attainment(made, objective, w)),
            "goodput": float(m.goodput(made, objective, w)),
            "nobody": float(m.attainment([], objective, w)),
        }

    def verify(inputs, got):
        bounds, (start, end) = inputs["bounds"], inputs["window"]
        seconds = (end - start) / SECOND

        def good(f: dict, any_of: bool = False, below: bool = False, partly: bool = False, single: bool = True) -> bool:
            values = [(latencies(f)[name], bound) for name, bound in bounds.items()]
            if not (complete(f) or partly) or (f["done"] is None and partly):
                return False
            if not single and len(times_of(f)) < 2 and "tpot" in bounds:
                return False
            results = [v is None or (v < b if below else v <= b) for v, b in values]
            return any(results) if any_of and results else all(results)

        ways = {
            "one objective was enough": {"any_of": True},
            "a value at its bound was a miss": {"below": True},
            "answers that were aborted or rejected were taken as good": {"partly": True},
            "an answer of one token missed TPOT: it has none to miss": {"single": False},
        }
        for f, met in zip(inputs["fields"], got["met"], strict=True):
            explain(met, good(f), f"objectives {bounds}, a request with {latencies(f)} that ended by "
                f"{f['finish_reason']!r}: met is {met}", {m: good(f, **way) for m, way in ways.items()})  # fmt: skip
        came = [f for f in inputs["fields"] if start <= f["arrival"] < end]
        ended = [f for f in inputs["fields"] if f["done"] is not None and start <= f["done"] < end]
        share = lambda chosen: sum(map(good, chosen)) / max(len(chosen), 1)  # noqa: E731
        explain_near(got["attainment"], share(came), "attainment", {
            "requests that were rejected, aborted or have not ended are misses": share(list(filter(complete, came))),
            "rejected requests count as missed": share([f for f in came if f["finish_reason"] != "rejected"]),
            "those that have not ended count as missed": share([f for f in came if f["done"] is not None]),
            "those that ended in the window were taken, not those that arrived": share(ended),
            "requests outside the window were counted": share(inputs["fields"]),
        })  # fmt: skip
        explain_near(got["goodput"], sum(map(good, ended)) / seconds, "goodput", {
            "those that arrived in the window were counted, not those that ended": sum(map(good, came)) / seconds,
            "it is a share, not a rate": share(ended),
            "all requests were counted": sum(map(good, inputs["fields"])) / seconds,
            "it was divided by ns": sum(map(good, ended)) / (end - start),
            "every answer was counted, good or not": sum(map(complete, ended)) / seconds,
        })  # fmt: skip
        explain(got["nobody"], 1.0, f"attainment without any request is {got['nobody']}: nobody was let down, 1")


@case(task=2, params=[{"target": 0.9}, {"target": 0.5}, {"target": 0.99}])
class TheHighestRateIsFound:
    """Bisection finds the highest rate at which the target is met, with few runs, and returns one that was seen to."""

    def inputs(rng, target):
        return {
            "target": target,
            "limits": rng.uniform(1.5, 60, 12).tolist(),
            "tolerance": float(rng.uniform(0.003, 0.1)),
        }

    def observe(solution, inputs):
        highest_rate, results = solution.module("cluster.goodput").highest_rate, []

        def search(limit: float, low: float, high: float) -> dict:
            asked = []

            def attained(rate: float) -> float:
                asked.append(float(rate))
                if len(asked) > 200:
                    raise RuntimeError("200 runs and no end")
                return inputs["target"] if rate <= limit else inputs["target"] - 0.01

            target = {} if inputs["target"] == 0.9 else {"target": inputs["target"]}
            found = error_of(lambda: float(highest_rate(attained, low, high, tolerance=inputs["tolerance"], **target)))
            return {**found, "asked": asked, "limit": limit}

        results = [search(limit, 1.0, 64.0) for limit in inputs["limits"]]
        results += [search(limit / 100, 0.01, 0.64) for limit in inputs["limits"]]
        return {
            "found": results,
            "slow": [search(0.5, 1.0, 64.0), search(99.0, 1.0, 64.0)],
            "bad": [search(5.0, *pair) for pair in [(0.0, 4.0), (-1.0, 4.0), (4.0, 4.0), (6.0, 4.0)]],
        }

    def verify(inputs, got):
        for result in got["found"]:
            limit, asked = result["limit"], result["asked"]
            explain(result["type"], None, f"the highest rate is {limit:.3f}: {result.get('message')}")
            rate = result["value"]
            passed = [r for r in asked if r <= limit]
            text = f"the target is met up to {limit:.4f}/s: found {rate:.4f} after {len(asked)} runs"
            failed = [r for r in asked if r > limit]
            expect(rate in passed, f"{text}; no run at this rate met the target", {
                "a rate that failed was returned": rate in failed,
                "no run was made at this rate": rate not in asked,
            })  # fmt: skip
            close = limit <= rate * (1 + inputs["tolerance"]) * (1 + 1e-9)
            expect(close, f"{text}: expected at most {inputs['tolerance']:.1%} below", {
                "the tolerance was taken as requests per second, or as a number of halvings": len(failed) > 1,
                "the search ended at the first failure": len(failed) == 1,
            })  # fmt: skip
            most = math.ceil(math.log2(64 / (inputs["tolerance"] * 1.0))) + 3
            expect(len(asked) <= most, f"{text}: bisection needs at most {most}")
        low, high = got["slow"]
        explain(low.get("value"), 0.0, f"a `low` that is too fast gave {low.get('value')}: expected 0")
        explain(
            high.get("value"), 64.0, f"a `high` that is not too fast gave {high.get('value')}: expected the `high`, 64"
        )
        expect(len(high["asked"]) <= 2, f"{len(high['asked'])} runs to find that 64/s is fine")
        for result in got["bad"]:
            refused(result, "ValueError", "rates that do not satisfy 0 < low < high")


# Task 3


def parts(solution) -> SimpleNamespace:
    """The names of Task 3, of the package under test."""
    names = {
        "lazy": ["Lazy", "lazy", "sync_await"],
        "awaitable": ["Context", "Err", "Ok", "Suspend", "reschedule"],
        "collect": ["collect_all", "collect_any"],
        "executor": ["RunQueue"],
        "signal": ["Signal"],
    }
    found = {name: getattr(solution.module(f"cluster.{file}"), name) for file, ns in names.items() for name in ns}
    return SimpleNamespace(**found)


def told(outcome: object) -> list:
    """An outcome as plain values."""
    if hasattr(outcome, "error"):
        return [type(outcome.error).__name__, str(outcome.error)]
    return ["value", told(outcome.value) if hasattr(outcome.value, "get") else outcome.value]


def bare(function: Callable[[], object]) -> list:
    """What a call gave, in the same form; a stub's error goes through. CancelledError is no Exception."""
    try:
        result = error_of(function)
    except asyncio.CancelledError:
        return ["CancelledError", ""]
    return ["value", result["value"]] if result["type"] is None else [result["type"], result["message"]]


@case(task=3)
class CreationRunsNothing:
    """Making a lazy task, its attempt, or a collection of tasks runs nothing; running it runs it once, never twice."""

    def inputs(rng):
        return {"value": int(rng.integers(1, 1000))}

    def observe(solution, inputs):
        n, log, found = parts(solution), [], {}

        @n.lazy
        async def work(value):
            log.append(value)
            return value + inputs["value"]

        makers = {
            "a task": lambda: work(1),
            "an attempt": lambda: work(2).attempt(),
            "a bound task": lambda: work(3).via(n.RunQueue()),
            "collect_all": lambda: n.collect_all([work(4), work(5)]),
            "collect_any": lambda: n.collect_any([work(6), work(7)]),
        }
        for name, make in makers.items():
            del log[:]
            task = make()
            made = list(log)
            result = bare(lambda task=task: repr(n.sync_await(task)))
            ran = list(log)
            again = bare(lambda task=task: repr(n.sync_await(task)))
            found[name] = {"made": made, "result": result, "ran": ran, "again": again, "log": list(log)}
        return found

    def verify(inputs, got):
        ran = {"a task": [1], "an attempt": [2], "a bound task": [3], "collect_all": [4, 5], "collect_any": [6, 7]}
        for name, result in got.items():
            explain(result["made"], [], f"{name}: making it ran {result['made']}; nothing may run before it is awaited "
                "or started")  # fmt: skip
            explain(result["result"][0], "value", f"{name}: running it raised {result['result']}")
            explain(result["ran"], ran[name], f"{name}: running it ran {result['ran']}, expected {ran[name]}")
        for name in ("a task", "a bound task"):
            again, log = got[name]["again"], got[name]["log"]
            explain(
                again[0], "RuntimeError", f"{name} that has run was run again: got {again}, expected a RuntimeError"
            )
            explain(log, ran[name], f"{name} ran twice: {log}")


@case(task=3, params=[{"kind": k} for k in ("awaits", "errors", "waits", "resumed", "window")], timeout=20.0)
class NothingNestsOnTheStack:
    """50,000 awaits inside each other, exceptions through them, and waits that end at once need no Python stack."""

    def inputs(rng, kind):
        return {"kind": kind, "n": 50_000 + int(rng.integers(0, 100))}

    def observe(solution, inputs):
        n, count_ = parts(solution), inputs["n"]

        @n.lazy
        async def down(depth):
            if depth == 0 and inputs["kind"] == "errors":
                raise KeyError("bottom")
            return 0 if depth == 0 else 1 + await down(depth - 1)

        @n.lazy
        async def waits(executor_waits):
            for i in range(count_):
                got = await n.Suspend(lambda resume, _, i=i: resume(n.Ok(i)))
                assert got == i, f"a Suspend that was resumed with {i} gave {got!r}"
            return count_

        @n.lazy
        async def quick():
            return 1

        @n.lazy
        async def window():
            return len(await n.collect_all([quick() for _ in range(count_ // 4)], 3))

        make = {"awaits": lambda: down(count_), "errors": lambda: down(count_), "window": window}
        task = make.get(inputs["kind"], lambda: waits(0))()
        queue = n.RunQueue() if inputs["kind"] == "resumed" else None
        return bare(lambda: n.sync_await(task, queue) if queue else n.sync_await(task))

    def verify(inputs, got):
        n = inputs["n"]
        want = {"errors": ["KeyError", "'bottom'"], "window": ["value", n // 4]}.get(inputs["kind"], ["value", n])
        explain(got, want, f"{inputs['kind']}, {n} deep: got {got}, expected {want}", {
            "each level is a call on Python's stack: keep suspended coroutines in a list, and let one loop drive "
            "them": got if "recursion" in str(got).lower() else None,
        })  # fmt: skip


def program(rng: random.Random, depth: int = 0) -> list:
    """A random body: what it logs, awaits, tries, raises and returns."""
    body = []
    for _ in range(rng.randrange(1, 5)):
        kind = rng.choice(
            ["log", "log", "wait", "call", "call", "attempt", "try", "fail"] if depth < 5 else ["log", "wait"]
        )
        if kind in ("call", "attempt", "try"):
            body.append([kind, program(rng, depth + 1)])
        elif kind != "fail" or rng.random() < 0.3:
            body.append([kind, rng.randrange(1000)])
    return body


def plainly(body: list, log: list) -> int:
    """What a program does, as calls: the oracle."""
    total = 0
    try:
        for kind, what in body:
            if kind == "log":
                log.append(what)
                total += what
            elif kind == "wait":
                total += what
            elif kind == "fail":
                raise ValueError(f"f{what}")
            else:
                try:
                    total += plainly(what, log)
                except ValueError as error:
                    if kind == "call":
                        raise
                    log.append(f"{kind} {error}")
        return total
    finally:
        log.append("left")


@case(task=3, params=[{"queue": False}, {"queue": True}])
class AwaitsAreCalls:
    """Random nests of awaits, tries, exceptions and `finally` blocks do what the same nests of plain calls do."""

    def inputs(rng, queue):
        seed = random.Random(int(rng.integers(1 << 30)))
        return {"queue": queue, "programs": [program(seed) for _ in range(60)]}

    def observe(solution, inputs):
        n, results = parts(solution), []

        def body(steps, log, resumes):
            async def run():
                total = 0
                try:
                    for kind, what in steps:
                        if kind == "log":
                            log.append(what)
                            total += what
                        elif kind == "wait":
                            total += await n.Suspend(lambda resume, _, what=what: resumes.append((resume, what)))
                        elif kind == "fail":
                            raise ValueError(f"f{what}")
                        elif kind == "attempt":
                            outcome = await n.Lazy(body(what, log, resumes)).attempt()
                            if isinstance(outcome, n.Err):
                                log.append(f"attempt {outcome.error}")
                            else:
                                total += outcome.value
                        else:
                            try:
                                total += await n.Lazy(body(what, log, resumes))
                            except ValueError as error:
                                if kind == "call":
                                    raise
                                log.append(f"try {error}")
                    return total
                finally:
                    log.append("left")

            return run

        for steps in inputs["programs"]:
            log, resumes, outcomes, queue = [], [], [], n.RunQueue()
            task = n.Lazy(body(steps, log, resumes))
            (task.via(queue) if inputs["queue"] else task).start(outcomes.append)
            queue.run(lambda: False)
            while resumes:
                resume, value = resumes.pop()
                resume(n.Ok(value))
                queue.run(lambda: False)
            results.append([log, [told(outcome) for outcome in outcomes]])
        return results

    def verify(inputs, got):
        for steps, (log, outcomes) in zip(inputs["programs"], got, strict=True):
            want_log: list = []
            want = bare(lambda steps=steps, want_log=want_log: plainly(steps, want_log))
            what = f"program {steps}"
            explain(len(outcomes), 1, f"{what}: the callback was called {len(outcomes)} times with {outcomes}", {
                "the task never ends: an outcome was lost": 0})  # fmt: skip
            explain(outcomes[0], want, f"{what}: its outcome is {outcomes[0]}, expected {want}", {
                "the exception was returned as a value": ["value", want[1]]})  # fmt: skip
            explain(log, want_log, f"{what}: it did {log}, expected {want_log}")


@case(task=3)
class ExceptionsGoToTheAwaitingSide:
    """An exception, of a task, of a wait or of what cannot be awaited, is raised at the await: catch it there."""

    def inputs(rng):
        return {"word": f"w{int(rng.integers(1000))}"}

    def observe(solution, inputs):
        n, word = parts(solution), inputs["word"]

        def broken(resume, context):
            raise KeyError(word)

        async def fail():
            raise KeyError(word)

        async def give_up():
            raise asyncio.CancelledError

        awaitables = {
            "a task that raises": lambda: n.Lazy(fail),
            "a wait that is resumed with an exception": lambda: n.Suspend(lambda r, _: r(n.Err(KeyError(word)))),
            "a wait whose start raises": lambda: n.Suspend(broken),
            "a task that was made wrongly": lambda: n.Lazy(lambda: 1 / 0),
            "a task that was told to stop": lambda: n.Lazy(give_up),
            "the attempt of a task that raises": lambda: n.Lazy(fail).attempt(),
            "the attempt of a task that was told to stop": lambda: n.Lazy(give_up).attempt(),
        }
        found = {}
        for name, make in awaitables.items():

            async def catch(make=make):
                try:
                    outcome = await make()
                except BaseException as error:
                    return ["caught", type(error).__name__]
                return ["given", told(outcome)]

            caught, through = bare(lambda: n.sync_await(n.Lazy(catch))), []
            if "wait" not in name:
                task = make()
                task.start(lambda outcome, through=through: through.append(told(outcome)))
            found[name] = [caught, through]

        async def alien():
            await asyncio.sleep(0)

        found["asyncio's sleep"] = [bare(lambda: n.sync_await(n.Lazy(alien))), []]
        return found

    def verify(inputs, got):
        error = ["KeyError", f"{inputs['word']!r}"]
        wanted = {
            "a task that raises": [["caught", "KeyError"], [error]],
            "a wait that is resumed with an exception": [["caught", "KeyError"], []],
            "a wait whose start raises": [["caught", "KeyError"], []],
            "a task that was made wrongly": [
                ["caught", "ZeroDivisionError"],
                [["ZeroDivisionError", "division by zero"]],
            ],
            "a task that was told to stop": [["caught", "CancelledError"], [["CancelledError", ""]]],
            "the attempt of a task that raises": [["given", error], None],
            "the attempt of a task that was told to stop": [["caught", "CancelledError"], [["CancelledError", ""]]],
        }
        for name, (want, through) in wanted.items():
            caught, outcomes = got[name]
            explain(caught, ["value", want], f"{name}, awaited inside try: got {caught}, expected {want}", {
                "CancelledError became a value: a task that is told to stop must end": ["value", ["given", [
                    "CancelledError", ""]]],
                "the exception was returned, not raised": ["value", ["given", error]],
                "the exception did not reach who awaits": error,
            })  # fmt: skip
            if through is not None:
                explain(outcomes, through, f"{name}, started with a callback: it was called with {outcomes}, expected "
                    f"{through}")  # fmt: skip
        kind, text = got["asyncio's sleep"][0]
        explain((kind, "Lazy" in text), ("TypeError", True), f"a lazy task that awaits asyncio's sleep: {kind}: {text}")


@case(task=3)
class OnlyTheFirstResumeCounts:
    """A wait ends once. A second resume, or one that comes while the task waits for something else, is ignored."""

    def inputs(rng):
        return rng.integers(0, 1000, 5).tolist()

    def observe(solution, inputs):
        n, resumes, log, outcomes = parts(solution), [], [], []

        async def work():
            for _ in range(3):
                log.append(await n.Suspend(lambda resume, _: resumes.append(resume)))
            return "end"

        n.Lazy(work).start(outcomes.append)
        first, second, third, fourth, fifth = inputs
        steps = [[list(log), len(outcomes)]]
        for index, values in ((0, [first, second]), (1, [third]), (0, [fourth]), (2, [fifth, first]), (1, [second])):
            for value in values:
                resumes[index](n.Ok(value))
            steps.append([list(log), len(outcomes)])
        return {"steps": steps, "outcomes": [told(o) for o in outcomes]}

    def verify(inputs, got):
        a, _, c, _, e = inputs
        logs = [steps[0] for steps in got["steps"]]
        want = [[], [a], [a, c], [a, c], [a, c, e], [a, c, e]]
        explain(logs, want, f"three waits, resumed with {inputs} (some twice, or late): the task saw {logs}, "
            f"expected {want}", {
            "the second resume of a wait was taken for the next one": logs if logs[1] != want[1] else None,
        })  # fmt: skip
        explain(got["outcomes"], [["value", "end"]], f"the callback was called with {got['outcomes']}, expected once")


@case(task=3)
class SyncAwaitNeverHangs:
    """sync_await returns or raises, also where nobody is left to resume the task, and in a task of its own queue."""

    def inputs(rng):
        return {"n": int(rng.integers(2, 9))}

    def observe(solution, inputs):
        n = parts(solution)

        async def turns():
            for _ in range(inputs["n"]):
                await n.reschedule()
            return inputs["n"]

        async def stuck():
            await n.reschedule()
            await n.Suspend(lambda *_: None)

        async def nested():
            return n.sync_await(n.Lazy(turns), queue)

        queue = n.RunQueue()
        return {
            "here": bare(lambda: n.sync_await(n.Lazy(turns))),
            "queue": bare(lambda: n.sync_await(n.Lazy(turns), n.RunQueue())),
            "bound": bare(lambda: n.sync_await(n.Lazy(turns).via(n.RunQueue()))),
            "stuck here": bare(lambda: n.sync_await(n.Lazy(stuck))),
            "stuck queue": bare(lambda: n.sync_await(n.Lazy(stuck), n.RunQueue())),
            "nested": bare(lambda: n.sync_await(n.Lazy(nested), queue)),
        }

    def verify(inputs, got):
        for name in ("here", "queue", "bound"):
            explain(got[name], ["value", inputs["n"]], f"a task that waits {inputs['n']} times, {name}: got "
                f"{got[name]}", {
                "the queue of a bound task was not run": got[name] if name == "bound" else None})  # fmt: skip
        for name in ("stuck here", "stuck queue"):
            text = (
                f"a task that nobody can resume ({name}): got {got[name]}, expected a RuntimeError, it would never end"
            )
            explain(got[name][0], "RuntimeError", text, {"a value was returned for a task that has not ended": "value"})
        explain(got["nested"][0], "RuntimeError", f"sync_await inside a task of the same queue: got {got['nested']}, "
            "expected a RuntimeError")  # fmt: skip


@case(task=3)
class ExecutorsAreInherited:
    """A task begins and goes on where it is bound, else where who awaits it runs; after an await it is back there."""

    def inputs(rng):
        return {"rounds": int(rng.integers(1, 4))}

    def observe(solution, inputs):
        n, where, outcomes = parts(solution), [], []
        one, two = n.RunQueue(), n.RunQueue()

        def note(what):
            where.append([what, "one" if one.running else "two" if two.running else "nowhere"])

        async def leaf():
            note("leaf")
            for _ in range(inputs["rounds"]):
                await n.reschedule()
                note("leaf")

        async def middle():
            note("middle")
            await n.Lazy(leaf)
            note("middle")

        async def body():
            await n.Lazy(leaf)
            await n.Lazy(middle).via(two)
            note("body")
            await n.Lazy(leaf).via(one)
            note("body")

        n.Lazy(body).via(one).start(outcomes.append)
        before = list(where)
        for _ in range(40):
            one.run(lambda: False)
            two.run(lambda: False)
        n.Lazy(leaf).start(outcomes.append, n.Context(two))
        two.run(lambda: False)
        return {"before": before, "where": where, "ended": len(outcomes)}

    def verify(inputs, got):
        leaf = [["leaf", "?"]] * (inputs["rounds"] + 1)
        at = lambda place, notes: [[name, place] for name, _ in notes]  # noqa: E731
        middle = [["middle", "?"], *leaf, ["middle", "?"]]
        want = [
            *at("one", leaf),
            *at("two", middle),
            ["body", "one"],
            *at("one", [*leaf, ["body", "?"]]),
            *at("two", leaf),
        ]
        explain(got["before"], [], f"a task that is bound to a queue ran at once: {got['before']}")
        wrong = {
            "the awaited task did not run where it is bound": [*at("one", [*leaf, *middle, ["body", "?"], *leaf, [
                "body", "?"]]), *at("two", leaf)],
            "the one who awaits went on in the other's queue": [*at("one", leaf), *at("two", [*middle, ["body", "?"]])],
        }  # fmt: skip
        explain(got["where"], want, f"a task bound to `one`, which awaits one bound to `two`: got {got['where']}, "
            f"expected {want}", {m: got["where"] for m, v in wrong.items() if got["where"][: len(v)] == v})  # fmt: skip
        explain(got["ended"], 2, f"{got['ended']} of 2 tasks ended")


@case(task=3)
class ASignalEndsWaits:
    """Once its signal is emitted a task gets CancelledError at its wait and at each later one; shielded waits last."""

    def inputs(rng):
        return {"rounds": int(rng.integers(2, 6))}

    def observe(solution, inputs):
        n, found = parts(solution), {}

        def scenario(name, body, emit_first=False):
            signal, log, outcomes, resumes = n.Signal(), [], [], []
            wait = lambda shielded=False: n.Suspend(lambda resume, _: resumes.append(resume), shielded)  # noqa: E731
            if emit_first:
                signal.emit()
            n.Lazy(lambda: body(log, wait)).start(lambda o: outcomes.append(told(o)), n.Context(signal=signal))
            began, known = [list(log), len(outcomes)], len(signal.handlers)
            if not emit_first:
                signal.emit()
            told_ = [list(log), len(outcomes)]
            for resume in list(resumes):
                resume(n.Ok("late"))
            found[name] = {"began": began, "told": told_, "log": log, "outcomes": outcomes, "known": known}

        async def plain(log, wait):
            log.append("begun")
            try:
                await wait()
            finally:
                log.append("cleaned")

        async def stubborn(log, wait):
            for _ in range(inputs["rounds"]):
                try:
                    log.append(await wait())
                except asyncio.CancelledError:
                    log.append("told")
            return "done"

        async def shielded(log, wait):
            log.append(await wait(True))
            await wait()

        async def deep(log, wait):
            await n.Lazy(lambda: plain(log, wait)).attempt()
            log.append("went on")

        async def quick(log, wait):
            await n.reschedule()
            return "done"

        scenario("plain", plain)
        scenario("told before it began", plain, emit_first=True)
        scenario("stubborn", stubborn)
        scenario("shielded", shielded)
        scenario("told before it was shielded", shielded, emit_first=True)
        scenario("deep", deep)
        scenario("quick", quick)
        return found

    def verify(inputs, got):
        stop = [["CancelledError", ""]]
        result = got["plain"]
        explain(result["began"], [["begun"], 0], f"a task that waits: {result['began']}")
        explain(result["told"], [["begun", "cleaned"], 1], f"its signal was emitted: {result['told']}, expected that "
            f"its "
            "`finally` runs and it ends", {"the signal did not end the wait": [["begun"], 0]})  # fmt: skip
        explain(result["outcomes"], stop, f"it ended with {result['outcomes']}, expected CancelledError once")
        early = got["told before it began"]
        explain((early["log"], early["outcomes"]), (["begun", "cleaned"], stop), "a task whose signal was emitted "
            "before it "
            f"began did {early['log']}, {early['outcomes']}: expected that it ends at its first wait", {
            "it waited all the same, and nobody tells it again": (["begun"], []),
            "it waited all the same, and was resumed": (["begun", "cleaned"], [["value", None]])})  # fmt: skip
        want = (["told"] * inputs["rounds"], [["value", "done"]])
        explain((got["stubborn"]["log"], got["stubborn"]["outcomes"]), want, f"a task that goes on after it was told "
            f"saw "
            f"{got['stubborn']['log']}: expected to be told at each of its {inputs['rounds']} waits", {
            "it was told once only": (["told", *["late"] * (inputs["rounds"] - 1)], want[1])})  # fmt: skip
        explain((got["shielded"]["told"], got["shielded"]["log"]), ([[], 0], ["late"]), "a shielded wait was ended "
            "by the "
            f"signal: {got['shielded']['told']}, then {got['shielded']['log']}")  # fmt: skip
        late = got["told before it was shielded"]
        explain((late["log"], late["outcomes"]), (["late"], stop), "a shielded wait that began after the signal was "
            f"emitted: {late['log']}, {late['outcomes']}, expected that it lasts, and the next one ends", {
            "a shielded wait lasts, also where its task was told to stop before": ([], stop)})  # fmt: skip
        explain(got["shielded"]["outcomes"], stop, "after a shielded wait the next wait must raise CancelledError: got "
            f"{got['shielded']['outcomes']}")  # fmt: skip
        explain((got["deep"]["log"], got["deep"]["outcomes"]), (["begun", "cleaned"], stop), "an `attempt` kept a "
            "task alive "
            f"that was told to stop: {got['deep']['log']}, {got['deep']['outcomes']}")  # fmt: skip
        explain(got["quick"]["outcomes"], [["value", "done"]], "a task that ended before the signal was emitted")
        explain(got["quick"]["known"], 0, "the signal still knows handlers of waits that have ended: disconnect them")


@case(task=3, params=[{"queue": q, "window": w} for q in (False, True) for w in (None, 1, 3, 20)])
class AllOutcomesInTheirOrder:
    """collect_all gives all outcomes in the order of its tasks, with at most `window` begun and not ended."""

    def inputs(rng, queue, window):
        n = 9
        rounds, fails = rng.integers(1, 5, n).tolist(), (rng.random(n) < 0.3).tolist()
        return {"queue": queue, "window": window, "rounds": rounds, "fails": fails}

    def observe(solution, inputs):
        n, log = parts(solution), []

        @n.lazy
        async def work(index):
            log.append(["begin", index])
            for _ in range(inputs["rounds"][index]):
                await n.reschedule()
                log.append(["turn", index])
            log.append(["end", index])
            if inputs["fails"][index]:
                raise ValueError(index)
            return index * 10

        @n.lazy
        async def body():
            outcomes = await n.collect_all([work(i) for i in range(len(inputs["rounds"]))], inputs["window"])
            return [told(outcome) for outcome in outcomes]

        async def nobody():
            return await n.collect_all([], inputs["window"])

        run = (lambda task: n.sync_await(task, n.RunQueue())) if inputs["queue"] else n.sync_await
        return {
            "outcomes": bare(lambda: run(body())),
            "log": log,
            "none": bare(lambda: run(n.Lazy(nobody))),
            "bad": [error_of(lambda w=w: bool(n.collect_all([work(0)], w))) for w in (0, -1)]
            if inputs["queue"]
            else [],
        }

    def verify(inputs, got):
        rounds, fails = inputs["rounds"], inputs["fails"]
        n = len(rounds)
        want = [["ValueError", str(i)] if fails[i] else ["value", i * 10] for i in range(n)]
        ended = [i for what, i in got["log"] if what == "end"]
        explain(got["outcomes"], ["value", want], f"nine tasks, some fail: {got['outcomes']}, expected {want}", {
            "outcomes are in the order in which tasks ended": ["value", [want[i] for i in ended]],
            "the first exception stopped all": next((w for w in want if w[0] != "value"), None),
        })  # fmt: skip
        inside, most = 0, 0
        for what, _ in got["log"]:
            inside += {"begin": 1, "end": -1}.get(what, 0)
            most = max(most, inside)
        bound = min(inputs["window"] or n, n) if inputs["queue"] else 1
        where = "with a queue" if inputs["queue"] else "without an executor"
        explain(most, bound, f"{where}, window {inputs['window']}: {most} tasks had begun and not ended, expected "
            f"{bound}", {
            "the window was not looked at": n, "one too many": bound + 1, "one too few": bound - 1,
            "they ran one after the other": 1,
        })  # fmt: skip
        begun = [i for what, i in got["log"] if what == "begin"]
        explain(begun, list(range(n)), f"tasks began in the order {begun}")
        explain(got["none"], ["value", []], f"collect_all of no tasks: got {got['none']}, expected []")
        for result in got["bad"]:
            refused(result, "ValueError", "a window below 1, which would begin nothing")


@case(task=3)
class ChildrenEndBeforeTheirParent:
    """A collect_all that is told to stop ends its children first: none is left when it returns."""

    def inputs(rng):
        return {"n": int(rng.integers(3, 7)), "window": int(rng.integers(1, 4))}

    def observe(solution, inputs):
        n, signal, log, outcomes, resumes = parts(solution), parts(solution).Signal(), [], [], []
        stopped = []

        async def child(name):
            log.append(["begin", name])
            try:
                await n.Suspend(lambda resume, _: resumes.append(resume))
            finally:
                log.append(["end", name])

        async def parent():
            try:
                found = await n.collect_all(
                    [n.Lazy(lambda i=i: child(i)) for i in range(inputs["n"])], inputs["window"]
                )
                stopped.extend(told(one)[0] if hasattr(one, "error") else repr(one) for one in found)
                await n.reschedule()
            finally:
                log.append(["end", "parent"])

        n.Lazy(parent).start(lambda o: outcomes.append(told(o)), n.Context(signal=signal))
        before = list(log)
        signal.emit()
        return {"before": before, "log": log, "outcomes": outcomes, "stopped": stopped}

    def verify(inputs, got):
        window = min(inputs["window"], inputs["n"])
        explain(len(got["before"]), window, f"{len(got['before'])} children began, expected {window}")
        begun = [name for what, name in got["log"] if what == "begin"]
        ends = [name for what, name in got["log"] if what == "end"]
        text = f"children {begun} began, ends came in the order {ends}: expected all of them, then the parent"
        early = "parent" in ends and ends[-1] != "parent"
        right = ends[-1:] == ["parent"] and sorted(ends[:-1]) == sorted(begun)
        expect(right, text, {"the parent did not wait for its children": early or len(ends) <= len(begun)})
        stopped = got["stopped"]
        explain(stopped, ["CancelledError"] * inputs["n"], f"{window} of {inputs['n']} children were stopped, the rest "
            f"had not begun: the outcomes are {stopped}, expected an Err(CancelledError()) for each", {
            "nothing was returned: the one who awaits it is told at its next wait": [],
        })  # fmt: skip
        explain(got["outcomes"], [["CancelledError", ""]], f"the parent ended with {got['outcomes']}")


@case(task=3, params=[{"signal": s, "queue": q} for s in (True, False) for q in (True, False)])
class TheFirstWinsAndLosersGiveBack:
    """collect_any gives the first outcome; losers keep what they reserved until they end, at once with a signal."""

    def inputs(rng, signal, queue):
        rounds = (2 + 3 * rng.permutation(6)).tolist()
        return {"signal": signal, "queue": queue, "rounds": rounds, "fails": bool(rng.random() < 0.5)}

    def observe(solution, inputs):
        n, reserved, queue = parts(solution), [], parts(solution).RunQueue()
        resumes: dict[int, object] = {}

        @n.lazy
        async def work(index, rounds):
            reserved.append(index)
            try:
                for _ in range(rounds):
                    if inputs["queue"]:
                        await n.reschedule()
                    else:
                        await n.Suspend(lambda resume, _: resumes.update({index: resume}))
            finally:
                reserved.remove(index)
            if inputs["fails"]:
                raise ValueError(index)
            return index * 10

        won, at_the_end = [], []

        async def body():
            tasks = [work(i, rounds) for i, rounds in enumerate(inputs["rounds"])]
            index, outcome = await n.collect_any(tasks, n.Signal() if inputs["signal"] else None)
            won.append([index, told(outcome), list(reserved)])
            return "ended"

        (n.Lazy(body).via(queue) if inputs["queue"] else n.Lazy(body)).start(lambda o: at_the_end.append(told(o)))
        for _ in range(2000):
            if won and inputs["signal"]:
                break
            queue.run(lambda: bool(won) and inputs["signal"])
            for index in list(resumes):
                resumes.pop(index)(n.Ok(None))
        queue.run(lambda: False)
        return {"won": won, "end": at_the_end, "left": list(reserved), "none": error_of(lambda: n.collect_any([]))}

    def verify(inputs, got):
        rounds = inputs["rounds"]
        first = rounds.index(min(rounds))
        want = ["ValueError", str(first)] if inputs["fails"] else ["value", first * 10]
        explain(got["end"], [["value", "ended"]], f"who awaits ended with {got['end']}", {
            "the winner's exception was raised: give its outcome": [["ValueError", str(first)]]})  # fmt: skip
        index, outcome, reserved = got["won"][0]
        explain((index, outcome), (first, want), f"tasks of {rounds} rounds: {index} won with {outcome}, expected "
            f"{first} with "
            f"{want}", {"the last one was given": (rounds.index(max(rounds)), outcome)})  # fmt: skip
        if inputs["signal"] and not inputs["queue"]:
            explain(reserved, [], f"the losers {reserved} keep what they reserved: the signal was not emitted")
        if not inputs["signal"]:
            losers = [i for i in range(len(rounds)) if i != first]
            explain(sorted(reserved), losers, f"without a signal the losers run on: {reserved} hold something, "
                f"expected "
                f"{losers}", {"they were told to stop, without a signal": []})  # fmt: skip
        explain(got["left"], [], f"{got['left']} hold something after all have ended: a leak")
        refused(got["none"], "ValueError", "collect_any of no tasks, which would never end")


@case(task=3)
class WhoStopsWaitingStopsTheRace:
    """A collect_any that is told to stop tells its children by the signal, and no coroutine is left unawaited."""

    def inputs(rng):
        return {"n": int(rng.integers(2, 6))}

    def observe(solution, inputs):
        n, held, outcomes = parts(solution), [], []
        outer, inner = n.Signal(), n.Signal()

        async def hold(name):
            held.append(name)
            try:
                await n.Suspend(lambda *_: None)
            finally:
                held.remove(name)

        async def parent():
            await n.collect_any([n.Lazy(lambda i=i: hold(i)) for i in range(inputs["n"])], inner)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            n.Lazy(parent).start(lambda o: outcomes.append(told(o)), n.Context(signal=outer))
            before = list(held)
            outer.emit()
            n.collect_all([n.Lazy(lambda: hold("x"))])  # nobody ever runs this
            gc.collect()
        texts = [str(w.message) for w in caught]
        return {"before": before, "after": held, "outcomes": outcomes, "warnings": texts}

    def verify(inputs, got):
        explain(got["before"], list(range(inputs["n"])), f"{got['before']} of {inputs['n']} tasks began")
        explain(got["outcomes"], [["CancelledError", ""]], f"who awaited the race ended with {got['outcomes']}")
        explain(got["after"], [], f"{got['after']} hold on though nobody waits for them: their signal was not emitted")
        explain(got["warnings"], [], f"Python warns: {got['warnings']}")


# Task 4


def loop_parts(solution) -> SimpleNamespace:
    """The names of Task 4, of the package under test."""
    names = {"virtual_loop": ["VirtualLoop"], "virtual_run": ["run"], "kernel": ["Phase", "Simulation"]}
    found = {name: getattr(solution.module(f"cluster.{file}"), name) for file, ns in names.items() for name in ns}
    return SimpleNamespace(**found)


@case(task=4)
class SleepTakesVirtualTimeOnly:
    """Tasks wake at the very nanosecond, in the order of time, and hours pass without waiting."""

    def inputs(rng):
        return {f"t{i}": rng.integers(1, 40_000 * SECOND, 4).tolist() for i in range(12)}

    def observe(solution, inputs):
        n, log = loop_parts(solution), []
        simulation = n.Simulation()

        async def sleeper(name, naps):
            for nap in naps:
                await asyncio.sleep(nap / SECOND)
                log.append([simulation.now, name])

        async def main():
            loop = asyncio.get_running_loop()
            await asyncio.gather(*(sleeper(name, naps) for name, naps in inputs.items()))
            return [loop.time(), simulation.now, loop.now]

        ended = n.run(main(), simulation)
        return {"log": log, "ended": ended}

    def verify(inputs, got):
        want = sorted((sum(naps[: i + 1]), name) for name, naps in inputs.items() for i in range(len(naps)))
        order = [name for _, name in got["log"]]
        explain(order, [name for _, name in want], f"tasks woke in the order {order}, expected {[n for _, n in want]}")
        off = max(abs(now - due) for (now, _), (due, _) in zip(got["log"], want, strict=True))
        expect(off <= 64, f"a task woke {off} ns from its time: times are seconds outside and ns inside", {
            "times were cut to whole seconds": off > SECOND // 2,
        })  # fmt: skip
        last = got["log"][-1][0]
        explain(
            got["ended"], [last / SECOND, last, last], f"at the end the clocks say {got['ended']}, expected {last} ns"
        )


@case(task=4)
class TimersAreEvents:
    """Timers come at their times to the nearest ns, in Phase.ADMISSION: equal ones as they were made, past ones now."""

    def inputs(rng):
        times = rng.choice([0, 1000, 1001, 5 * SECOND, 7 * SECOND + 3], 30).tolist()
        return {"times": times, "shares": rng.uniform(-0.4, 0.4, 30).tolist(), "start": int(rng.integers(1, 900))}

    def observe(solution, inputs):
        n, log = loop_parts(solution), []
        simulation = n.Simulation()
        loop = n.VirtualLoop(simulation)
        simulation.at(inputs["start"], n.Phase.TELEMETRY, lambda: None)
        simulation.run()
        for i, time in enumerate(inputs["times"]):
            loop.call_at((time + inputs["shares"][i]) / SECOND, lambda i=i: log.append([simulation.now, i]))
        for phase in (n.Phase.TELEMETRY, n.Phase.TRANSFER_DONE):
            simulation.at(5 * SECOND, phase, lambda phase=phase: log.append([simulation.now, phase.name]))
        timer = loop.call_at(1.0, log.append, "x")
        later = loop.call_later(1.5, lambda: log.append([simulation.now, "later"]))
        first = len(log)
        simulation.run()
        return {"log": [entry for entry in log if entry != "x"], "first": first, "when": [timer.when(), later.when()]}

    def verify(inputs, got):
        start = inputs["start"]
        due = [(max(time, start), 1, i) for i, time in enumerate(inputs["times"])]
        due += [(5 * SECOND, 0, "TRANSFER_DONE"), (5 * SECOND, 2, "TELEMETRY"), (start + SECOND * 3 // 2, 1, "later")]
        want = [[time, name] for time, _, name in sorted(due, key=lambda entry: entry[:2])]
        explain(got["first"], 0, "a timer ran when it was made: nothing runs but in the simulation")
        text = f"timers came as {got['log']}, expected {want}"
        same = sorted(map(str, got["log"])) == sorted(map(str, want))
        expect(got["log"] == want, text, {
            "timers do not come in Phase.ADMISSION, or not in the order in which they were made": same,
            "times were cut, not rounded to the nearest ns": any(
                time in (999, 5 * SECOND - 1, 7 * SECOND + 2) for time, _ in got["log"]),
        })  # fmt: skip
        explain(got["when"][0], 1.0, "call_at must return a timer that knows its time")


STEPS = ["yield", "put", "get", "set", "clear", "wait", "spawn", "soon", "cancel", "lock"]


def script(rng: random.Random) -> list:
    """Random tasks on two queues and two events, that spawn, cancel and call back. Times are not needed."""
    return [
        [[rng.choice(STEPS), rng.randrange(4)]
         for _ in range(rng.randrange(3, 9))]
        for _ in range(8)
    ]  # fmt: skip


async def perform(tasks: list, log: list) -> None:
    """Run a script on whatever loop this is, and note what happened in which order."""
    loop = asyncio.get_running_loop()
    queues, events = [asyncio.Queue(2) for _ in range(2)], [asyncio.Event() for _ in range(2)]
    lock, running = asyncio.Lock(), {}

    async def work(name: int) -> None:
        try:
            for kind, k in tasks[name % len(tasks)]:
                log.append([name, kind, k])
                if kind == "yield":
                    await asyncio.sleep(0)
                elif kind == "put":
                    await queues[k % 2].put(name)
                elif kind == "get":
                    log.append([name, "got", await queues[k % 2].get()])
                elif kind in ("set", "clear"):
                    getattr(events[k % 2], kind)()
                elif kind == "wait":
                    await events[k % 2].wait()
                elif kind == "spawn" and len(running) < 30:
                    running[len(running)] = asyncio.create_task(work(len(running)))
                elif kind == "soon":
                    loop.call_soon(log.append, [name, "called", k])
                elif kind == "cancel" and k in running:
                    running[k].cancel()
                elif kind == "lock":
                    async with lock:
                        await asyncio.sleep(0)
        except asyncio.CancelledError:
            log.append([name, "cancelled"])
            raise

    for name in range(len(tasks)):
        running[name] = asyncio.create_task(work(name))
    for _ in range(60):
        await asyncio.sleep(0)
    for task in list(running.values()):
        task.cancel()
    outcomes = await asyncio.gather(*list(running.values()), return_exceptions=True)
    log.append([type(outcome).__name__ for outcome in outcomes])


@case(task=4, params=[{}] * 3)
class TheOrderIsAsyncios:
    """Queues, events, locks, cancels and callbacks run in the very order in which asyncio's own loop runs them."""

    def inputs(rng):
        seed = random.Random(int(rng.integers(1 << 30)))
        return [script(seed) for _ in range(8)]

    def observe(solution, inputs):
        n, logs = loop_parts(solution), []
        for tasks in inputs:
            logs.append([])
            n.run(perform(tasks, logs[-1]))
        return logs

    def verify(inputs, got):
        for tasks, log in zip(inputs, got, strict=True):
            want: list = []
            asyncio.run(perform(tasks, want))
            at = next((i for i, (a, b) in enumerate(zip(log, want, strict=False)) if a != b), min(len(log), len(want)))
            text = f"entry {at} of the log is {log[at : at + 2]}, with asyncio's loop it is {want[at : at + 2]}"
            explain(log, want, f"{text}, after {want[max(at - 3, 0) : at]}")


@case(task=4)
class OnePumpRunsAll:
    """Callbacks that are due together run in one event, and callbacks that they make due in one more."""

    def inputs(rng):
        return {"n": int(rng.integers(50, 300))}

    def observe(solution, inputs):
        n, log = loop_parts(solution), []
        simulation = n.Simulation()
        loop = n.VirtualLoop(simulation)

        def again(i):
            log.append(i)
            if i < inputs["n"]:
                loop.call_soon(again, i + inputs["n"])

        handles = [loop.call_soon(again, i) for i in range(inputs["n"])]
        handles[1].cancel()
        before = len(log)
        found = {"before": before, "events": simulation.run(), "log": list(log), "now": simulation.now}
        loop.call_soon(again, inputs["n"] - 1)
        loop.process("other").call_soon(log.append, "other")
        simulation.run()
        return {**found, "turns": log[-3:]}

    def verify(inputs, got):
        n = inputs["n"]
        kept = [i for i in range(n) if i != 1]
        explain(got["before"], 0, "call_soon ran a callback at once: it must run later, from the simulation")
        explain(got["log"], [*kept, *(i + n for i in kept)], "callbacks ran in another order than they became due", {
            "a callback that was cancelled ran": sorted({*got["log"]}) if 1 in got["log"] else None})  # fmt: skip
        expect(got["events"] == 2, f"{got['events']} events ran {2 * n - 2} callbacks: expected 2", {
            "each callback has an event of its own: schedule one pump at a time": got["events"] > n,
            "a pump was scheduled though nothing is ready": got["events"] == 3,
        })  # fmt: skip
        explain(got["now"], 0, f"callbacks that are due now took {got['now']} ns")
        want = [n - 1, "other", 2 * n - 1]
        explain(got["turns"], want, f"two processes have callbacks due, one makes another due: {got['turns']}, "
            f"expected {want}", {
            "what a callback makes due must run in another round, after all that were due before": [
                n - 1, 2 * n - 1, "other"]})  # fmt: skip


@case(task=4)
class ACancelledTimerTakesNoTime:
    """A timer that was cancelled neither runs nor lets time pass: the run ends when the last thing happens."""

    def inputs(rng):
        return {"nap": int(rng.integers(1, 1000)), "limit": int(rng.integers(2000, 90_000))}

    def observe(solution, inputs):
        n, log = loop_parts(solution), []
        simulation = n.Simulation()

        async def main():
            loop = asyncio.get_running_loop()
            loop.call_later(1500, log.append, "cancelled").cancel()
            same = loop.call_later(inputs["nap"], log.append, "cancelled when it was due")
            loop.call_at(loop.time() + inputs["nap"], same.cancel)
            async with asyncio.timeout(inputs["limit"]):
                await asyncio.sleep(inputs["nap"])
            try:
                async with asyncio.timeout(1):
                    await asyncio.sleep(inputs["limit"])
            except TimeoutError:
                log.append("timed out")
            return loop.time()

        ended = n.run(main(), simulation)
        simulation.run()
        return {"ended": ended, "now": simulation.now, "log": log}

    def verify(inputs, got):
        end = inputs["nap"] + 1
        explain(got["ended"], float(end), f"a sleep of {inputs['nap']} s and a time-out of 1 s took {got['ended']} s")
        explain(got["now"], end * SECOND, f"the simulation went on to {got['now']} ns, expected {end * SECOND}", {
            "time went on to a timer that was cancelled: keep its event in `timer.event`": max(
                inputs["nap"] + inputs["limit"], 1500) * SECOND})  # fmt: skip
        explain(got["log"][-1:], ["timed out"], f"asyncio.timeout did not end the sleep: {got['log']}")
        late = [entry for entry in got["log"] if entry == "cancelled"]
        explain(late, [], "a timer that was cancelled ran")


@case(task=4)
class ADeadlockNamesWhoWaits:
    """Where nothing is left to happen and the awaited task is not done, an error names all who wait, and where."""

    def inputs(rng):
        return {"names": [f"decode-{int(i)}" for i in rng.permutation(90)[:4]], "nap": int(rng.integers(1, 50))}

    def observe(solution, inputs):
        n = loop_parts(solution)
        names = inputs["names"]

        async def reader(queue):
            await queue.get()

        async def stuck():
            queue, tasks = asyncio.Queue(), []
            for name in names[:2]:
                tasks.append(asyncio.create_task(reader(queue), name=name))
            done = asyncio.create_task(asyncio.sleep(inputs["nap"]), name="finished")
            await asyncio.gather(done, *tasks)

        def two():
            simulation = n.Simulation()
            loop = n.VirtualLoop(simulation, names[2])
            other = loop.process(names[3])
            other.create_task(reader(asyncio.Queue()))
            loop.run_until_complete(reader(asyncio.Queue()))

        async def fine():
            event = asyncio.Event()
            asyncio.get_running_loop().call_later(inputs["nap"], event.set)
            waits = asyncio.create_task(reader(asyncio.Queue()))
            await event.wait()
            return waits.done()

        return {"one": error_of(lambda: n.run(stuck())), "two": error_of(two), "fine": error_of(lambda: n.run(fine()))}

    def verify(inputs, got):
        names = inputs["names"]
        explain(got["fine"], {"type": None, "value": False}, f"a timer was left, so this is no deadlock: {got['fine']}")
        nap = f"{inputs['nap'] * SECOND}"
        refused(
            got["one"], "DeadlockError", "two tasks wait on a queue, and one for them", *names[:2], "Queue.get", nap
        )
        explain("finished" in got["one"]["message"], False, f"a task that is done is named: {got['one']['message']}")
        refused(got["two"], "DeadlockError", "two processes wait", names[2], names[3])


@case(task=4)
class ABlockedProcessMissesItsHeartbeat:
    """While code blocks a process nothing else of it runs, so its lease is not renewed in time; others go on."""

    def inputs(rng):
        return {"block": int(rng.integers(3, 9)), "at": int(rng.integers(2, 6)), "outside": int(rng.integers(1, 3))}

    def observe(solution, inputs):
        n, log = loop_parts(solution), []
        simulation = n.Simulation()
        one = n.VirtualLoop(simulation, "one")
        two = one.process("two")

        async def keep_alive(name, loop):
            for _ in range(14):
                await asyncio.sleep(1)
                log.append([name, loop.now, loop.time()])

        async def tokenizer():
            await asyncio.sleep(inputs["at"] + 0.5)
            one.block(inputs["block"] * SECOND)
            log.append(["blocked", one.now, one.time()])

        two.create_task(keep_alive("two", two))
        one.create_task(tokenizer())
        one.run_until_complete(keep_alive("one", one))
        blocked, seen = n.VirtualLoop(n.Simulation(), "outside"), []
        for due in (1, 2):
            blocked.call_later(due, lambda: seen.append(blocked.simulation.now))
        blocked.simulation.at(SECOND, n.Phase.ADMISSION, blocked.block, inputs["outside"] * SECOND // 4)
        blocked.simulation.run()
        return {"log": log, "seen": seen}

    def verify(inputs, got):
        at, block = inputs["at"], inputs["block"]
        free = at + 0.5 + block
        beats, now = [], 0.0
        for _ in range(14):
            due = now + 1
            now = free if at + 0.5 < due < free else due
            beats.append(now)
        for name, want in (("two", [float(i + 1) for i in range(14)]), ("one", beats)):
            times = [time / SECOND for who, time, _ in got["log"] if who == name]
            explain(times, want, f"{name} beats every second, `one` is blocked from {at + 0.5} to {free} s: {name} "
                f"beat at "
                f"{times}, expected {want}", {
                "a blocked process ran all the same": [float(i + 1) for i in range(14)],
                "the other process was blocked too": beats if name == "two" else None,
            })  # fmt: skip
        seconds = [time - now / SECOND for _, now, time in got["log"]]
        expect(max(map(abs, seconds)) < 1e-9, "loop.time() and loop.now differ")
        blocked = next(now / SECOND for who, now, _ in got["log"] if who == "blocked")
        explain(blocked, free, f"after it has blocked for {block} s the code sees {blocked} s, expected {free}")
        wait = inputs["outside"] * SECOND // 4
        explain(got["seen"], [SECOND + wait, 2 * SECOND], f"a process that was blocked for {wait} ns when a timer "
            f"was due ran "
            f"it at {got['seen']}, expected {[SECOND + wait, 2 * SECOND]}", {
            "a blocked process ran all the same": [SECOND, 2 * SECOND]})  # fmt: skip


@case(task=4)
class ErrorsComeOut:
    """Results and exceptions reach the caller; one that nobody waits for ends the run, and the next run goes on."""

    def inputs(rng):
        return {"word": f"w{int(rng.integers(1000))}", "n": int(rng.integers(3, 9))}

    def observe(solution, inputs):
        n, log = loop_parts(solution), []
        simulation = n.Simulation()
        loop = n.VirtualLoop(simulation)
        other = loop.process("other")

        async def value():
            return inputs["word"]

        async def fail():
            await asyncio.sleep(1)
            raise KeyError(inputs["word"])

        def broken():
            raise InterruptedError(inputs["word"])

        async def with_callback():
            for i in range(inputs["n"]):
                loop.call_soon(log.append, 10 + i)
                other.call_soon(broken if i == 1 else log.append, *([] if i == 1 else [i]))
            await asyncio.sleep(9)

        loop.call_later(1_000_000, log.append, -1)
        found = {
            "value": error_of(lambda: loop.run_until_complete(value())),
            "fail": error_of(lambda: loop.run_until_complete(fail())),
            "future": error_of(lambda: loop.run_until_complete(loop.create_task(value()))),
            "callback": error_of(lambda: loop.run_until_complete(with_callback())),
        }
        early = loop.now
        loop.run_until_complete(asyncio.sleep(1))
        return {**found, "early": early, "log": sorted(log)}

    def verify(inputs, got):
        word = inputs["word"]
        explain(got["value"], {"type": None, "value": word}, f"the task's result is {got['value']}")
        explain(got["future"], {"type": None, "value": word}, f"a task was awaited, its result is {got['future']}")
        refused(got["fail"], "KeyError", "the task raised", word)
        refused(got["callback"], "InterruptedError", "a callback raised, and nobody waits for it", word)
        text = f"the awaited tasks were done after 1 s; the run went on to {got['early']} ns"
        late = {"nobody leaves the simulation when the task is done": got["early"] > 1000 * SECOND}
        expect(got["early"] == SECOND, text, late)
        n = inputs["n"]
        want = sorted([*(i for i in range(n) if i != 1), *(10 + i for i in range(n))])
        text = (
            f"callbacks of two processes were due when one raised: after the next run {got['log']} ran, expected {want}"
        )
        lost = {
            "what was ready is lost: a pump must follow one in which a callback raised": len(got["log"]) < len(want)
        }
        expect(got["log"] == want, text, lost)


@case(task=4, timeout=20.0)
class ALivelockIsNoticed:
    """Tasks that keep each other busy while time stands still are an error that names them, not a hang."""

    def inputs(rng):
        return {"name": f"poll-{int(rng.integers(1000))}"}

    def observe(solution, inputs):
        async def poll():
            while True:
                await asyncio.sleep(0)

        async def main():
            await asyncio.create_task(poll(), name=inputs["name"])

        return error_of(lambda: loop_parts(solution).run(main()))

    def verify(inputs, got):
        refused(got, "LivelockError", "a task polls for ever without time", inputs["name"])


@case(task=4)
class ACrashIsFinal:
    """A crashed process runs nothing more, what was due neither; who awaits its result is told at once."""

    def inputs(rng):
        return {"at": int(rng.integers(2, 9))}

    def observe(solution, inputs):
        n, log = loop_parts(solution), []
        simulation = n.Simulation()
        one = n.VirtualLoop(simulation, "one")
        two = one.process("worker-7")

        async def work():
            try:
                while True:
                    await asyncio.sleep(1)
                    log.append(simulation.now // SECOND)
            finally:
                two.call_soon(log.append, "farewell")

        two.create_task(work())
        simulation.at(inputs["at"] * SECOND, n.Phase.TRANSFER_DONE, two.crash)
        simulation.at((inputs["at"] + 1) * SECOND, n.Phase.TELEMETRY, lambda: two.call_soon(log.append, "ghost"))
        one.run_until_complete(asyncio.sleep(20))
        doomed, seen = n.VirtualLoop(n.Simulation(), "worker-8"), []
        doomed.simulation.at(SECOND, n.Phase.TELEMETRY, doomed.crash)
        doomed.process("another").call_later(99, seen.append, "another")
        awaited = error_of(lambda: doomed.run_until_complete(asyncio.sleep(9)))
        return {"log": log, "awaited": awaited, "told": doomed.simulation.now}

    def verify(inputs, got):
        want = list(range(1, inputs["at"]))
        explain(got["log"], want, f"a process that crashed at {inputs['at']} s did {got['log']}, expected {want}", {
            "a crashed process must run nothing": got["log"] if len(got["log"]) > len(want) else None})  # fmt: skip
        refused(got["awaited"], "RuntimeError", "the process crashed whose result was awaited", "worker-8")
        explain(got["told"], SECOND, f"it crashed at {SECOND} ns, and who awaits its result was told at {got['told']}: "
            "`crash` leaves the simulation where `awaited` is True")  # fmt: skip


@case(task=4)
class ALoopInsideALoopIsRefused:
    """run_until_complete inside code of a loop would wait for itself: an error at once, and the outer run goes on."""

    def inputs(rng):
        return {"n": int(rng.integers(1, 9))}

    def observe(solution, inputs):
        n = loop_parts(solution)

        async def inner():
            return 1

        async def main():
            work = inner()
            loop = asyncio.get_running_loop()
            try:
                result = error_of(lambda: loop.run_until_complete(work))
            finally:
                work.close()
            await asyncio.sleep(inputs["n"])
            return [result, loop.time()]

        return error_of(lambda: n.run(main()))

    def verify(inputs, got):
        text = f"run_until_complete was called by code of the loop, and the outer run ended: {got.get('message')}"
        explain(got["type"], None, text)
        got = got["value"]
        refused(got[0], "RuntimeError", "run_until_complete was called by code of the loop")
        explain(got[1], float(inputs["n"]), f"the outer run went on to {got[1]} s, expected {inputs['n']}")
