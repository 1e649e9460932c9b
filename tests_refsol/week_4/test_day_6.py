"""Day 6, moving KV: links against fractions, transfers over real bytes, a store whose readers and writers are slow."""

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np

from course.case import case, error_of
from course.cluster_case.links import SECOND, arrivals, first, frozen, play, random_script, whole_rate
from course.cluster_case.stores import (
    DISCARD,
    HEARTBEAT,
    LEASE,
    MISTAKES,
    RELEASE,
    Model,
    bytes_run,
    master_of,
    outcome_of,
    play_store,
    store_script,
)
from course.cluster_case.transfers import Bytes
from course.compare import refused
from course.suspects import named


def explain(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got != want:
        raise AssertionError(f"{text}\n{named(m for m, value in (mistakes or {}).items() if value == got)}".strip())


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


# Task 1


@case(task=1)
class AlphaAndBeta:
    """A transfer alone takes the latency, and its bytes over the rate: in whole ns, rounded up, however large."""

    def inputs(rng):
        sizes = [0, 1, *(int(2 ** rng.uniform(0, 62)) for _ in range(60))]
        return [[size, int(rng.integers(0, 10**6)), int(10 ** rng.uniform(3, 12))] for size in sizes]

    def observe(solution, inputs):
        return [solution.module("cluster.link").transfer_ns(*one) for one in inputs]

    def verify(inputs, got):
        want = [latency + math.ceil(Fraction(size * SECOND, rate)) for size, latency, rate in inputs]
        mistakes = {
            "it was rounded down: the last byte has not come then": [
                latency + size * SECOND // rate for size, latency, rate in inputs
            ],
            "the latency was forgotten": [ceil_div(size * SECOND, rate) for size, _, rate in inputs],
            "a float has 53 bits, and these sizes need more": [
                latency + math.ceil(size * SECOND / rate) for size, latency, rate in inputs
            ],
        }
        _first_wrong(inputs, got, want, mistakes, "size, latency and rate")


def _first_wrong(inputs: list, got: list, want: list, mistakes: dict[str, list], names: str) -> None:
    wrong = next((i for i, (a, b) in enumerate(zip(got, want, strict=True)) if a != b), None)
    if wrong is not None:
        text = f"{names} {inputs[wrong]}: {got[wrong]}, expected {want[wrong]}"
        explain(got, want, text, mistakes)


@case(task=1)
class TheRing:
    """A ring all-reduce takes 2 (p - 1) steps, each with the latency and a p-th of the bytes; alone none."""

    def inputs(rng):
        draw = [
            [int(2 ** rng.uniform(0, 40)), int(rng.integers(1, 65)), int(rng.integers(0, 10**5))] for _ in range(40)
        ]
        return [[size, ranks, latency, int(10 ** rng.uniform(6, 12))] for size, ranks, latency in [[8, 1, 5], *draw]]

    def observe(solution, inputs):
        return [solution.module("cluster.link").ring_all_reduce_ns(*one) for one in inputs]

    def verify(inputs, got):
        def ring(steps, share) -> list[int]:
            return [
                steps(p) * latency + math.ceil(steps(p) * share(n, p) * SECOND / rate) for n, p, latency, rate in inputs
            ]

        def part(n: int, p: int) -> Fraction:
            return Fraction(n, p)

        mistakes = {
            "only half of it: to add is p - 1 steps, to hand out the sums p - 1 more": ring(lambda p: p - 1, part),
            "p steps for p ranks: the last one is not needed": ring(lambda p: 2 * p, part),
            "all bytes in each step, not a p-th of them": ring(lambda p: 2 * (p - 1), lambda n, p: Fraction(n)),
            "the latency is paid in each step": [
                latency + math.ceil(2 * (p - 1) * part(n, p) * SECOND / rate) for n, p, latency, rate in inputs
            ],
        }
        _first_wrong(inputs, got, ring(lambda p: 2 * (p - 1), part), mistakes, "size, ranks, latency and rate")


MIB = 1 << 20
VLLM = {128: 0.54, 256: 0.61, 512: 0.92, 1024: 1.50, 2048: 2.51, 4096: 4.75, 8192: 8.84, 16384: 16.43, 32768: 31.65}
"""Prompt tokens and ms of their transfer: vLLM's documentation of its Mooncake connector, Qwen3-8B over 8 NICs."""
VLLM_SAMPLES = [[tokens * 147_456 + 2 * MIB, round(ms * 1e6)] for tokens, ms in VLLM.items()]


@case(task=1, params=[{"kind": kind} for kind in ("exact", "noisy", "vllm", "two", "equal sizes")])
class TheLineThroughMeasurements:
    """`fit_link` finds latency and rate of measured transfers; a short one counts as much as a long one."""

    def inputs(rng, kind):
        if kind == "vllm":
            return VLLM_SAMPLES
        latency, per_byte = int(rng.integers(10**4, 10**6)), float(10 ** rng.uniform(-2, 1))
        few = {"equal sizes": [1 << 20] * 5, "two": [1 << 20, 1 << 24]}
        sizes = few.get(kind) or [int(2**k) for k in rng.uniform(16, 34, 20)]
        noise = rng.uniform(0.9, 1.1, len(sizes)) if kind == "noisy" else np.ones(len(sizes))
        return [[n, round((latency + n * per_byte) * x)] for n, x in zip(sizes, noise, strict=True)]

    def observe(solution, inputs):
        return error_of(lambda: list(solution.module("cluster.link").fit_link([tuple(one) for one in inputs])))

    def verify(inputs, got):
        if len({size for size, _ in inputs}) == 1:
            refused(got, f"five samples of {inputs[0][0]} bytes")
            return
        if got["type"] is not None:
            raise AssertionError(f"{got['type']}: {got['message']}")
        sizes, times = np.array(inputs, float).T
        found = {name: _line(sizes, times, weight) for name, weight in {
            "": 1 / times,
            "errors in ns were made small, so only the longest transfers count": np.ones(len(times)),
        }.items()}  # fmt: skip
        want = found.pop("")
        found["the rate is bytes per second, not per ns"] = [want[0], want[1] / SECOND]
        near = {name: _near(got["value"], value) and not _near(value, want) for name, value in found.items()}
        if not _near(got["value"], want):
            latency, rate = got["value"]
            raise AssertionError(
                f"latency {latency} ns and {rate} bytes/s, expected {want[0]:.0f} and {want[1]:.0f}\n"
                f"{named(name for name, is_near in near.items() if is_near)}"
            )


def _line(sizes: np.ndarray, times: np.ndarray, weight: np.ndarray) -> list[float]:
    """Latency in ns and bytes/s: the normal equations of a weighted line, in float64."""
    w = weight**2
    mean_n, mean_t = (w @ sizes) / w.sum(), (w @ times) / w.sum()
    slope = (w * (sizes - mean_n)) @ (times - mean_t) / ((w * (sizes - mean_n)) @ (sizes - mean_n))
    return [mean_t - slope * mean_n, SECOND / slope]


def _near(got: list[float], want: list[float]) -> bool:
    return all(abs(a - b) <= max(1.5, 1e-5 * abs(b)) for a, b in zip(got, want, strict=True))


@case(task=1, params=[{"k": 1}, {"k": 3}, {"k": 7}, {"k": 64}])
class EqualFlowsShare:
    """k equal flows that start together each take k times as long as one alone, to the ns."""

    def inputs(rng, k):
        return {"k": k, "size": int(rng.integers(1, 10**6)), "latency": int(rng.integers(0, 1000))}

    def observe(solution, inputs):
        link = solution.module("cluster.link").Link(SECOND, inputs["latency"])
        return play(link, [[0, "start", flow, inputs["size"], True] for flow in range(inputs["k"])])["told"]

    def verify(inputs, got):
        k, size, latency = inputs["k"], inputs["size"], inputs["latency"]
        want = [[k * size + latency, flow] for flow in range(k)]
        text = f"{k} flows of {size} bytes at 1 byte per ns, {latency} ns latency: first {got[:3]}, expected {want[:3]}"
        explain(got, want, text, {
            "nobody shares: each has the whole rate": [[size + latency, flow] for flow in range(k)],
            "they go one after the other": [[(flow + 1) * size + latency, flow] for flow in range(k)],
            "the latency is shared too": [[k * (size + latency), flow] for flow in range(k)],
            "the latency was forgotten": [[k * size, flow] for flow in range(k)],
        })  # fmt: skip


@case(task=1, params=[{"kind": kind, "latency": n} for kind in ("whole", "odd", "large") for n in (0, 700)])
class EndsAreExact:
    """Flows come, go and are cancelled, the rate changes and drops to 0: each arrives at the ns that fractions say."""

    def inputs(rng, kind, latency):
        draw = random.Random(int(rng.integers(2**31)))
        script = lambda actions: random_script(draw, kind, actions)  # noqa: E731
        return {"latency": latency, "scripts": [script(8), script(8), *(script(40) for _ in range(6))]}

    def observe(solution, inputs):
        link = solution.module("cluster.link").Link
        return [play(link(1, inputs["latency"]), script) for script in inputs["scripts"]]

    def verify(inputs, got):
        latency = inputs["latency"]
        for script, trace in zip(inputs["scripts"], got, strict=True):
            judge_link(script, latency, trace)


def judge_link(script: list, latency: int, trace: dict[str, list]) -> None:
    want = arrivals(script, latency)
    told = {flow: time for time, flow in trace["told"]}
    if len(told) < len(trace["told"]):
        raise AssertionError(f"a flow was told twice: {trace['told']}")
    if [time for time, _ in trace["told"]] != sorted(told.values()):
        raise AssertionError(f"the times go back: {trace['told']}: flows are told in the order of their arrival")
    flow = next((each for each in {**want, **told} if told.get(each) != want.get(each)), None)
    if flow is not None:
        began = next(action[0] for action in script if action[1:3] == ["start", flow])
        text = (
            f"flow {flow}, begun at {began} ns, arrives at {told.get(flow, 'no time')}, expected "
            f"{want.get(flow, 'no time: it was cancelled')}, in the script\n  {script[:10]} ..."
        )
        plain = [action for action in script if action[1] != "rate" or action[0] == 0]
        explain(told, want, text, {
            "nobody shares: each has the whole rate": arrivals(script, latency, whole_rate),
            "they go one after the other": arrivals(script, latency, first),
            "shares stay as they were at the start: who is left gets no more": arrivals(script, latency, frozen),
            "a change of the rate does nothing": arrivals(plain, latency),
            "the latency was forgotten": arrivals(script, 0),
        } | _rounding(told, want))  # fmt: skip
    gone: set[int] = set()
    for time, flow, answer in trace["cancelled"]:
        under_way = flow not in gone and want.get(flow, time + 1) > time
        text = f"cancel of flow {flow} at {time} ns returned {answer}: its arrival is {want.get(flow, 'never')}"
        explain(answer, under_way, text)
        gone.add(flow)


def _rounding(told: dict[int, int], want: dict[int, int]) -> dict[str, object]:
    gaps = {told[flow] - want[flow] for flow in want if flow in told}
    near = told.keys() == want.keys() and gaps <= {-1, 0, 1}
    return {"times are not exact: a ns is gained or lost in rounding": told} if near else {}


@case(task=1)
class SharesAddUp:
    """Shares of a third, a seventh and so on, taken up hundreds of times, still add up to whole ns."""

    def inputs(rng):
        flows = [int(n) for n in rng.permutation(np.arange(2, 120))]
        return {"sizes": flows, "gap": int(rng.integers(1, 4))}

    def observe(solution, inputs):
        link = solution.module("cluster.link").Link(SECOND)
        script = [[i * inputs["gap"], "start", i, size, True] for i, size in enumerate(inputs["sizes"])]
        return play(link, script)["told"][-1]

    def verify(inputs, got):
        last = sum(inputs["sizes"])
        text = (
            f"the link is never idle at 1 byte per ns: the last of {last} bytes arrives at {got[0]} ns, not {last}: "
            "times are not exact, and each change of the shares adds to the error"
        )
        explain(got[0], last, text)


@case(task=1)
class WrongStartsAreRefused:
    """A flow that is on its way, or has left and not arrived, starts no second time; nothing starts in the past."""

    def inputs(rng):
        return {"size": int(rng.integers(10, 100)), "latency": int(rng.integers(10, 100))}

    def observe(solution, inputs):
        link = solution.module("cluster.link").Link(SECOND, inputs["latency"])
        link.start("a", inputs["size"], 5)
        twice = error_of(lambda: link.start("a", 1, 6))
        left = error_of(lambda: link.start("a", 1, 5 + inputs["size"] + 1))
        past = error_of(lambda: link.start("b", 1, 4))
        link.start("nothing", 0, 5 + inputs["size"] + 2)
        time = 5 + inputs["size"] + inputs["latency"] + 2
        return {"twice": twice, "left": left, "past": past, "end": [link.next_time(), link.collect(time), link.flows]}

    def verify(inputs, got):
        refused(got["twice"], "a flow that is on its way", "a")
        refused(got["left"], "a flow that has left and not arrived", "a")
        refused(got["past"], "a start at 4 ns on a link that is at more", "4")
        time = 5 + inputs["size"] + inputs["latency"]
        want = [time, ["a", "nothing"], 0]
        text = f"next time, what has come 2 ns later (a flow without bytes began), and flows: {got['end']}"
        explain(got["end"], want, f"{text}, expected {want}")


# Task 2


@case(task=2)
class SlicesCoverARequest:
    """Slices lie behind each other, cover each byte of the request once, and only the last one may be shorter."""

    def inputs(rng):
        return [[0, 8], [8, 8], [7, 8], *([int(rng.integers(1, 100)), int(rng.integers(1, 20))] for _ in range(40))]

    def observe(solution, inputs):
        transfer, results = solution.module("cluster.transfer"), []
        for length, size in inputs:
            request = transfer.TransferRequest(transfer.Op.READ, 1000, "peer", 50, length)
            pieces = transfer.slices_of(request, size)
            results.append([[p.start, p.length, p.request == request] for p in pieces])
        return results

    def verify(inputs, got):
        for (length, size), pieces in zip(inputs, got, strict=True):
            full, rest = divmod(length, size)
            want = [[i * size, size, True] for i in range(full)] + [[full * size, rest, True]] * (rest > 0)
            text = (
                f"{length} bytes in slices of {size}: {pieces[:4]} ..., expected {want[:4]} ... ({len(want)} of them)"
            )
            explain(pieces, want, text, {
                "the last slice is longer than what is left": [[a, size, c] for a, _, c in want],
                "what is left behind the last full slice was dropped": want[:full],
                "a slice of no bytes at the end": [*want, [full * size, 0, True]],
                "slices begin in the request, not in memory": [[a + 1000, b, c] for a, b, c in want],
            })  # fmt: skip


@case(task=2)
class PreferredThenSecondary:
    """Memory is reached by its preferred NICs that are up; by its secondary ones only where none of these is up."""

    def inputs(rng):
        return [["gpu0", down] for down in ([], ["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"], ["c"])] + [
            ["cpu", []], ["cpu", ["d"]], ["nowhere", []],
        ]  # fmt: skip

    def observe(solution, inputs):
        topology = solution.module("cluster.transfer").Topology(
            {"gpu0": ["a", "b"], "cpu": ["d"]}, {"gpu0": ["c", "d"]}
        )
        return [list(topology.path(location, dict.fromkeys(down))) for location, down in inputs]

    def verify(inputs, got):
        want = [["a", "b"], ["b"], ["c", "d"], ["d"], [], ["a", "b"], ["d"], [], []]
        for (location, down), path, right in zip(inputs, got, want, strict=True):
            preferred, secondary = (["a", "b"], ["c", "d"]) if location == "gpu0" else ([], [])
            both = [name for name in preferred + secondary if name not in down]
            explain(path, right, f"{location} with {down} down: {path}, expected {right}", {
                "secondary NICs are for when no preferred one is up": both,
                "a NIC that is down was used": preferred or ["d"],
                "the secondary NICs were never used": [n for n in preferred if n not in down],
            })  # fmt: skip


def moved(solution, inputs: dict, faults: list[list] = (), **options) -> dict:
    """One transfer of all bytes, with faults [time, "fail_nic" | "repair_nic", nic], as plain values."""
    size = inputs["size"]
    world = Bytes(solution, size, inputs["rates"], **options)
    world.engine.register(world.buffer(0, size))
    batch = world.engine.allocate(1)
    world.engine.submit(batch, [world.request(0, 0, size, inputs.get("op", "READ"))], 0)
    for time, what, nic in faults:
        world.run(world.engine.advance, time)
        world.now = time
        getattr(world.engine, what)(nic, time)
    world.run(world.engine.advance)
    starts = Counter(start for _, _, start, _ in world.slices)
    return {
        "status": [status.value for status in world.engine.status(batch)],
        "equal": world.here == world.there,
        "twice": sorted(start for start, times in starts.items() if times > 1),
        "end": world.slices[-1][0] if world.slices else 0,
        "left": [nic.flows for nic in world.nics.values()],
    }


def judge_moved(got: dict, what: str) -> None:
    explain(got["twice"], [], f"{what}: slices that begin at bytes {got['twice']} were delivered more than once")
    explain(got["status"], ["done"], f"{what}: the status is {got['status']}, expected done")
    explain(got["equal"], True, f"{what}: it says done, and the bytes differ: a slice was lost")
    explain(got["left"], [0] * len(got["left"]), f"{what}: flows are left on the links: {got['left']}")


@case(task=2, params=[{"k": 1}, {"k": 2}, {"k": 5}])
class MoreNicsAreFaster:
    """A transfer over k NICs is k times as fast as over one, up to the last slices, and all bytes are right."""

    def inputs(rng, k):
        return {"size": 60_000 + int(rng.integers(1, 100)), "rates": [SECOND] * k, "op": ["READ", "WRITE"][k % 2]}

    def observe(solution, inputs):
        return moved(solution, inputs, slice_bytes=100)

    def verify(inputs, got):
        k, size = len(inputs["rates"]), inputs["size"]
        judge_moved(got, f"{size} bytes over {k} NICs")
        if not size / k <= got["end"] <= size / k + 1000:
            raise AssertionError(
                f"{size} bytes over {k} NICs of 1 byte per ns took {got['end']} ns, expected {size // k} to "
                f"{size // k + 1000}\n" + named(["only one NIC was used"] if k > 1 and got["end"] >= size else [])
            )


@case(task=2, params=[{"at": at} for at in (0.0, 0.3, 0.5, 0.9)])
class AFailureHalves:
    """When one of two NICs fails, the other carries the rest at half the speed: no byte is lost, none comes twice."""

    def inputs(rng, at):
        size = int(rng.integers(400, 600)) * 100
        return {"size": size, "at": int(at * size / 2), "rates": [SECOND] * 2, "op": "WRITE"}

    def observe(solution, inputs):
        return moved(solution, inputs, [[inputs["at"], "fail_nic", "nic0"]], slice_bytes=100)

    def verify(inputs, got):
        size, at = inputs["size"], inputs["at"]
        judge_moved(got, f"nic0 failed at {at} ns of about {size // 2}")
        want = at + (size - 2 * at)
        if not want <= got["end"] <= want + 500:
            raise AssertionError(
                f"nic0 failed at {at} ns, when {2 * at} of {size} bytes had come; nic1 has carried the rest, and what "
                f"was lost with nic0, at {want} to {want + 500} ns: it ended at {got['end']}"
            )


@case(task=2)
class WhatHasArrivedIsNotLost:
    """A NIC that fails takes what it carries then; what has arrived before, and nobody asked for yet, is delivered."""

    def inputs(rng):
        return {"at": int(rng.integers(3, 9)) * 100 + int(rng.integers(1, 99))}

    def observe(solution, inputs):
        world = Bytes(solution, 4000, [SECOND] * 2, slice_bytes=100, window=1)
        world.engine.register(world.buffer(0, 4000))
        batch = world.engine.allocate(1)
        world.engine.submit(batch, [world.request(0, 0, 4000)], 0)
        world.engine.fail_nic("nic0", inputs["at"])
        return len(world.slices)

    def verify(inputs, got):
        at = inputs["at"]
        want = 2 * (at // 100)
        text = f"two NICs carry a slice in 100 ns each; nic0 fails at {at} ns, the first time that anybody asks: "
        early = "what had arrived by then was lost: take it first, `advance(now)`"
        explain(got, want, f"{text}{got} slices were delivered, expected {want}", {early: got if got < want else None})


@case(task=2)
class FewestOfThisTransfer:
    """A transfer is spread over the NICs by its own slices, whatever other transfers have there."""

    def inputs(rng):
        return {"slices": int(rng.choice([2, 4, 6]))}

    def observe(solution, inputs):
        world = Bytes(solution, 2000, [SECOND] * 2, slice_bytes=100, window=4)
        world.engine.register(world.buffer(0, 2000))
        batch = world.engine.allocate(2)
        world.engine.fail_nic("nic1", 0)
        world.engine.submit(batch, [world.request(0, 0, 400)], 0)
        world.engine.repair_nic("nic1", 0)
        world.engine.submit(batch, [world.request(1000, 1000, 100 * inputs["slices"])], 0)
        return [nic.flows for nic in world.nics.values()]

    def verify(inputs, got):
        count = inputs["slices"]
        want = [4 + count // 2, count // 2]
        text = (
            f"nic0 carries 4 slices of another transfer when one of {count} slices begins, with a window of 4: slices "
            f"on [nic0, nic1] are {got}, expected {want}"
        )
        explain(got, want, text, {
            "the fewest slices of this transfer count, not of all": [4 + count - min(count, 4), min(count, 4)],
        })  # fmt: skip


@case(task=2, params=[{"slow": 3}, {"slow": 10}])
class ASlowNicCarriesLess:
    """Two NICs of different rates are both busy to the end: nothing is dealt out in advance."""

    def inputs(rng, slow):
        return {"size": int(rng.integers(900, 1100)) * 100, "rates": [SECOND, SECOND // slow]}

    def observe(solution, inputs):
        return moved(solution, inputs, slice_bytes=100)

    def verify(inputs, got):
        size, slow = inputs["size"], SECOND // inputs["rates"][1]
        judge_moved(got, f"a NIC that is {slow} times slower")
        want = size * slow // (slow + 1)
        if not want <= got["end"] <= want + 600 * slow:
            dealt = size * slow // 2
            raise AssertionError(
                f"{size} bytes over NICs of 1 and 1/{slow} bytes per ns took {got['end']} ns, expected {want} to "
                f"{want + 600 * slow}\n"
                + named(["both NICs carried half: a slow one must carry less"] if got["end"] > dealt * 0.95 else [])
            )


@case(task=2)
class TheSecondaryHelpsOut:
    """Secondary NICs carry nothing while a preferred one is up, and all of it while none is."""

    def inputs(rng):
        return {"size": 4000 + int(rng.integers(1, 99)), "fail": int(rng.integers(500, 1000)), "back": 2000}

    def observe(solution, inputs):
        size = inputs["size"]
        world = Bytes(solution, size, [SECOND] * 2, preferred=["nic0"], secondary=["nic1"], slice_bytes=100, window=2)
        world.engine.register(world.buffer(0, size))
        batch, flows = world.engine.allocate(2), []
        for part in range(2):
            world.engine.submit(batch, [world.request(part * 10, part * 10, size - 10)], 0)
        for time, what in [[inputs["fail"], "fail_nic"], [inputs["back"], "repair_nic"]]:
            world.run(world.engine.advance, time)
            flows.append([nic.flows for nic in world.nics.values()])
            world.now = time
            getattr(world.engine, what)("nic0", time)
            flows.append([nic.flows for nic in world.nics.values()])
        world.run(world.engine.advance)
        return {"flows": flows, "status": [status.value for status in world.engine.status(batch)]}

    def verify(inputs, got):
        before, failed, still, _ = got["flows"]
        want = [[4, 0], [0, 4], [0, 4]]
        text = (
            f"two transfers, two slices each at a time: slices on [nic0, nic1] are {before} at first, {failed} once "
            f"nic0 has failed, and {still} before it is back; expected {want}"
        )
        explain([before, failed, still], want, text, {
            "the secondary was used though a preferred NIC is up": [[4, 4], [0, 4], [0, 4]],
            "the failed NIC was still used: its slices were not cancelled": [[4, 0], [4, 4], [4, 4]],
            "the secondary got nothing when the last preferred NIC failed": [[4, 0], [0, 0], [0, 0]],
            "`window` is for each transfer: else the first one keeps others out": [[2, 0], [0, 2], [0, 2]],
        })  # fmt: skip
        explain(got["status"], ["done", "done"], f"in the end the transfers are {got['status']}")


@case(task=2)
class SlicesGoOnAtTheirTime:
    """Who asks late loses nothing: each slice arrives at its own time, and the next one starts at that time."""

    def inputs(rng):
        return {"size": int(rng.integers(40, 60)) * 100, "extra": int(rng.integers(1, 1000))}

    def observe(solution, inputs):
        ends = []
        for late in (False, True):
            world = Bytes(solution, inputs["size"], [SECOND], slice_bytes=100, window=1)
            world.engine.register(world.buffer(0, inputs["size"]))
            batch = world.engine.allocate(1)
            world.engine.submit(batch, [world.request(0, 0, inputs["size"])], 0)
            if not late:
                world.run(world.engine.advance)
            world.engine.advance(inputs["size"] + late * inputs["extra"])
            ends.append([world.engine.status(batch)[0].value, len(world.slices)])
        return ends

    def verify(inputs, got):
        want = [["done", inputs["size"] // 100]] * 2
        text = f"asked at each next_time, and once at the end: status and slices are {got}, expected {want}"
        explain(got, want, text, {
            "the next slice started when it was asked, not when the one before arrived": [want[0], ["waiting", 1]],
        })  # fmt: skip


@case(task=2, params=[{"tries": 1}, {"tries": 3}])
class LostTooOften:
    """A slice that is lost with a NIC `tries` times fails its transfer, and what others carry of it is dropped."""

    def inputs(rng, tries):
        return {"tries": tries, "rate": int(rng.integers(1, 5))}

    def observe(solution, inputs):
        options = {"slice_bytes": 1024, "window": 1, "tries": inputs["tries"]}
        world = Bytes(solution, 4096, [inputs["rate"]] * 2, **options)
        world.engine.register(world.buffer(0, 4096))
        batch, seen = world.engine.allocate(1), []
        world.engine.submit(batch, [world.request(0, 0, 4096)], 0)
        for turn in range(inputs["tries"]):
            seen.append([world.engine.status(batch)[0].value, *(nic.flows for nic in world.nics.values())])
            world.engine.fail_nic("nic0", 2 * turn + 1)
            world.engine.repair_nic("nic0", 2 * turn + 2) if turn + 1 < inputs["tries"] else None
        seen.append([world.engine.status(batch)[0].value, *(nic.flows for nic in world.nics.values())])
        return {"seen": seen, "slices": len(world.slices), "next": world.engine.next_time()}

    def verify(inputs, got):
        want = [["waiting", 1, 1]] * inputs["tries"] + [["failed", 0, 0]]
        text = f"status and slices on both NICs, before each failure and at the end: {got['seen']}, expected {want}"
        explain(got["seen"], want, text, {
            "nobody counted how often a slice was lost": [*want[:-1], ["waiting", 0, 1]],
            "the other NIC still carries a slice of a transfer that has failed": [*want[:-1], ["failed", 0, 1]],
            "one failure too many was allowed for": [*want[:-1], ["waiting", 0, 1]],
        })  # fmt: skip
        explain([got["slices"], got["next"]], [0, None], f"slices delivered and next time are {got['slices']}, "
            f"{got['next']}: nothing of a failed transfer arrives later")  # fmt: skip


@case(task=2, params=[{"latency": 0}, {"latency": 70}], timeout=10.0)
class StatusIsMonotone:
    """NICs fail and come back at random: a status goes from waiting to done or failed and stays; bytes are right."""

    def inputs(rng, latency):
        runs = []
        for _ in range(8):
            draw, script, now = random.Random(int(rng.integers(2**31))), [], 0
            for _ in range(120):
                now += draw.randrange(60)
                what = draw.choice(["submit"] * 3 + ["fail_nic", "repair_nic"] + ["advance"] * 5)
                script.append([now, what, draw.randrange(4)])
            lengths = [draw.randrange(257) for _ in range(16)]
            runs.append({"script": script, "lengths": lengths, "window": draw.choice([1, 3]), "latency": latency})
        return runs

    def observe(solution, inputs):
        return [faults(solution, one) for one in inputs]

    def verify(inputs, got):
        for run in got:
            for before, after in zip(run["statuses"], run["statuses"][1:], strict=False):
                for number, (old, new) in enumerate(zip(before, after, strict=False)):
                    if old not in ("waiting", new):
                        raise AssertionError(f"the status of request {number} went from {old} to {new}")
            last = run["statuses"][-1]
            explain(run["wrong"], [], f"requests {run['wrong']} are done, and their bytes are wrong")
            explain(run["twice"], [], f"slices {run['twice'][:3]} (request, first byte) were delivered more than once")
            explain(run["late"], 0, f"{run['late']} slices were delivered of transfers that had failed")
            explain("waiting" in last, False, f"in the end some still wait, with all NICs up: {last}")
            explain(run["left"], [0] * 4, f"in the end flows are left on the links: {run['left']}")
            explain(run["asked"], ["peer"], f"the segment was described {len(run['asked'])} times: once is enough")


def faults(solution, inputs: dict) -> dict:
    """A run of random submissions and failures, until all has ended with all NICs up."""
    options = {"slice_bytes": 64, "window": inputs["window"], "tries": 4}
    world = Bytes(solution, 4096, [SECOND] * 4, inputs["latency"], **options)
    before = bytes(world.here)
    world.engine.register(world.buffer(0, 4096))
    requests = [world.request(256 * i, 256 * (15 - i), n) for i, n in enumerate(inputs["lengths"])]
    batch, statuses, submitted, failed_at = world.engine.allocate(16), [], 0, {}
    for now, what, nic in [*inputs["script"], *([10**6, "repair_nic", nic] for nic in range(4))]:
        world.run(world.engine.advance, now)
        world.now = now
        if what == "submit" and submitted < 16:
            world.engine.submit(batch, requests[submitted : submitted + 1], now)
            submitted += 1
        elif what == "fail_nic" and f"nic{nic}" not in world.engine.down:
            world.engine.fail_nic(f"nic{nic}", now)
        elif what == "repair_nic" and f"nic{nic}" in world.engine.down:
            world.engine.repair_nic(f"nic{nic}", now)
        statuses.append([status.value for status in world.engine.status(batch)])
        for number, status in enumerate(statuses[-1]):
            if status == "failed":
                failed_at.setdefault(256 * number, now)
    world.run(world.engine.advance)
    statuses.append([status.value for status in world.engine.status(batch)])
    counts = Counter((address, start) for _, address, start, _ in world.slices)

    def right(number: int) -> bool:
        a, b, n = 256 * number, 256 * (15 - number), inputs["lengths"][number]
        return (
            world.here[a : a + n] == world.there[b : b + n] and world.here[a + n : a + 256] == before[a + n : a + 256]
        )

    return {
        "statuses": statuses,
        "wrong": [i for i, status in enumerate(statuses[-1]) if status == "done" and not right(i)],
        "twice": [[address // 256, start] for (address, start), times in counts.items() if times > 1],
        "late": sum(time > failed_at.get(address, 10**18) for time, address, *_ in world.slices),
        "left": [nic.flows for nic in world.nics.values()],
        "asked": world.asked,
    }


# Task 3


def merged(pairs: list, together) -> list[list[int]]:
    """Runs of pairs for which `together(source step, target step)` holds from each to the next."""
    found: list[list[int]] = []
    last = None
    for source, target in pairs:
        if last is not None and together(source - last[0], target - last[1]):
            found[-1][2] += 1
        else:
            found.append([source, target, 1])
        last = source, target
    return found


@case(task=3)
class RunsOnBothSides:
    """Pairs of blocks are one run where both numbers go up by one, and only there."""

    def inputs(rng):
        scripts = [[], [[3, 9]], [[0, 5], [1, 6], [2, 8], [3, 9], [9, 10]], [[1, 1], [0, 0]], [[0, 0], [1, 2], [2, 3]]]
        for _ in range(30):
            pairs, here, there = [], 0, 100
            for _ in range(12):
                here += int(rng.choice([1, 1, 1, 2, -3]))
                there += int(rng.choice([1, 1, 1, 2, -3]))
                pairs.append([here, there])
            scripts.append(pairs)
        return scripts

    def observe(solution, inputs):
        runs = solution.module("cluster.segment").runs
        return [[list(run) for run in runs([tuple(pair) for pair in pairs])] for pairs in inputs]

    def verify(inputs, got):
        for pairs, found in zip(inputs, got, strict=True):
            want = merged(pairs, lambda a, b: a == b == 1)
            explain(found, want, f"runs of {pairs} are {found}, expected {want}", {
                "only the source was looked at": merged(pairs, lambda a, b: a == 1),
                "only the target was looked at": merged(pairs, lambda a, b: b == 1),
                "nothing was merged": [[a, b, 1] for a, b in pairs],
                "runs that go down were merged": merged(pairs, lambda a, b: a == b and a in (1, -1)),
                "the last run is missing": want[:-1],
                "both steps are equal, but they are not 1": merged(pairs, lambda a, b: a == b),
            })  # fmt: skip


BASE, BLOCK = 1000, 64


class Pair:
    """An agent "here" with 16 blocks from address 1000 on, and what it needs to know of "peer", whose blocks begin at
    128. told: [name, message, slices that had arrived]."""

    def __init__(self, solution, rates: list[int] | None = None, slice_bytes: int = 128):
        self.world = Bytes(solution, 16 * BLOCK, rates or [SECOND], base=BASE, slice_bytes=slice_bytes)
        agent = solution.module("cluster.agent")
        self.Metadata, self.Blocks, self.Op = agent.Metadata, agent.Blocks, self.world.transfer.Op
        self.told: list[list] = []
        self.agent = agent.Agent("here", self.world.engine, agent.Blocks(BASE, BLOCK, 16), self.notify)
        self.world.there += bytes(128)

    def peer(self, size: int = BLOCK, start: int = 128, count: int = 16):
        """The metadata of the other one."""
        return self.Metadata("peer", self.Blocks(start, size, count))

    def notify(self, name: str, message: str) -> None:
        """Note what is told, and what has come."""
        self.told.append([name, message, len(self.world.slices)])


@case(task=3, params=[{"op": "READ"}, {"op": "WRITE"}])
class BlocksComeAcross:
    """A handle moves its blocks, pair by pair, between the memories; neighbours on both sides go as one request."""

    def inputs(rng, op):
        here, there = [int(n) for n in rng.permutation(16)[:6]], [int(n) for n in rng.permutation(16)[:6]]
        return {"op": op, "here": [*here, 14, 15], "there": [*there, 2, 3]} if not {14, 15} & set(here) else {
            "op": op, "here": [0, 1, 2, 7], "there": [4, 5, 9, 10],
        }  # fmt: skip

    def observe(solution, inputs):
        pair = Pair(solution)
        before = [bytes(pair.world.here), bytes(pair.world.there)]
        pair.agent.add_remote(pair.peer())
        handle = pair.agent.prepare(pair.Op[inputs["op"]], inputs["here"], inputs["there"], "peer")
        requests = [[r.op.value, r.address, r.segment, r.offset, r.length] for r in handle.requests]
        error = error_of(lambda: [pair.agent.post(handle, 0), pair.world.run(pair.agent.advance)])
        after = [bytes(pair.world.here), bytes(pair.world.there)]
        told = {"asked": pair.world.asked, "told": pair.told, "error": error}
        return told | {"requests": requests, "before": before, "after": after}

    def verify(inputs, got):
        pairs = list(zip(inputs["here"], inputs["there"], strict=True))
        op = inputs["op"].lower()

        def requests(here: int, there: int, unit: int, runs: list) -> list[list]:
            return [[op, here + a * BLOCK, "peer", there + b * BLOCK, n * unit] for a, b, n in runs]

        runs = merged(pairs, lambda a, b: a == b == 1)
        want = requests(BASE, 128, BLOCK, runs)
        explain(got["requests"], want, f"requests (op, address, segment, offset, bytes) are {got['requests'][:3]}, "
            f"expected {want[:3]}", {
            "blocks of the peer lie from its own first address on": requests(BASE, BASE, BLOCK, runs),
            "here and there were exchanged": requests(128, BASE, BLOCK, runs),
            "each run was sent as one block": requests(BASE, 128, BLOCK, [[a, b, 1] for a, b, _ in runs]),
            "lengths are in bytes, not in blocks": requests(BASE, 128, 1, runs),
            "nothing was merged": requests(BASE, 128, BLOCK, [[a, b, 1] for a, b in pairs]),
        })  # fmt: skip
        if got["error"]["type"] is not None:
            raise AssertionError(f"the post raised {got['error']['type']}: {got['error']['message']}")
        here, there = map(bytearray, got["before"])
        for a, b in pairs:
            mine, theirs = slice(a * BLOCK, (a + 1) * BLOCK), slice(128 + b * BLOCK, 128 + (b + 1) * BLOCK)
            if op == "read":
                here[mine] = got["before"][1][theirs]
            else:
                there[theirs] = got["before"][0][mine]
        explain(got["after"], [bytes(here), bytes(there)], f"the memories are not what a {op} of blocks {pairs} leaves")
        explain(got["asked"], [], "somebody was asked for the segment: the metadata had told all about it")
        explain(got["told"], [], f"no message was given, and {got['told']} was told")


@case(task=3, params=[{"fails": False}, {"fails": True}])
class NotifyAfterTheData:
    """The message goes out once, when all data of the post is there; never before, and never after a failure."""

    def inputs(rng, fails):
        return {"fails": fails, "slices": int(rng.integers(3, 7))}

    def observe(solution, inputs):
        pair = Pair(solution, slice_bytes=16 * BLOCK)  # one slice for each request
        pair.agent.add_remote(pair.peer())
        blocks = [0, *range(2, 1 + inputs["slices"])]  # two requests: the first is there long before the second
        handle = pair.agent.prepare(pair.Op.WRITE, blocks, blocks, "peer", "it is yours")
        states = [str(handle.status)]
        pair.agent.post(handle, 0)
        pair.world.run(pair.agent.advance, BLOCK * inputs["slices"] - 1)
        states += [handle.status.value, len(pair.told)]
        if inputs["fails"]:
            pair.world.engine.fail_nic("nic0", BLOCK * inputs["slices"] - 1)
        pair.agent.advance(BLOCK * inputs["slices"])
        pair.agent.advance(BLOCK * inputs["slices"] + 5)
        return {"states": [*states, handle.status.value], "told": pair.told, "batch": handle.batch}

    def verify(inputs, got):
        end = "failed" if inputs["fails"] else "done"
        want = ["None", "waiting", 0, end]
        told = [] if inputs["fails"] else [["peer", "it is yours", 2]]
        early = got["states"][2] > 0
        text = (
            f"status before and after the post, messages 1 ns before the last byte, and the status at the end are "
            f"{got['states']}, expected {want}"
        )
        explain(got["states"], want, text, {
            "the message went out before the data had arrived": got["states"] if early else None,
        })  # fmt: skip
        explain(got["told"], told, f"{got['told']} was told (name, message, slices that had come), expected {told}", {
            "a failed post was notified: the target would use bytes that never came": got["told"] if not told else None,
            "the message was told again and again": told * len(got["told"]),
            "the message goes to the peer, by its name": [["here", "it is yours", 2]],
        })  # fmt: skip
        explain(got["batch"], None, "the handle still has a batch: it could not be posted again")


@case(task=3)
class OnePostAtATime:
    """A handle is posted again after its end, not before; each post moves what is there then, and frees its batch."""

    def inputs(rng):
        return {"block": int(rng.integers(0, 16)), "turns": 3}

    def observe(solution, inputs):
        pair, seen = Pair(solution), []
        pair.agent.add_remote(pair.peer())
        handle = pair.agent.prepare(pair.Op.READ, [inputs["block"]], [3], "peer", "again")
        for turn in range(inputs["turns"]):
            at, there = 1000 * turn, 128 + 3 * BLOCK
            pair.world.there[there : there + BLOCK] = bytes([turn + 1]) * BLOCK
            pair.agent.post(handle, at)
            twice = error_of(lambda at=at: pair.agent.post(handle, at))
            pair.agent.advance(at + BLOCK)
            here = inputs["block"] * BLOCK
            freed = error_of(lambda turn=turn: pair.world.engine.status(turn + 1))["type"]
            seen.append([twice, len(pair.told), pair.world.here[here], freed])
        return seen

    def verify(inputs, got):
        for turn, (twice, told, byte, freed) in enumerate(got):
            refused(twice, "a post while one is under way", "peer")
            text = f"after post {turn + 1}: messages and the byte there {[told, byte]}, expected {[turn + 1, turn + 1]}"
            explain([told, byte], [turn + 1, turn + 1], text)
            explain(freed, "KeyError", f"the batch of post {turn + 1} was not freed after its end")


@case(task=3)
class StrangersAndTheDead:
    """No transfer with an agent that is unknown or was forgotten, nor of blocks that are not there or not in pairs."""

    def inputs(rng):
        return {"block": int(rng.integers(16, 99)), "count": int(rng.integers(4, 10))}

    def observe(solution, inputs):
        pair = Pair(solution)
        agent, read, post = pair.agent, pair.Op.READ, pair.agent.post
        unknown = error_of(lambda: agent.prepare(read, [0], [0], "peer"))["type"]
        size = error_of(lambda: agent.add_remote(pair.peer(size=32)))
        agent.add_remote(pair.peer(count=inputs["count"]))
        last = inputs["count"] - 1

        def tried(*blocks: list[int]) -> dict:
            return error_of(lambda: len(agent.prepare(read, *blocks, "peer").requests))

        there, here = tried([0], [inputs["count"]]), tried([inputs["block"]], [0])
        runs = [tried([0, 1], [last, last + 1]), tried([15, 16], [0, 1])]
        pairs = tried([0, 1], [0])["type"]
        handle = agent.prepare(read, [0], [0], "peer")
        agent.invalidate("peer")
        dead = [
            error_of(lambda: post(handle, 0))["type"],
            error_of(lambda: agent.prepare(read, [0], [0], "peer"))["type"],
        ]
        pair.world.engine.open("peer")
        asked = list(pair.world.asked)
        agent.add_remote(pair.peer(start=0, count=4))  # it is back, and its memory lies elsewhere
        moved = [r.offset for r in agent.prepare(read, [0], [2], "peer").requests]
        refusals = {"size": size, "there": there, "here": here, "runs": runs}
        return refusals | {"unknown": unknown, "pairs": pairs, "dead": dead, "asked": asked, "moved": moved}

    def verify(inputs, got):
        explain(got["unknown"], "KeyError", f"prepare with an agent that was never added raised {got['unknown']}")
        refused(got["size"], "metadata with blocks of 32 bytes for one with 64", "32", "64")
        refused(got["there"], f"block {inputs['count']} of a peer with {inputs['count']}", str(inputs["count"]))
        refused(got["here"], f"block {inputs['block']} of 16 here", str(inputs["block"]))
        for outside, error in zip((inputs["count"], 16), got["runs"], strict=True):
            refused(error, f"block {outside} of {outside}, in a run that begins inside", str(outside))
        explain(got["pairs"], "ValueError", f"two blocks here and one there: {got['pairs']}, expected ValueError")
        text = f"post and prepare with an agent that was forgotten raised {got['dead']}, expected KeyError twice"
        explain(got["dead"], ["KeyError", "KeyError"], text, {
            "a handle of a dead agent was posted: its memory may be somebody else's": [None, "KeyError"],
        })  # fmt: skip
        explain(got["asked"], ["peer"], "the engine still knows the memory of a dead agent: invalidate it there too")
        explain(
            got["moved"], [2 * BLOCK], f"block 2 of an agent that came back is at {got['moved']}: add_remote replaces"
        )


# Task 4

SIZE = 10


def judge_store(inputs: dict, got: list, mistakes: list[str]) -> None:
    """Compare a trace with the model's; the mistakes that explain it are named."""
    limits = [inputs.get("capacity", 100), SIZE, inputs.get("high", 0.9), inputs.get("share", 0.05)]
    script = inputs["script"]
    want = Model(*limits).run(script)
    for number, (step, a, b) in enumerate(zip(script, got, want, strict=True)):
        if a != b:
            text = (
                f"action {number} at {step[0]} ns, {step[1:]}: outcome, free bytes and keys are\n  {a}\n"
                f"expected\n  {b}\nafter {script[max(0, number - 6) : number]}"
            )
            upto = script[: number + 1]
            explain(got[: number + 1], want[: number + 1], text, {
                MISTAKES[name]: Model(*limits, name).run(upto) for name in mistakes
            })  # fmt: skip


def played(solution, inputs: dict) -> list:
    limits = [inputs.get("capacity", 100), SIZE, inputs.get("high", 0.9), inputs.get("share", 0.05)]
    return play_store(solution, inputs["script"], *limits)


def put(now: int, number: int, key: str, pin: str = "") -> list[list]:
    """A put that ends at once."""
    return [[now, "put", number, key, pin], [now, "end", number]]


@case(task=4)
class AnObjectIsThereFromItsEnd:
    """An object can be had from the end of its put on, and never changes; a revoked put leaves nothing."""

    def inputs(rng):
        gap = int(rng.integers(1, 9))
        script = [[0, "put", 1, "a"], [gap, "get", "a"], [gap, "put", 2, "a"], [gap, "remove", "a"], [gap, "end", 1]]
        script += [[gap, "end", 1], [gap, "revoke", 1], [gap, "get", "a"], [gap, "put", 3, "a"], [50, "put", 4, "a"]]
        script += [[50, "put", 5, "b"], [50, "revoke", 5], [50, "end", 5], [50, "get", "b"], *put(50, 6, "b")]
        return {"script": script}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        judge_store(inputs, got, ["unfinished is seen", "overwritten"])


@case(task=4)
class VersionsAreUnique:
    """No two puts have the same version, also where one was revoked, replaced or refused."""

    def inputs(rng):
        return [int(n) for n in rng.integers(0, 4, 30)]

    def observe(solution, inputs):
        master, found = master_of(solution, {"s0": 100}), []
        for now, key in enumerate(inputs):
            put = outcome_of(solution, lambda now=now, key=key: master.put_start(key, 10, now * DISCARD))
            if put != "StoreError":
                found.append(put.version)
                if key == 0:
                    master.put_revoke(put)
            master.tick(now * DISCARD)
        return found

    def verify(inputs, got):
        text = f"versions are {got}: each put has its own"
        explain(len(set(got)), len(got), text)


@case(task=4)
class ALeaseKeepsAnObject:
    """Until its lease is over an object is neither evicted nor removed; then it is, for whoever needs the space."""

    def inputs(rng):
        at = int(rng.integers(1, 50))
        full = [step for n, key in enumerate("abcdefghij") for step in put(0, n, key)]
        gets = [[at, "get", key] for key in "abcdefghij"]
        late = [[at + LEASE, "put", 20, "k"], [at + LEASE, "remove", "b"], [at + LEASE, "get", "c"]]
        return {"script": [*full, *gets, *late, [at + LEASE + 1, "remove", "b"], *put(at + LEASE + 1, 21, "k"),
            *put(at + LEASE + 1, 22, "l"), [at + LEASE + 1, "put", 23, "b"], [at + LEASE + 2, "get", "c"]]}  # fmt: skip

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        judge_store(inputs, got, ["leased goes", "lease ends early", "unfinished goes"])


@case(task=4)
class ToPollIsNoUse:
    """Who asks again and again whether an object exists does not keep it: it is evicted in its turn."""

    def inputs(rng):
        first, *rest = (str(key) for key in rng.permutation(list("bcdefghij")))
        full = [step for n, key in enumerate([first, "a", *rest]) for step in put(n, n, key)]
        polls = [[45 - i, "exists", first] for i in range(int(rng.integers(3, 20)), 0, -1)]
        return {"script": [*full, *polls, *put(45, 30, "k"), [45, "exists", first], [45, "get", first]]}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        judge_store(inputs, got, ["exists leases", "exists is use"])


@case(task=4, params=[{"pins": ["", "", ""]}, {"pins": ["soft", "", "hard"]}, {"pins": ["hard", "soft", "soft"]}])
class WhoGoesFirst:
    """The least recently used goes first, soft pins after all others while they last, hard pins and open puts never."""

    def inputs(rng, pins):
        order = [str(key) for key in rng.permutation(list("abcdefghi"))]
        puts = [put(n, n, key, pins[n % 3]) for n, key in enumerate(order)]
        script = [step for two in puts for step in two] + [[9, "put", 9, "j"]]
        script += [[10 + n, "get", str(key)] for n, key in enumerate(rng.choice(order, 4))]
        keys = [*"kl", *order, *order]
        script += [[40 + 3 * n, "put", 10 + n, key, ""] for n, key in enumerate(keys[:9])]
        script += [[60 + 3 * n, "end", 10 + n] for n in range(9)]
        script += [[110 + 4 * n, "put", 20 + n, key, ""] for n, key in enumerate(order)]
        return {"script": sorted(script, key=lambda step: step[0])}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        judge_store(inputs, got, ["newest first", "get is no use", "no soft", "soft is hard", "soft is not renewed",
            "no hard", "unfinished goes", "leased goes"])  # fmt: skip


@case(task=4, params=[{"share": 0.05}, {"share": 0.3}, {"share": 0.1}])
class AboveTheMark:
    """A tick evicts above `high` only, and then `share` of the capacity, no more and no less."""

    def inputs(rng, share):
        script, number = [], 0
        for turn in range(4):
            for key in "abcdefghij":
                number += 1
                script += put(20 * turn, number, key)
            script += [[20 * turn + LEASE + 1, "tick"], [20 * turn + LEASE + 2, "tick"]]
        return {"script": script[: int(rng.integers(60, len(script)))], "share": share, "high": 0.9}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        judge_store(inputs, got, ["only as needed", "all goes", "high is enough", "no tick"])


@case(task=4)
class TwoClocksOfAPut:
    """A put that does not end loses its key after `discard`, its space only after `release`: it may write till then."""

    def inputs(rng):
        early = int(rng.integers(1, DISCARD))
        script = [[0, "put", 1, "a"], [0, "put", 2, "b"], [early, "put", 3, "a"], [DISCARD - 1, "put", 4, "a"]]
        script += [
            [DISCARD, "put", 5, "a"],
            [DISCARD + 1, "end", 1],
            [DISCARD + 1, "get", "a"],
            [DISCARD + 2, "end", 5],
        ]
        script += [[DISCARD + 3, "get", "a"], [RELEASE - 1, "tick"], [RELEASE, "tick"], [RELEASE, "end", 2]]
        script += [step for n, key in enumerate("cdefghijk") for step in put(RELEASE + 40, 10 + n, key)]
        return {"script": [*script, *put(RELEASE + 41, 30, "l")]}

    def observe(solution, inputs):
        return played(solution, inputs)

    def verify(inputs, got):
        judge_store(inputs, got, ["key is kept", "space at once", "zombies stay", "abandoned stays", "overwritten"])


@case(task=4)
class WhatDoesNotFit:
    """A put that could never fit evicts nothing; one that could evicts until its pieces fit. Else: NoSpaceError."""

    def inputs(rng):
        return {"at": int(rng.integers(1, DISCARD))}

    def observe(solution, inputs):
        master, seen = master_of(solution, {"s0": 80, "s1": 80}, share=0.0), []
        for n in range(16):
            master.put_end(master.put_start(n, 10, 0), 0)
        attempt = lambda key, size, now, n=1: outcome_of(  # noqa: E731
            solution, lambda: len(master.put_start(key, size, now, replicas=n).replicas)
        )
        count = lambda: sum(master.exists(n) for n in range(16))  # noqa: E731
        seen.append([attempt("wide", 81, 1), attempt("thrice", 10, 1, 3), count()])
        seen.append([attempt("big", 80, inputs["at"]), attempt("big", 80, inputs["at"])])
        seen.append([attempt("both", 80, inputs["at"], 2), count()])
        return seen

    def verify(inputs, got):
        never = ["NoSpaceError", "NoSpaceError", 16]
        explain(got[0], never, f"81 bytes in segments of 80, then 3 pieces in 2 segments, and objects left: {got[0]}, "
            f"expected {never}", {
            "everything was evicted for a put that can never fit": ["NoSpaceError", "NoSpaceError", 0],
            "two pieces of one object are in the same segment": ["NoSpaceError", 3, got[0][2]],
            "there is a NoSpaceError for that": ["StoreError", "StoreError", got[0][2]],
        })  # fmt: skip
        explain(got[1], [1, "StoreError"], f"80 bytes, when objects of 10 bytes fill 2 segments of 80; once more: "
            f"{got[1]}, expected {[1, 'StoreError']}", {
            "one eviction is not enough: 80 bytes are free, but not in one piece": ["NoSpaceError", 1],
        })  # fmt: skip
        explain(got[2], ["NoSpaceError", 0], f"two pieces of 80 bytes, when a put holds one segment, and objects left: "
            f"{got[2]}, expected {['NoSpaceError', 0]}")  # fmt: skip


@case(task=4)
class SilenceIsDeath:
    """A client that is silent for more than `heartbeat` is dropped with all that only it had; it is told so."""

    def inputs(rng):
        return {"beat": int(rng.integers(1, HEARTBEAT))}

    def observe(solution, inputs):
        master, beat = master_of(solution, {"s0": 100, "s1": 100}), inputs["beat"]
        both, one = master.put_start("both", 10, 0, replicas=2), master.put_start("one", 10, 0, near="s0")
        for put in (both, one):
            master.put_end(put, 0)
        answers = [master.heartbeat("c1", beat), master.heartbeat("c0", 0)]
        answers += [master.heartbeat("nobody", 0) for _ in range(2)]
        seen = []
        for now in (HEARTBEAT // 2, HEARTBEAT, HEARTBEAT + 1, HEARTBEAT + beat, HEARTBEAT + beat + 1):
            master.tick(now)
            grant = master.get("both", now)
            there = sorted(replica.segment for replica in grant.replicas) if grant else []
            seen.append([there, master.exists("one") or one.replicas[0].segment == "s1", master.pool.capacity])
        answers += [master.heartbeat(client, 50) for client in ("c0", "c0", "c1")]
        error_of(lambda: master.mount("s0", 100, "c0", 50))  # refused where it was never dropped
        return {"seen": seen, "answers": [*answers, master.heartbeat("c0", 55)], "end": master.pool.capacity}

    def verify(inputs, got):
        full, one, none = [["s0", "s1"], True, 200], [["s1"], False, 100], [[], False, 0]
        want = [full, full, one, one, none]
        text = (
            f"c0 was heard at 0 ns and c1 at {inputs['beat']}; where the object with two replicas is, whether the one "
            f"on s0 is, and capacity, at {HEARTBEAT // 2}, {HEARTBEAT}, {HEARTBEAT + 1}, then as late after c1's:\n"
            f"  {got['seen']}\nexpected\n  {want}"
        )
        explain(got["seen"], want, text, {
            "nobody was dropped": [full] * 5,
            "silence of exactly `heartbeat` is not too long": [full, one, one, none, none],
            "all clients were dropped for one": [full, full, none, none, none],
        })  # fmt: skip
        answers = [True, True, False, False, False, False, False, True]
        explain(got["answers"], answers, "heartbeats of c1, c0, an unknown one twice, c0 twice and c1 when they were "
            f"dropped, and c0 when it mounted again: {got['answers']}, expected {answers}", {
            "a dropped client is not told: it never mounts its memory again": [True] * 8,
            "a dropped client is not told: it never mounts its memory again ": [True, True, False, False, *[True] * 4],
            "an unknown client is told once, and then taken for known: only `mount` makes it so": [
                True, True, False, True, False, True, False, True],
        })  # fmt: skip
        explain(got["end"], 100, f"after s0 was mounted again the capacity is {got['end']}, expected 100")


@case(task=4, params=[{"away": HEARTBEAT}, {"away": HEARTBEAT + 1}, {"away": 50 * HEARTBEAT}])
class TheMasterWasAway:
    """A master that stood still, or was restarted with its state, heard nobody: silence counts from its return."""

    def inputs(rng, away):
        return {"away": away, "last": int(rng.integers(1, HEARTBEAT))}

    def observe(solution, inputs):
        master = master_of(solution, {"s0": 100, "s1": 100})
        master.put_end(master.put_start("a", 10, 0, replicas=2), 0)
        back, seen = inputs["last"] + inputs["away"], []
        for now in (0, inputs["last"], back, back + HEARTBEAT // 2, back + HEARTBEAT, back + HEARTBEAT + 1):
            master.tick(now)
            if now == back + HEARTBEAT // 2:
                master.heartbeat("c1", now)
            seen.append([master.exists("a"), master.pool.capacity])
        return seen

    def verify(inputs, got):
        want = [[True, 200]] * 5 + [[True, 100]]
        if inputs["away"] == HEARTBEAT:  # no pause: the clients were silent
            want = want[:2] + [[False, 0]] * 4
        text = f"ticks before a pause of {inputs['away']} ns, after it, and later: {got}, expected {want}"
        explain(got, want, text, {
            "all clients were dropped for the master's own pause: the whole cache is lost": want[:2] + [[False, 0]] * 4,
            "nobody was ever dropped again": [[True, 200]] * 6,
        })  # fmt: skip


@case(task=4)
class TheFirstTickIsNoPause:
    """Before its first tick a master was not away: who was silent then is dropped, with all segments that it lent."""

    def inputs(rng):
        return {"start": HEARTBEAT * int(rng.integers(3, 99))}

    def observe(solution, inputs):
        master, start = master_of(solution, {}), inputs["start"]
        for name, client in (("a", "c0"), ("b", "c0"), ("c", "c1")):
            master.mount(name, 100, client, start)
        master.heartbeat("c1", start + 1)
        seen = []
        for now in (start + HEARTBEAT + 1, start + HEARTBEAT + 2):
            master.tick(now)
            seen.append(master.pool.capacity)
        return seen

    def verify(inputs, got):
        text = f"mounted at {inputs['start']} ns, then silent: the capacity after the first ticks is {got}"
        explain(got, [100, 0], f"{text}, expected [100, 0]", {
            "before its first tick a master was not away": [300, 300],
            "a client takes all of its segments with it": [200, 100],
        })  # fmt: skip


@case(task=4)
class AShareIsOfTheCapacity:
    """An eviction frees `share` of the whole capacity, also where only a part of it is in use."""

    def inputs(rng):
        return {"objects": int(rng.integers(6, 15))}

    def observe(solution, inputs):
        master = master_of(solution, {"s0": 200}, share=0.2)
        for n in range(inputs["objects"]):
            master.put_end(master.put_start(n, 10, 0), 0)
        return [int(master.evict(least, 1)) for least in (0, 50)]

    def verify(inputs, got):
        used = inputs["objects"] * 10
        explain(got, [40, min(50, used - 40)], f"of 200 bytes {used} are in use, share 0.2: evict freed {got[0]}, "
            f"then with `least` 50 {got[1]}", {
            "the share is one of the capacity, not of what is in use": [
                -(-used // 50) * 10, min(50, used + used // -50 * 10)],
        })  # fmt: skip


@case(task=4, params=[{"share": 0.05}, {"share": 0.25}])
class AsTheModel:
    """Random puts that end soon, late or never, gets, polls, removals and ticks: outcomes are those of a model."""

    def inputs(rng, share):
        scripts = [store_script(random.Random(int(rng.integers(2**31))), 150) for _ in range(8)]
        return [{"script": script, "share": share} for script in scripts]

    def observe(solution, inputs):
        return [played(solution, one) for one in inputs]

    def verify(inputs, got):
        for one, trace in zip(inputs, got, strict=True):
            judge_store(one, trace, list(MISTAKES))


@case(task=4, timeout=10.0)
class AGoodReadFindsWhatWasPut:
    """Clients are slow, vanish and write late, over real bytes: a read within its lease finds what its put wrote."""

    def inputs(rng):
        return [int(seed) for seed in rng.integers(0, 2**31, 12)]

    def observe(solution, inputs):
        return [bytes_run(solution, seed) for seed in inputs]

    def verify(inputs, got):
        for run in got:
            if run["broken"]:
                raise AssertionError("\n".join(run["broken"]))
            wrong = [key for key, held, right in run["reads"] if held and not right]
            explain(wrong, [], f"reads of keys {wrong} ended within their lease and found other bytes")
        if not sum(held for run in got for _, held, _ in run["reads"]):
            raise AssertionError("no read ended within its lease, in 12 runs")


# Task 5


class FakeMaster:
    """Grants for all keys but those of `missing`; puts are refused as `script` says, in turn: "space", "exists", ""."""

    def __init__(self, solution, missing: list[str] = (), script: list[str] = ()):
        self.records = solution.module("cluster.store_object")
        self.missing, self.script = missing, list(script)
        self.asked: list[list] = []
        self.ended: list[int] = []

    def get(self, key: str, now: int):
        """A lease."""
        self.asked.append([key, now])
        return None if key in self.missing else self.records.Grant(key, 1, (), now + LEASE)

    def put_start(self, key: str, size: int, now: int):
        """What the script says next."""
        self.asked.append([key, size, now])
        match self.script.pop(0) if self.script else "":
            case "space":
                raise self.records.NoSpaceError("no space now")
            case "exists":
                raise self.records.StoreError("it exists")
        return self.records.Put(key, len(self.asked), ())

    def put_end(self, put, now: int) -> None:
        """Noted."""
        self.ended.append(put.version)


def read_all(solution, inputs: dict) -> dict:
    """Reads of all keys; read number i takes inputs["took"][i] ns from its begin on, others go on beside it."""
    master, under_way, most = FakeMaster(solution, inputs["missing"]), [], [0]
    reads = solution.module("cluster.store_client").Reads
    now = 0

    def read(grant) -> None:
        under_way.append([now + inputs["took"][inputs["keys"].index(grant.key)], len(under_way), grant.key])
        most[0] = max(most[0], len(under_way))

    batch = reads(master, inputs["keys"], read, window=inputs["window"])
    batch.begin(0)
    while under_way:
        under_way.sort()
        now, _, key = under_way.pop(0)
        batch.done(key, now)
    return {"results": dict(batch.results), "asked": master.asked, "most": most[0], "end": now}


def schedule(inputs: dict, early: bool = False, renew: bool = False) -> dict[str, list[int]]:
    """When each key's lease begins and its read ends, by hand. early: all leases at 0."""
    ends, found = [], {}
    for key, took in zip(inputs["keys"], inputs["took"], strict=True):
        begin = 0
        while len([end for end in ends if end > begin]) >= inputs["window"]:
            begin = min(end for end in ends if end > begin)
        if key not in inputs["missing"]:
            ends.append(begin + took)
            found[key] = [0 if early else begin, begin + took]
    return found


@case(task=5, params=[{"window": 1}, {"window": 1, "miss": True}, {"window": 3, "miss": True}, {"window": 4}])
class ALateReadHasFailed:
    """Each read is compared with its own lease at its own end: late by one ns it has failed, whatever it read."""

    def inputs(rng, window, miss=False):
        keys = [str(key) for key in rng.permutation(list("abcdefghijkl"))]
        took = [int(n) for n in rng.choice([1, 3, LEASE, LEASE + 1, 2 * LEASE], 12)]
        took[:4] = [int(n) for n in rng.permutation([LEASE, LEASE + 1, 2, 3])]
        return {"keys": keys, "took": took, "window": window, "missing": keys[2:5] if miss else []}

    def observe(solution, inputs):
        return read_all(solution, inputs)

    def verify(inputs, got):
        times = schedule(inputs)
        missing = dict.fromkeys(inputs["missing"], False)

        def results(judge) -> dict[str, bool]:
            return {key: judge(*times[key]) for key in times} | missing

        want = results(lambda begin, end: end - begin <= LEASE)
        late = [key for key in want if got["results"].get(key) != want[key]]
        text = f"reads of {late} with a lease of {LEASE} ns: results {got['results']}, expected {want}"
        first_end = min(end for _, end in times.values())
        explain(got["results"], want, text, {
            "the lease was not looked at when the read had ended": results(lambda *_: True),
            "the lease holds at its last ns too": results(lambda begin, end: end - begin < LEASE),
            "the lease was looked at when the read began": results(lambda *_: True),
            "only one read of the batch was looked at": results(lambda b, e: e > first_end or e - b <= LEASE),
            "a key that is not there has no result": {key: value for key, value in want.items() if key not in missing},
        })  # fmt: skip


@case(task=5, params=[{"window": 1}, {"window": 2}, {"window": 5}])
class LeasesAreAskedForLate:
    """In a batch that takes longer than a lease, each lease is asked for when its read begins: so all are in time."""

    def inputs(rng, window):
        keys = [str(key) for key in rng.permutation(list("abcdefghijkl"))]
        took = [int(n) for n in rng.integers(6, LEASE + 1, 12)]
        return {"keys": keys, "took": took, "window": window, "missing": []}

    def observe(solution, inputs):
        return read_all(solution, inputs)

    def verify(inputs, got):
        explain(got["most"], inputs["window"], f"{got['most']} reads ran at once, expected {inputs['window']}", {
            "all reads began at once": len(inputs["keys"]),
        })  # fmt: skip
        want = [[key, begin] for key, (begin, _) in schedule(inputs).items()]
        explain(got["asked"], want, f"leases were asked for (key, ns): {got['asked']}, expected {want}", {
            "all leases were asked for at the start: the last are used up by waiting": [[key, 0] for key, _ in want],
        })  # fmt: skip
        failed = [key for key, fine in got["results"].items() if not fine]
        explain(failed, [], f"reads of {failed} failed, though each took {LEASE} ns at most")


def put_all(solution, inputs: dict) -> dict:
    """Puts one after the other; then comes back at each next_time; a write takes 1 ns."""
    master, written = FakeMaster(solution, script=inputs["script"]), []
    module = solution.module("cluster.store_client")
    writes = module.Writes(master, written.append, pause=inputs["pause"], tries=inputs["tries"])
    for number, key in enumerate(inputs["keys"]):
        writes.put(key, 100 + number, number)
    for _ in range(100):
        if (now := writes.next_time()) is None:
            break
        writes.advance(now)
    waiting = dict(writes.results)
    for put in written:
        writes.done(put, 10**6)
    return {"asked": master.asked, "written": [put.key for put in written], "before": waiting,
            "after": dict(writes.results), "ended": len(master.ended)}  # fmt: skip


def put_oracle(inputs: dict, again=lambda why: why == "space") -> dict:
    """What should be asked, written and told: a queue of [time, order, key, size, number of the try]."""
    queue = [[n, n, key, 100 + n, 1] for n, key in enumerate(inputs["keys"])]
    script, order = list(inputs["script"]), len(queue)
    asked, written, results = [], [], {}
    while queue:
        queue.sort()
        now, _, key, size, number = queue.pop(0)
        asked.append([key, size, now])
        why = script.pop(0) if script else ""
        if again(why) and number < inputs["tries"]:
            order += 1
            queue.append([now + inputs["pause"], order, key, size, number + 1])
        elif why == "":
            written.append(key)
        else:
            results[key] = why == "exists"
    return {"asked": asked, "written": written, "before": results}


@case(task=5, params=[{"refusals": 1, "tries": 5}, {"refusals": 12, "tries": 3}, {"refusals": 0, "tries": 2}])
class PutsAreTriedAgain:
    """A put that finds no space is tried again, `pause` later and `tries` times at most; one that exists is not."""

    def inputs(rng, refusals, tries):
        keys = [str(key) for key in rng.permutation(list("abcde"))]
        rest = ["exists" if rng.random() < 0.3 else "space" if rng.random() < 0.3 else "" for _ in range(6)]
        return {"keys": keys, "script": ["space"] * refusals + ["exists"] + rest, "tries": tries, "pause": 50}

    def observe(solution, inputs):
        return put_all(solution, inputs)

    def verify(inputs, got):
        want = put_oracle(inputs)
        never = put_oracle(inputs | {"tries": 1})
        eager = put_oracle(inputs, lambda why: why != "")
        more = put_oracle(inputs | {"tries": inputs["tries"] + 1})
        explain(got["asked"], want["asked"], f"put_start was called with (key, bytes, ns) {got['asked']}, expected "
            f"{want['asked']}", {
            "a put that was refused for space was never tried again": never["asked"],
            "a put of a key that exists was tried again": eager["asked"],
            "it was tried once more than `tries`": more["asked"],
        })  # fmt: skip
        explain(got["written"], want["written"], f"written were {got['written']}, expected {want['written']}")
        after = want["before"] | dict.fromkeys(want["written"], True)
        explain(got["before"], want["before"], f"results before the writes end: {got['before']}, expected "
            f"{want['before']}", {
            "a key that exists is in the store: somebody else put it": dict.fromkeys(want["before"], False),
            "a put is in the store when it has ended, not when it begins": after,
            "a put that was given up has no result": {key: v for key, v in want["before"].items() if v},
        })  # fmt: skip
        explain(got["after"], after, f"results at the end: {got['after']}, expected {after}")
        explain(got["ended"], len(want["written"]), f"{got['ended']} puts were ended, expected {len(want['written'])}")


@case(task=5)
class ALateTryIsMadeNow:
    """Who comes back late tries again at that time, not at the one when it was due, and waits `pause` from then."""

    def inputs(rng):
        return {"late": int(rng.integers(1, 40))}

    def observe(solution, inputs):
        master = FakeMaster(solution, script=["space", "space"])
        writes = solution.module("cluster.store_client").Writes(master, lambda put: None, pause=50, tries=5)
        writes.put("a", 100, 7)
        writes.advance(56)
        writes.advance(57 + inputs["late"])
        return [master.asked, writes.next_time()]

    def verify(inputs, got):
        now = 57 + inputs["late"]
        want = [[["a", 100, 7], ["a", 100, now]], now + 50]
        explain(got, want, f"due at 57 ns, come back at {now}: put_start was called with (key, bytes, ns) {got[0]}, "
            f"and the next try is at {got[1]}: expected {want}", {
            "the store was told the time when it was due, which is past": [[["a", 100, 7], ["a", 100, 57]], 107],
        })  # fmt: skip


@case(task=5, params=[{"slow": 1}, {"slow": 4}])
class TheWholePath:
    """Objects are read over a link from a real store: those that come within their lease count, and no others."""

    def inputs(rng, slow):
        return {"slow": slow, "sizes": [int(n) for n in rng.integers(1, 8, 10)]}

    def observe(solution, inputs):
        master = master_of(solution, {"s0": 1000})
        link = solution.module("cluster.link").Link(SECOND // inputs["slow"])
        for key, size in enumerate(inputs["sizes"]):
            master.put_end(master.put_start(key, size, 0), 0)
        now, ends = 0, {}
        read = lambda grant: link.start(grant.key, grant.replicas[0].size, now)  # noqa: E731
        reads = solution.module("cluster.store_client").Reads(master, range(len(inputs["sizes"])), read, window=2)
        reads.begin(0)
        while (time := link.next_time()) is not None:
            now = time
            for key in link.collect(time):
                ends[key] = time
                reads.done(key, time)
        return {"results": [reads.results.get(key) for key in range(len(inputs["sizes"]))], "ends": list(ends.items())}

    def verify(inputs, got):
        begins, left, now, ends = [Fraction(0)] * 2, {}, Fraction(0), {}
        waiting = list(enumerate(inputs["sizes"]))
        begins = {}
        while waiting or left:
            while waiting and len(left) < 2:
                key, size = waiting.pop(0)
                begins[key], left[key] = now, Fraction(size)
            span = min(left.values()) * len(left) * inputs["slow"]
            end = Fraction(math.ceil(now + span))
            left = {key: rest - span / len(left) / inputs["slow"] for key, rest in left.items()}
            done = [key for key, rest in left.items() if rest <= 0]
            others = [key for key in left if key not in done]
            spare = end - (now + span)  # until the reader is told, who is left has the link alone
            for key in done:
                ends[key] = int(end)
                del left[key]
            for key in others:
                left[key] -= spare / len(others) / inputs["slow"]
            now = end
        want = [ends[key] - begins[key] <= LEASE for key in range(len(inputs["sizes"]))]
        explain(dict(map(tuple, got["ends"])), ends, f"the reads end at {got['ends']} ns, expected {ends}")
        explain(got["results"], want, f"read in time: {got['results']}, expected {want}", {
            "the lease was not looked at when the read had ended": [True] * len(want),
        })  # fmt: skip
