"""Day 6, overlap: programs with known times and values, graphs of what comes before what, what requests get alone."""

import random
from collections import Counter
from itertools import product

import mlx.core as mx
import numpy as np

from course.case import case, error_of
from course.model_case import SMALL, model_inputs, model_of, oracle
from course.serving_case import judge
from course.serving_case.drive import drive
from course.serving_case.overlap_case import Questions, Recorder, Simulated, lifetimes
from course.serving_case.stream_oracle import hazards_of, judge_hazards, judge_trace, log_of
from course.serving_case.stream_pitfalls import PITFALLS
from course.serving_case.stream_programs import (
    elapsed,
    host,
    launch,
    program,
    query,
    random_program,
    record,
    run,
    synchronize,
    wait,
    whole_log,
)
from course.serving_case.workload import request, script, workload
from course.suspects import named


def unequal(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got != want:
        raise AssertionError(f"{text}\n{named(m for m, value in (mistakes or {}).items() if value == got)}".strip())


def scheduler_of(solution, kind: str, memory: str, rows: int = 4, max_len: int = 48, pages: int = 30, budget: int = 16):
    """A scheduler of the package under test on one of its memories, with pages of 4 positions."""
    path, name = {
        "rows": ("memory", "RowMemory"),
        "paged": ("paged_memory", "PagedMemory"),
        "prefix": ("prefix_memory", "PrefixMemory"),
    }[memory]
    numbers = (rows, max_len, 4) if memory == "rows" else (rows, max_len, 4, pages)
    held = getattr(solution.module(f"serving.{path}"), name)(*numbers)
    path, name = {
        "fcfs": ("scheduler", "Scheduler"),
        "chunked": ("chunked", "ChunkedScheduler"),
        "mixed": ("mixed", "MixedScheduler"),
    }[kind]
    return getattr(solution.module(f"serving.{path}"), name)(held, budget)


def loop_of(solution, name: str):
    """A maker of engines with this loop."""
    overlap = solution.module("serving.overlap").OverlapEngine
    return {
        "normal": solution.module("serving.engine").Engine,
        "overlap": overlap,
        "careful": lambda scheduler, runner: overlap(scheduler, runner, overlap_prefills=False),
    }[name]


COMBINATIONS = [("fcfs", "rows"), *product(("chunked", "mixed"), ("rows", "paged", "prefix"))]


def combined(params: list[dict]) -> list[dict]:
    """Each of `params` with each scheduler and memory that go together."""
    return [{"scheduler": s, "memory": m, **more} for (s, m), more in product(COMBINATIONS, params)]


# Task 1: streams and events


@case(
    task=1,
    params=[
        {"calls": program(launch("a", "long", 1000), host("after", 1), launch_cost=5)},
        {"calls": program(launch("a", "x", 0), launch("a", "y", 9), launch("b", "z", 9), launch_cost=20)},
        {"calls": program(*(launch("a", f"op {i}", 3 + i) for i in range(5)), launch_cost=4)},
    ],
)
class ALaunchReturnsAtOnce:
    """A launch takes the CPU its launch cost, whatever the op takes; the op starts when the launch is over."""

    def inputs(rng, calls):
        return calls

    def observe(solution, inputs):
        return run(solution, inputs)

    def verify(inputs, got):
        judge_trace(inputs, got)


@case(
    task=1,
    params=[
        {"calls": program(launch("a", "x", 30, (), "p"), launch("a", "y", 10, "p", "p"), launch("a", "z", 5, "p"))},
        {"calls": program(launch("a", "x", 30), launch("b", "y", 10), launch("a", "z", 5), launch("b", "w", 50))},
        {"calls": program(launch("a", "x", 30), host("idle", 50), launch("a", "y", 5), launch_cost=2)},
        {"calls": program(launch("a", "x", 0, (), "p"), launch("a", "y", 0, "p"), host("read", 1, "p"))},
    ],
)
class StreamsRunInOrder:
    """The ops of one stream run one after another; different streams run at the same time."""

    def inputs(rng, calls):
        return calls

    def observe(solution, inputs):
        return run(solution, inputs)

    def verify(inputs, got):
        judge_trace(inputs, got)


READ = launch("b", "read", 10, "p")
LATE = [launch("a", "x", 30, (), "p"), record("e", "a"), launch("a", "y", 40, (), "p")]


@case(
    task=1,
    params=[
        {"calls": program(*LATE, wait("b", "e"), READ)},
        {"calls": program(*LATE, READ, wait("b", "e"), launch("b", "again", 5, "p"))},
        {"calls": program(*LATE, wait("b", "e"), record("e", "a"), READ)},  # a later record moves no wait
        {"calls": program(*LATE, record("e", "a"), wait("b", "e"), READ)},  # a record replaces the one before
        {"calls": program(launch("a", "x", 30, (), "p"), wait("b", "e"), record("e", "a"), READ)},
        {"calls": program(wait("b", "never"), READ, host("read too", 3, "p"))},
        {"calls": program(record("e", "a"), wait("b", "e"), READ, launch_cost=2)},  # nothing was in the stream
        {
            "calls": program(
                *LATE, wait("b", "e"), record("f", "b"), wait("c", "f"), launch("c", "z", 1, "p"), streams="abc"
            )
        },
        {"calls": program(*LATE, wait("b", "e"), host("goes on", 1, "p"), READ, launch_cost=1)},
    ],
)
class EventsOrderStreams:
    """A wait holds a stream's later ops until the latest record of an event; without a record it does nothing."""

    def inputs(rng, calls):
        return calls

    def observe(solution, inputs):
        return run(solution, inputs)

    def verify(inputs, got):
        judge_trace(inputs, got)


@case(
    task=1,
    params=[
        {"calls": program(query("never"), synchronize("never"), host("goes on", 1))},
        {"calls": program(*LATE, *[query("e")] * 6, host("read", 0, "p"))},
        {"calls": program(*LATE, synchronize("e"), host("read", 2, "p"), query("e"))},
        {"calls": program(*LATE, launch("b", "other", 500), synchronize("e"), launch("b", "next", 5), launch_cost=3)},
        {"calls": program(*LATE, record("f", "a"), synchronize("f"), synchronize("e"), host("read", 2, "p"))},
        {"calls": program(*LATE, record("e", "a"), synchronize("e"), host("read", 2, "p"))},
        {"calls": program(launch("a", "x", 7), record("e", "a"), query("e"), query("e"))},  # in the very moment
    ],
)
class TheHostWaits:
    """`synchronize` stops the CPU until the latest record of its event, no longer; `query` asks, and takes its time."""

    def inputs(rng, calls):
        return calls

    def observe(solution, inputs):
        return run(solution, inputs)

    def verify(inputs, got):
        judge_trace(inputs, got)


TIMED = [record("s", "a"), launch("a", "x", 1_500_000), record("t", "a"), launch("b", "y", 4_000_000)]


@case(
    task=1,
    params=[
        {"calls": program(*TIMED, synchronize("t"), elapsed("s", "t"), elapsed("t", "s"), elapsed("s", "s"))},
        {"calls": program(*TIMED, elapsed("s", "t"), elapsed("t", "s"), synchronize("t"), elapsed("s", "t"))},
        {"calls": program(*TIMED, record("u", "b"), elapsed("s", "u"), synchronize("u"), elapsed("t", "u"))},
        {"calls": program(*TIMED, synchronize("t"), elapsed("s", "never"), elapsed("never", "t"))},
        {"calls": program(*TIMED, synchronize("t"), elapsed("s", "t"), untimed="t")},
        {"calls": program(*TIMED, synchronize("t"), elapsed("s", "t"), untimed="s")},
        {"calls": program(*TIMED, synchronize("t"), record("t", "b"), elapsed("s", "t"), launch_cost=1000)},
    ],
)
class TimeBetweenEvents:
    """`elapsed` gives milliseconds on the device; it is refused without a record, without timing, and too early."""

    def inputs(rng, calls):
        return calls

    def observe(solution, inputs):
        return run(solution, inputs)

    def verify(inputs, got):
        judge_trace(inputs, got)


@case(
    task=1,
    params=[
        {"calls": program(launch("a", "x", 20, (), "p"), launch("b", "y", 10, "p", "p"), host("read", 30, "p"))},
        {"calls": program(launch("a", "x", 20, (), "p"), host("early", 5, "p"), host("late", 15, "p"))},
        {"calls": program(launch("a", "x", 20, "p"), launch("b", "y", 10, (), "p"), host("write", 15, (), "p"))},
        {"calls": program(launch("a", "x", 20, (), "p"), launch("b", "y", 20, (), "p"), host("read", 20, "p"))},
        {"calls": program(launch("a", "x", 1, (), "p"), launch("b", "y", 5, "p"), launch("b", "z", 5), launch_cost=10)},
    ],
)
class OpsTakeEffectWhenTheyEnd:
    """What an op reads and writes, it reads and writes when it ends, in the order of all ends: so a race shows."""

    def inputs(rng, calls):
        return calls

    def observe(solution, inputs):
        return run(solution, inputs)

    def verify(inputs, got):
        judge_trace(inputs, got)


def copies(engines: list[str | None]) -> list[list]:
    return [launch("ab"[i % 2], f"copy {i}", 10 + i, engine=engine) for i, engine in enumerate(engines)]


@case(
    task=1,
    params=[
        {"calls": program(*copies(["up", "up", "up"]))},
        {"calls": program(*copies(["up", "down", "up", "down"]), launch_cost=1)},
        {"calls": program(*copies(["up", None, None, "up"]))},
        {"calls": program(launch("a", "x", 50), *copies(["up", "up"]), launch("b", "y", 1, engine="up"))},
        {"calls": program(launch("a", "x", 9), launch("default", "y", 5), launch("a", "z", 2), blocking="a")},
        {"calls": program(launch("a", "x", 9), launch("default", "y", 5), launch("a", "z", 2), launch("b", "w", 1))},
        {"calls": program(launch("default", "x", 9), launch("a", "y", 5), launch("b", "z", 2), blocking="b")},
    ],
)
class SharedUnits:
    """An engine runs one op at a time, whatever its stream; the default stream is ordered with blocking streams."""

    def inputs(rng, calls):
        return calls

    def observe(solution, inputs):
        return run(solution, inputs)

    def verify(inputs, got):
        judge_trace(inputs, got)


LEGACY = [launch("a", "x", 9, (), "p"), launch("default", "y", 5, "p", "p"), launch("a", "z", 2, "p")]


@case(
    task=1,
    params=[
        {"calls": program(*LEGACY, blocking="a"), "races": []},
        {"calls": program(*LEGACY), "races": [["RAW", "x", "y"], ["RAW", "y", "z"], ["WAW", "x", "y"]]},
        {"calls": program(LEGACY[0], launch("default", "y", 5), launch("b", "z", 2, "p"), blocking="ab"), "races": []},
        {"calls": program(LEGACY[0], launch("b", "y", 5, "p"), blocking="ab"), "races": [["RAW", "x", "y"]]},
        {"calls": program(*LEGACY[1:], launch("b", "w", 1, "p"), blocking="a"), "races": [["RAW", "y", "w"]]},
    ],
)
class TheLogKnowsTheDefaultStream:
    """The order of the default stream and blocking ones is in the log, too: a detector sees nothing else."""

    def inputs(rng, calls, races):
        return {"program": calls, "races": races}

    def observe(solution, inputs):
        return whole_log(solution, inputs["program"])

    def verify(inputs, got):
        found = [[kind, first, second] for kind, _, first, second in hazards_of([tuple(call) for call in got])]
        unequal(found, inputs["races"], f"by the log {found} may race, expected {inputs['races']}; the log is {got}",
                {"the order with the default stream is kept in time, and the log does not show it":
                 hazards_without_default(inputs["program"])})  # fmt: skip


def hazards_without_default(calls: dict) -> list[list[str]]:
    return [[kind, first, second] for kind, _, first, second in hazards_of(log_of(calls))]


@case(task=1, params=[{"number": i} for i in range(12)])
class RandomPrograms:
    """Any program of launches, host work, records, waits, queries and synchronisations has CUDA's times and values."""

    def inputs(rng, number):
        return random_program(random.Random(int(rng.integers(2**32))))

    def observe(solution, inputs):
        return run(solution, inputs)

    def verify(inputs, got):
        judge_trace(inputs, got)


@case(task=1, params=[{"name": name, "which": which} for name in PITFALLS for which in (0, 1)])
class PitfallsGiveWrongValues:
    """A missing dependency gives a wrong value, each time the same one; with the dependency the value is right."""

    def inputs(rng, name, which):
        return {"name": name, "which": which}

    def observe(solution, inputs):
        return run(solution, PITFALLS[inputs["name"]][inputs["which"]])

    def verify(inputs, got):
        judge_trace(PITFALLS[inputs["name"]][inputs["which"]], got)


@case(task=1)
class BadOpsAreRefused:
    """An op cannot take less than no time; a refused launch changes nothing."""

    def inputs(rng):
        return {}

    def observe(solution, inputs):
        device = solution.module("serving.streams").Device(launch_cost=5)
        got = error_of(lambda: device.launch(device.stream("a"), "x", -3) and None)
        return got, device.now, len(device.ops), len(device.log)

    def verify(inputs, got):
        refusal, now, ops, log = got
        if refusal["type"] != "ValueError" or "-3" not in refusal["message"]:
            raise AssertionError(f"a duration of -3 ns should be a ValueError that names it: {refusal}")
        unequal((now, ops, log), (0, 0, 0), "the refused launch left something behind: time, an op or a call")


# Task 2: the hazard detector


def found_by(solution, log: list) -> list:
    """What the package's detector finds in a log, as plain values, sorted."""
    call = solution.module("serving.streams").Call
    hazards = solution.module("serving.hazards").find_hazards([call(*entry) for entry in log])
    return sorted([h.kind, h.buffer, h.first, h.second] for h in hazards)


TWO = {"RAW": ("", "p", "p", ""), "WAR": ("p", "", "", "p"), "WAW": ("", "p", "", "p"), "reads": ("p", "", "p", "")}


@case(task=2, params=[{"kind": kind, "order": order} for kind in TWO for order in ("none", "fifo", "event", "host")])
class TwoAccesses:
    """Two accesses to one buffer, one a write, are a hazard unless a stream, an event or the host orders them."""

    def inputs(rng, kind, order):
        a, b, c, d = TWO[kind]
        first, second = launch("a", "first", 5, a, b), launch("a" if order == "fifo" else "b", "second", 5, c, d)
        between = {
            "event": [record("e", "a"), wait("b", "e")],
            "host": [record("e", "a"), synchronize("e")],
        }.get(order, [])
        return log_of(program(first, *between, second))

    def observe(solution, inputs):
        return found_by(solution, inputs)

    def verify(inputs, got):
        judge_hazards(inputs, got)


@case(
    task=2,
    params=[
        {"calls": [host("w", 1, (), "p"), launch("a", "r", 5, "p")]},  # launched after it
        {"calls": [launch("a", "r", 5, "p"), host("w", 1, (), "p")]},  # but not waited for
        {"calls": [host("w", 1, (), "p"), host("r", 1, "p")]},
        {"calls": [*LATE, synchronize("e"), host("r", 1, "p")]},  # `y` is still running
        {"calls": [*LATE, record("f", "a"), synchronize("f"), READ]},  # what the host knows, all that it launches knows
        {"calls": [wait("b", "e"), launch("a", "x", 1, (), "p"), record("e", "a"), READ]},
        {"calls": [*LATE, wait("b", "e"), record("e", "a"), READ]},
        {"calls": [*LATE, record("e", "a"), wait("b", "e"), READ]},
        {"calls": [*LATE, record("g", "c"), record("f", "a"), wait("c", "f"), wait("b", "g"), READ]},
        {"calls": [*LATE, record("f", "a"), wait("c", "f"), record("g", "c"), wait("b", "g"), READ]},
        {"calls": [launch("a", "x", 1, "p", "p"), launch("b", "y", 1, "p", "p")]},
        {"calls": [launch("a", "x", 1, "p", "q"), launch("b", "y", 1, "q", "p")]},
        {"calls": [launch("a", "x", 1, (), "p"), launch("b", "y", 1, (), "p"), launch("c", "z", 1, "p")]},
        {"calls": [READ, record("e", "a"), wait("b", "e"), launch("a", "w", 1, (), "p"), launch("b", "r", 1, "p")]},
    ],
)
class SmallLogs:
    """Exactly the pairs that nothing orders are reported, with what the later one does after the earlier one."""

    def inputs(rng, calls):
        return log_of(program(*calls, streams="abc"))

    def observe(solution, inputs):
        return found_by(solution, inputs)

    def verify(inputs, got):
        judge_hazards(inputs, got)


@case(task=2, params=[{"number": i} for i in range(10)])
class RandomLogs:
    """In any log, exactly the accesses that no path of streams, events and launches connects are hazards."""

    def inputs(rng, number):
        return log_of(random_program(random.Random(int(rng.integers(2**32))), 60))

    def observe(solution, inputs):
        return found_by(solution, inputs)

    def verify(inputs, got):
        judge_hazards(inputs, got)


@case(task=2)
class LongLogsAreQuick:
    """What the host knows to be done can never race again: a call takes no longer in a long log than in a short one."""

    def inputs(rng):
        return {"rounds": 12_000, "stream": str(rng.choice(["a", "b"]))}

    def observe(solution, inputs):
        call, stream = solution.module("serving.streams").Call, inputs["stream"]
        each = [("access", stream, "forward", ("q",), ("p",)), ("record", stream, "e"), ("wait", "cpu", "e")]
        race = [("access", "c", "late", ("p",), ()), ("access", "d", "too", (), ("p",))]
        log = [call(*entry) for entry in [*each * inputs["rounds"], *race]]
        return [[h.kind, h.buffer, h.first, h.second] for h in solution.module("serving.hazards").find_hazards(log)]

    def verify(inputs, got):
        text = f"{inputs['rounds']} batches that the host waited for, then a read and a write of 'p': {got[:3]}"
        unequal(got, [["WAR", "p", "late", "too"]], text)


@case(task=2, params=[{"name": name} for name in PITFALLS])
class PitfallsAreFound:
    """Each seeded race is found on the device that ran it, and nothing in the repaired program."""

    def inputs(rng, name):
        return name

    def observe(solution, inputs):
        find = solution.module("serving.hazards").find_hazards
        logs = [log_of(each) for each in PITFALLS[inputs][:2]]
        call = solution.module("serving.streams").Call
        return [[[h.kind, h.buffer, h.first, h.second, str(h)] for h in find([call(*c) for c in log])] for log in logs]

    def verify(inputs, got):
        broken, fixed = got
        kind, buffer = PITFALLS[inputs][2]
        if [hazard[:2] for hazard in broken] != [[kind, buffer]]:
            raise AssertionError(f"{inputs}: the {kind} on {buffer!r} was not found, but {broken}")
        if fixed:
            raise AssertionError(f"{inputs}, repaired: {fixed[0][-1]} was reported, but an event orders them")
        judge_hazards(log_of(PITFALLS[inputs][0]), [hazard[:4] for hazard in broken])
        for name in broken[0][2:4]:
            if name not in broken[0][4]:
                raise AssertionError(f"a hazard in words should name both ops: {broken[0][4]!r}")


# Task 3: the token pool and the overlap loop

VOCAB = 50


def library(name: str):
    return mx if name == "mlx" else np


class Pooled:
    """A pool of the package under test, driven by plain steps [row, start, end, samples]; the host knows `ids`."""

    def __init__(self, solution, rows: int, max_len: int, xp: str):
        self.requests = solution.module("serving.request")
        self.pool = solution.module("serving.token_pool").TokenPool(rows, max_len, library(xp))
        self.xp = library(xp)

    def steps(self, steps: list, ids: dict) -> list:
        made = []
        for row, start, end, samples in steps:
            request = self.requests.Request(row, list(ids[row]), 1)
            request.row = row
            made.append(self.requests.Step(request, start, end, samples))
        return made

    def run(self, action: str, steps: list, ids: dict, tokens: list) -> list | None:
        if action == "write":
            return self.pool.write(self.steps(steps, ids), self.xp.array(tokens, self.xp.int32))
        if action == "load":
            return self.pool.load(self.steps(steps, ids))
        read = self.pool.read(self.steps(steps, ids))
        kind = next((name for name in ("mlx", "numpy") if type(read).__module__.startswith(name)), "neither")
        return {"dtype": str(read.dtype).split(".")[-1], "tokens": read.tolist(), "kind": kind}


def pool_case(rng: np.random.Generator, rows: int, max_len: int) -> dict:
    """Prompts that come in chunks, and answers that the host never sees, in batches of random requests."""
    ids = {row: rng.integers(1, VOCAB, int(rng.integers(1, max_len - 4))).tolist() for row in range(rows)}
    ids[rows] = [0]
    true, end, actions, wants = {row: list(known) for row, known in ids.items()}, Counter(), [], []
    for _ in range(10):
        steps, chosen = [], rng.integers(1, VOCAB, rows + 1).tolist()
        for row in rng.permutation(rows).tolist():
            start = end[row]
            stop = min(start + int(rng.integers(1, 5)), len(true[row]))
            if start < stop < max_len and rng.random() < 0.8:
                steps.append([row, start, stop, stop == len(true[row])])
                end[row] = stop
        steps += [[rows, 0, 1, False]] * int(rng.integers(1, 3))
        tokens = [chosen[row] for row, *_ in steps]
        actions += [[name, steps, tokens] for name in ("load", "read", "write")]
        wants.append([None if row == rows else true[row][a:b] for row, a, b, _ in steps])
        for row, _, _, samples in steps:
            true[row] += [chosen[row]] if samples else []
    return {
        "rows": rows,
        "max_len": max_len,
        "ids": [[k, v] for k, v in ids.items()],
        "actions": actions,
        "want": wants,
    }


@case(task=3, params=[{"xp": xp, "rows": rows} for xp in ("numpy", "mlx") for rows in (1, 3, 6)])
class PoolKeepsAllTokens:
    """A step reads the tokens at its positions: those of the prompt, and those that earlier steps chose."""

    def inputs(rng, xp, rows):
        return pool_case(rng, rows, 14) | {"xp": xp}

    def observe(solution, inputs):
        pooled = Pooled(solution, inputs["rows"], inputs["max_len"], inputs["xp"])
        ids = dict(inputs["ids"])
        got = [pooled.run(action, steps, ids, tokens) for action, steps, tokens in inputs["actions"]]
        return [read for read in got if read is not None]

    def verify(inputs, got):
        batches = [steps for action, steps, _ in inputs["actions"] if action == "read"]
        for steps, want, read in zip(batches, inputs["want"], got, strict=True):
            unequal(read["dtype"], "int32", f"the pool gave {read['dtype']}: token ids are int32")
            unequal(read["kind"], inputs["xp"], f"a pool with xp={inputs['xp']} gave an array of {read['kind']}")
            tokens = list(read["tokens"])
            unequal(len(tokens), sum(b - a for _, a, b, _ in steps), f"{steps} read {len(tokens)} tokens")
            for (row, start, end, _), hoped in zip(steps, want, strict=True):
                found, tokens = tokens[: end - start], tokens[end - start :]
                if hoped is None:
                    if not 0 <= found[0] < VOCAB:
                        raise AssertionError(f"padding read {found[0]}: the dummy row must hold a token, too")
                else:
                    unequal(found, hoped, f"positions {start} .. {end - 1} of row {row} hold {hoped}, read was {found}")


@case(task=3, params=[{"xp": "numpy"}, {"xp": "mlx"}])
class ChunksKeepThePrompt:
    """What is chosen after a chunk that is not the prompt's last overwrites no token of the prompt."""

    def inputs(rng, xp):
        ids = rng.integers(1, VOCAB, 9).tolist()
        return {"xp": xp, "ids": [[0, ids], [1, ids[::-1]]], "garbage": rng.integers(1, VOCAB, 2).tolist()}

    def observe(solution, inputs):
        pooled, ids = Pooled(solution, 2, 12, inputs["xp"]), dict(inputs["ids"])
        first, second = [[0, 0, 4, False], [1, 0, 6, False]], [[0, 4, 9, True], [1, 6, 9, True]]
        for steps in (first, second):  # the next chunk is uploaded while the device still runs the first
            pooled.run("load", steps, ids, [])
        pooled.run("write", first, ids, inputs["garbage"])
        return pooled.run("read", second, ids, [])["tokens"]

    def verify(inputs, got):
        (_, a), (_, b) = inputs["ids"]
        want = a[4:] + b[6:]
        mistake = [inputs["garbage"][0], *a[5:], inputs["garbage"][1], *b[7:]]
        unequal(got, want, f"the second chunks hold {want}, the pool gave {got}",
                {"what a chunk chose was written over the next token of its prompt": mistake})  # fmt: skip


@case(task=3, params=[{"xp": "numpy"}, {"xp": "mlx"}])
class PaddingReadsAToken:
    """A pool that was never written to gives padding a token that exists: it goes through the model like any other."""

    def inputs(rng, xp):
        return {"xp": xp}

    def observe(solution, inputs):
        return Pooled(solution, 3, 8, inputs["xp"]).run("read", [[3, 0, 1, False]] * 2, {3: [0]}, [])

    def verify(inputs, got):
        if not all(0 <= token < VOCAB for token in got["tokens"]):
            raise AssertionError(f"padding read {got['tokens']}: the dummy row must hold a token, too")


def launches(solution, inputs: dict, loop: str = "overlap", **fails) -> dict:
    """Run a script on a loop, and note the order of launches and reads."""
    recorders = []

    def engine(scheduler, runner):
        recorders.append(Recorder(runner, **fails))
        return loop_of(solution, loop)(scheduler, recorders[0])

    scheduler = scheduler_of(solution, inputs["scheduler"], inputs["memory"])
    trace = drive(solution, scheduler, inputs["script"], engine)
    return trace | {"events": recorders[0].events}


THREE = script(request(0, [5, 6, 7], 6), request(1, [8], 3), request(2, [9, 10], 4))


@case(task=3, params=combined([{}]))
class LaunchesAhead:
    """Batch N + 1 is launched before batch N is read, and there are never more than two in flight."""

    def inputs(rng, scheduler, memory):
        return {"scheduler": scheduler, "memory": memory, "script": THREE}

    def observe(solution, inputs):
        return launches(solution, inputs)

    def verify(inputs, got):
        judge.verify(inputs["script"], got)
        count = len(got["batches"])
        order = ["launch 0", *(event for i in range(1, count) for event in (f"launch {i}", f"read {i - 1}"))]
        unequal(got["events"], [*order, f"read {count - 1}"], f"the order of launches and reads is {got['events'][:6]}",
                {"each batch is read before the next one is launched":
                 [event for i in range(count) for event in (f"launch {i}", f"read {i}")]})  # fmt: skip


@case(task=3, params=combined([{"number": 0}, {"number": 1}, {"number": 2}]), timeout=8.0)
class OverlapIsNormal:
    """Both loops give every request the tokens that it gets alone, and end with everything free: for any workload."""

    def inputs(rng, scheduler, memory, number):
        made = workload(int(rng.integers(2**31)), requests=10, aborts=0.0, stops=0.5, steps=20)
        return {"scheduler": scheduler, "memory": memory, "script": made}

    def observe(solution, inputs):
        return [launches(solution, inputs, loop) for loop in ("normal", "overlap", "careful")]

    def verify(inputs, got):
        for loop, trace in zip(("normal", "overlap", "overlap without prefills"), got, strict=True):
            try:
                judge.verify(inputs["script"], trace)
            except AssertionError as error:
                raise AssertionError(f"loop {loop}: {error}") from None
        unequal(
            got[0]["end"], got[1]["end"], f"at the end {got[0]['end']} after one loop, {got[1]['end']} after the other"
        )


def stopping(rng: np.random.Generator, stops: list[bool]) -> dict:
    """Requests that all begin at once, of which some end by a stop token before their length."""
    adds = []
    for uid, stop in enumerate(stops):
        ids = rng.integers(0, 1009, 2 + uid).tolist()
        answer, _ = judge.alone(ids, 6 + uid)
        adds.append(request(uid, ids, 6 + uid, stop=[answer[2 + uid % 3]] if stop else []))
    return script(*adds)


@case(
    task=3,
    params=[{"stops": s, "memory": m} for m in ("rows", "prefix") for s in ([0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1])],
)
class OneStepForNothing:
    """A request that ends by its length takes no step too many; one that ends by a stop token takes exactly one."""

    def inputs(rng, stops, memory):
        return {"scheduler": "chunked", "memory": memory, "script": stopping(rng, stops), "stops": stops}

    def observe(solution, inputs):
        return launches(solution, inputs)

    def verify(inputs, got):
        judge.verify(inputs["script"], got)
        chosen, given = lifetimes(got), {uid: len(tokens) for uid, tokens in judge.tokens_of(got).items()}
        for uid, stop in enumerate(inputs["stops"]):
            wasted = chosen[uid] - given[uid]
            unequal(
                wasted,
                int(stop),
                f"request {uid} ends by {'a stop token' if stop else 'its length'}: {wasted} steps ran for nothing, "
                f"expected {int(stop)}",
                {"its end was noticed a step late": int(stop) + 1, "batch N was read before N + 1 was launched": 0},
            )


@case(task=3, params=combined([{"number": 0}]))
class HistoryIsReadFirst:
    """A request with a repetition penalty chooses with its whole history: the batch before is read first."""

    def inputs(rng, scheduler, memory, number):
        made = workload(int(rng.integers(2**31)), requests=8, aborts=0.0, penalties=0.4, steps=10)
        return {"scheduler": scheduler, "memory": memory, "script": made}

    def observe(solution, inputs):
        return launches(solution, inputs)

    def verify(inputs, got):
        try:
            judge.verify(inputs["script"], got)
        except AssertionError as error:
            likely = "likely mistake: a request with a repetition penalty was launched before its last token was read"
            raise AssertionError(f"{error}\n{likely}") from None


@case(task=3, params=[{"penalty": False}, {"penalty": True}, {"penalty": False, "temperature": 0.8}])
class OthersKeepTheirOverlap:
    """Only batches whose next step needs history are read first; without such a request, the loop launches ahead."""

    def inputs(rng, penalty, temperature=0.0):
        adds = [request(0, [1, 2], 6), request(1, [3], 2) | {"penalty": penalty, "temperature": temperature}]
        return {"scheduler": "chunked", "memory": "rows", "script": script(*adds)}

    def observe(solution, inputs):
        return launches(solution, inputs)

    def verify(inputs, got):
        judge.verify(inputs["script"], got)
        ahead = [
            event for event, after in zip(got["events"], got["events"][1:], strict=False) if after[:4] == event[:4]
        ]
        early = got["events"].index("read 0") < got["events"].index("launch 1")
        order = f"launches and reads came in the order {got['events']}"
        unequal(early, inputs["script"]["adds"][1]["penalty"], f"{order}: a history must be read first")
        if not ahead:
            raise AssertionError(f"nothing was launched ahead: {got['events']}")


@case(
    task=3,
    params=[{"loop": loop, "later": at} for loop in ("overlap", "careful") for at in (0, 2)]
    + [{"loop": "careful", "later": 0, "scheduler": "mixed"}],  # a prompt that was begun is in `running` there
)
class PrefillsOneByOne:
    """With `overlap_prefills` off, a prompt's first token is read before the next prompt; decodes still overlap."""

    def inputs(rng, loop, later, scheduler="chunked"):
        prompts = [request(uid, list(range(uid, uid + 14)), 4, at=later * uid) for uid in range(3)]
        return {"scheduler": scheduler, "memory": "rows", "script": script(*prompts), "loop": loop}

    def observe(solution, inputs):
        return launches(solution, inputs, inputs["loop"])

    def verify(inputs, got):
        judge.verify(inputs["script"], got)
        prefill = [any(start < 14 for _, start, _, _ in batch) for batch in got["batches"]]
        events = got["events"]
        for i in range(1, len(prefill)):
            ahead = events.index(f"launch {i}") < events.index(f"read {i - 1}")
            want = inputs["loop"] == "overlap" or not (prefill[i - 1] and prefill[i])
            kinds = ["a prefill" if each else "a decode" for each in prefill[i - 1 : i + 1]]
            what = (
                f"batch {i}, {kinds[1]} after {kinds[0]}, was launched {'before' if ahead else 'after'} that was read"
            )
            unequal(ahead, want, f"{what}: {events}")


@case(task=3, params=[{"loop": "overlap"}, {"loop": "careful"}])
class FirstTokens:
    """With `overlap_prefills` off, a step hands out a prompt's first token before the next prompt is prepared."""

    def inputs(rng, loop):
        return {"loop": loop, "prepare": int(rng.integers(2000, 4000)), "forward": 1000}

    def observe(solution, inputs):
        scheduler = scheduler_of(solution, "chunked", "rows", budget=3)
        times = {name: inputs[name] for name in ("prepare", "forward")}
        runner = Simulated(solution, scheduler.memory, **times, process=0, token=0, copy=0)
        engine = loop_of(solution, inputs["loop"])(scheduler, runner)
        for uid in range(2):
            engine.add(solution.module("serving.request").Request(uid, [1, 2, 3], 2))
        first: dict[int, int] = {}
        for _ in range(20):
            for output in engine.step() if engine.busy else []:
                first.setdefault(output.uid, runner.device.now)
        return first

    def verify(inputs, got):
        prepare, forward = inputs["prepare"], inputs["forward"]
        alone = prepare + forward
        late = alone + 2 * prepare  # a decode of the first request is prepared before it is read
        want = {0: 2 * prepare, 1: 3 * prepare} if inputs["loop"] == "overlap" else {0: alone, 1: late}
        unequal(got, want, f"the first tokens came at {got} ns, expected {want}",
                {"the next prompt was prepared before the first token of this one was handed out":
                 {0: alone + prepare, 1: late}})  # fmt: skip


@case(
    task=3,
    params=[
        {"cpu": 100, "gpu": 300},
        {"cpu": 300, "gpu": 100},
        {"cpu": 200, "gpu": 200},
        {"cpu": 1, "gpu": 300},
        {"cpu": 300, "gpu": 1},
    ],
)
class AStepTakesTheLongerOfBoth:
    """On the simulated device a normal step takes CPU + GPU time, an overlapped one the longer of both, nearly."""

    def inputs(rng, cpu, gpu):
        return {"cpu": cpu * 1000, "gpu": gpu * 1000}

    def observe(solution, inputs):
        ends = {}
        for loop in ("normal", "overlap"):
            scheduler = scheduler_of(solution, "chunked", "rows")
            half = inputs["cpu"] // 2
            runner = Simulated(
                solution, scheduler.memory, prepare=half, process=half, forward=inputs["gpu"], token=0, copy=5
            )
            wanted = script(request(0, [1, 2], 30), request(1, [3], 30))
            trace = drive(solution, scheduler, wanted, loop_of(solution, loop), runner=runner)
            ends[loop] = {"ends": runner.ends, "tokens": judge.tokens_of(trace)}
        return ends

    def verify(inputs, got):
        cpu, gpu = inputs["cpu"], inputs["gpu"]
        unequal(got["normal"]["tokens"], got["overlap"]["tokens"], "the loops gave other tokens")
        for loop, want in (("normal", cpu + gpu), ("overlap", max(cpu, gpu))):
            ends = got[loop]["ends"]
            step = (ends[25] - ends[5]) / 20
            if not want <= step <= want + 20:
                raise AssertionError(
                    f"a step of the {loop} loop takes {step:.0f} ns, with {cpu} on the CPU and {gpu} on the GPU: "
                    f"expected {want}, and at most 20 for copies"
                )


@case(task=3, params=combined([{"loop": "normal"}, {"loop": "overlap"}, {"loop": "careful"}]), timeout=8.0)
class NoHazards:
    """On simulated streams both loops give the right tokens, and no access to a page, token or buffer is a race."""

    def inputs(rng, scheduler, memory, loop):
        return simulated_case(rng, scheduler, memory, loop, aborts=0.0)

    def observe(solution, inputs):
        return simulated(solution, inputs)

    def verify(inputs, got):
        judge_simulated(inputs, got)


def simulated_case(rng: np.random.Generator, scheduler: str, memory: str, loop: str, aborts: float) -> dict:
    """A workload for the simulated device, and how long everything takes there."""
    made = workload(int(rng.integers(2**31)), requests=8, aborts=aborts, steps=10)
    costs = dict(zip(("prepare", "process", "forward", "token", "copy"), rng.integers(1, 60, 5).tolist(), strict=True))
    return {"scheduler": scheduler, "memory": memory, "script": made, "loop": loop, "costs": costs}


def simulated(solution, inputs: dict) -> dict:
    """Run a workload on the simulated device, and let the detector read its log."""
    scheduler = scheduler_of(solution, inputs["scheduler"], inputs["memory"])
    runner = Simulated(solution, scheduler.memory, launch_cost=1, **inputs["costs"])
    trace = drive(solution, scheduler, inputs["script"], loop_of(solution, inputs["loop"]), runner=runner)
    return {"trace": trace, "hazards": runner.hazards(solution)}


def judge_simulated(inputs: dict, got: dict) -> None:
    """Raise AssertionError for a hazard, or a wrong token."""
    if got["hazards"]:
        raise AssertionError(f"{len(got['hazards'])} hazards, the first: {got['hazards'][0]}")
    judge.verify(inputs["script"], got["trace"])


def caches_of(solution, model, scheduler, kind: str):
    """Where the keys and values are: "dense" ones by row, or in the pages of a pool."""
    if kind == "dense":
        return solution.module("serving.model_runner").DenseRows(len(model.layers))
    table = scheduler.memory.table
    pool = solution.module("cache.pool").PagePool(model.config, scheduler.memory.pages, 4, mx.float32)
    return solution.module("serving.paged_rows").PagedRows(pool, table)


class Served:
    """An engine of the package under test on a model, whose launches are watched."""

    def __init__(self, solution, model, loop: str, caches: str):
        module = solution.module
        self.scheduler = scheduler_of(
            solution, "chunked", "rows" if caches == "dense" else "prefix", rows=3, max_len=40
        )
        parts = caches_of(solution, model, self.scheduler, caches), module("serving.batch_sampler").BatchSampler()
        if loop == "normal":
            self.runner = module("serving.model_runner").ModelRunner(model, *parts)
        else:
            pool = module("serving.token_pool").TokenPool(3, 40)
            self.runner = module("serving.pool_runner").PoolRunner(model, *parts, pool)
        self.engine = loop_of(solution, loop)(self.scheduler, self)
        self.request = module("serving.request").Request
        self.questions = Questions()
        self.error: Exception | None = None

    def launch(self, batch):
        """Launch it, and note whether that waits for the device."""
        try:
            with self.questions:
                return self.runner.launch(batch)
        except Exception as error:
            self.error = error
            raise

    def tokens(self, requests: list[tuple[int, list[int], int]]) -> dict[int, list[int]]:
        """Run requests to their end."""
        for uid, ids, max_tokens in requests:
            self.engine.add(self.request(uid, list(ids), max_tokens))
        tokens: dict[int, list[int]] = {}
        for _ in range(200):
            for output in self.engine.step() if self.engine.busy else []:
                if output.sampled is None:
                    raise self.error or RuntimeError(f"request {output.uid} ended with {output.finish_reason}")
                tokens.setdefault(output.uid, []).append(output.sampled.token)
        return tokens


@case(task=3, params=[{"caches": "dense"}, {"caches": "paged"}], timeout=15.0)
class OverlapOnTheModel:
    """On a Qwen3, the loop that takes tokens from the device's pool chooses what the normal loop chooses."""

    def inputs(rng, caches):
        requests = [(i, rng.integers(0, SMALL["vocab"], int(rng.integers(1, 24))).tolist(), 6) for i in range(6)]
        return model_inputs(rng, SMALL) | {"requests": requests, "caches": caches}

    def observe(solution, inputs):
        batched = solution.module("serving.ragged").batched(solution.module("model.qwen3").Ops())
        model = model_of(solution, inputs, batched)
        both = {loop: Served(solution, model, loop, inputs["caches"]) for loop in ("normal", "overlap")}
        tokens = [served.tokens(inputs["requests"]) for served in both.values()]
        return {"tokens": tokens, "asked": both["overlap"].questions.asked}

    def verify(inputs, got):
        model = oracle(inputs)
        for uid, ids, count in inputs["requests"]:
            normal, overlap = (list(tokens[uid]) for tokens in got["tokens"])
            unequal(len(overlap), count, f"request {uid} got {len(overlap)} tokens of {count}")
            same = next((i for i in range(count) if normal[i] != overlap[i]), count)
            logits = np.sort(model.logits(np.array([[*ids, *normal[:same]]]))[0, -1])
            if same < count and logits[-1] - logits[-2] > 1e-3:  # else both are right
                raise AssertionError(f"request {uid} got {overlap} in the overlap loop, {normal} in the normal one")
        if got["asked"]:
            asked = ", ".join(sorted(set(got["asked"])))
            raise AssertionError(f"a launch called {asked}: it waits for the device, and nothing overlaps any more")


# Task 4: abort anywhere

POINTS = [(at, between) for at in range(9) for between in (False, True)]


@case(task=4, params=combined([{"loop": "normal"}, {"loop": "overlap"}]), timeout=8.0)
class AbortAtEveryPoint:
    """A request that is aborted at any point ends once and gives all back; the others get what they get alone."""

    def inputs(rng, scheduler, memory, loop):
        head = rng.integers(0, 1009, 9).tolist()
        adds = [
            request(0, [*head, *rng.integers(0, 1009, 21).tolist()], 4),  # its prompt runs in two chunks
            request(1, [*head, 3], 6),
            request(2, [*head, *rng.integers(0, 1009, 11).tolist()], 5, at=1),
            request(3, head, 3, at=3),
        ]
        scripts = [
            script(*adds, aborts=[{"at": at, "uid": uid, "between": between}])
            for at, between in POINTS
            for uid in (0, 1, 2)
        ]
        return {"scheduler": scheduler, "memory": memory, "loop": loop, "scripts": scripts}

    def observe(solution, inputs):
        return [launches(solution, inputs | {"script": each}, inputs["loop"]) for each in inputs["scripts"]]

    def verify(inputs, got):
        for made, trace in zip(inputs["scripts"], got, strict=True):
            abort = made["aborts"][0]
            try:
                judge.verify(made, trace)
            except AssertionError as error:
                when = f"{'between launch and read of' if abort['between'] else 'before'} step {abort['at']}"
                raise AssertionError(f"request {abort['uid']} is aborted {when}: {error}") from None


@case(task=4, params=combined([{"loop": "normal"}, {"loop": "overlap"}]), timeout=8.0)
class RandomAborts:
    """For any workload with aborts at any time, some of them twice: nothing leaks, and no token is wrong."""

    def inputs(rng, scheduler, memory, loop):
        seeds = rng.integers(0, 2**31, 6).tolist()
        scripts = [workload(seed, requests=10, aborts=0.6, steps=12, penalties=0.1) for seed in seeds]
        return {"scheduler": scheduler, "memory": memory, "loop": loop, "scripts": scripts}

    def observe(solution, inputs):
        return [launches(solution, inputs | {"script": each}, inputs["loop"]) for each in inputs["scripts"]]

    def verify(inputs, got):
        for made, trace in zip(inputs["scripts"], got, strict=True):
            judge.verify(made, trace)


@case(task=4, params=combined([{"loop": "overlap"}]), timeout=8.0)
class AbortsAreNoHazards:
    """On simulated streams an aborted request's pages go to somebody else only when no op can touch them any more."""

    def inputs(rng, scheduler, memory, loop):
        return [simulated_case(rng, scheduler, memory, loop, aborts=0.6) for _ in range(5)]

    def observe(solution, inputs):
        return [simulated(solution, each) for each in inputs]

    def verify(inputs, got):
        for each, result in zip(inputs, got, strict=True):
            judge_simulated(each, result)


def told(output) -> list | None:
    """An output as plain values."""
    return None if output is None else [output.uid, output.sampled is not None, output.finish_reason]


@case(task=4, params=combined([{"state": s} for s in ("unknown", "waiting", "in flight", "running", "ended")]))
class AnAbortSaysWhatItDid:
    """An abort returns the last output of a request that has not ended, None for any other, also the second time."""

    def inputs(rng, scheduler, memory, state):
        return {"scheduler": scheduler, "memory": memory, "state": state}

    def observe(solution, inputs):
        scheduler = scheduler_of(solution, inputs["scheduler"], inputs["memory"])
        module = solution.module("serving.request")
        if inputs["state"] != "unknown":
            scheduler.add(module.Request(7, [1, 2, 3], 1 if inputs["state"] == "ended" else 5))
        scheduler.add(module.Request(8, [4, 5], 6))
        batch = None if inputs["state"] in ("unknown", "waiting") else scheduler.next_batch()
        if inputs["state"] in ("running", "ended"):
            scheduler.commit(batch, [module.Sampled(1)] * len(batch.sampling))
        outputs = [told(scheduler.abort(7)), told(scheduler.abort(7))]
        left = [sorted(scheduler.requests), sorted(scheduler.running), [r.uid for r in scheduler.waiting]]
        late = scheduler.commit(batch, [module.Sampled(1)] * 2) if inputs["state"] == "in flight" else []
        return {"outputs": outputs, "left": [7 in uids for uids in left], "late": [told(each) for each in late]}

    def verify(inputs, got):
        alive = inputs["state"] not in ("unknown", "ended")
        want = [[7, False, "abort"] if alive else None, None]
        unequal(got["outputs"], want, f"two aborts of a request that is {inputs['state']} gave {got['outputs']}",
                {"a request ended twice": [want[0]] * 2})  # fmt: skip
        unequal(got["left"], [False] * 3, "an aborted request is still in `requests`, `running` or `waiting`")
        if any(uid == 7 for uid, *_ in got["late"]):
            raise AssertionError("the result of an aborted request gave an output: it has ended, and is dropped")


@case(task=4, params=combined([{"flying": 1}, {"flying": 2}]))
class MemoryStaysWhileInFlight:
    """Memory of an aborted request comes back with its last launched step, not before; its uid is free at once."""

    def inputs(rng, scheduler, memory, flying):
        return {"scheduler": scheduler, "memory": memory, "flying": flying}

    def observe(solution, inputs):
        scheduler, module = (
            scheduler_of(solution, inputs["scheduler"], inputs["memory"]),
            solution.module("serving.request"),
        )
        free = [scheduler.memory.free_rows]
        scheduler.add(module.Request(7, [1, 2, 3], 5))
        batches = [scheduler.next_batch() for _ in range(inputs["flying"])]
        scheduler.abort(7)
        free.append(scheduler.memory.free_rows)
        scheduler.add(module.Request(7, [9, 9], 5))
        for batch in batches:
            scheduler.commit(batch, [module.Sampled(1)])
            free.append(scheduler.memory.free_rows)
        return {"free": free, "again": sorted(scheduler.requests), "pages": scheduler.memory.available}

    def verify(inputs, got):
        rows, free = got["free"][0], got["free"][1:]
        want = [rows - 1] * inputs["flying"] + [rows]
        unequal(free, want, f"{rows} rows are free; after the abort and after each commit {free} should be {want}",
                {"the row was given back while a step was in flight": [rows] * len(free),
                 "the row was never given back": [rows - 1] * len(free)})  # fmt: skip
        unequal(got["again"], [7], "a new request with the same uid was lost when the old one's steps were committed")


@case(task=4, params=combined([{"loop": "normal"}, {"loop": "overlap"}]))
class AFailedBatchEndsItsRequests:
    """Where a launch or a read raises, exactly the requests of that batch end, with "error"; the engine goes on."""

    def inputs(rng, scheduler, memory, loop):
        prompts = [rng.integers(0, 1009, 5 + uid).tolist() for uid in range(4)]
        adds = [request(uid, ids, 5, at=3 * uid) for uid, ids in enumerate(prompts)]
        adds += [request(uid + 10, ids, 5, at=20) for uid, ids in enumerate(prompts)]  # again, after the failure
        fails = [{f"fail_{kind}": [number]} for kind in ("launch", "read") for number in range(5)]
        return {"scheduler": scheduler, "memory": memory, "loop": loop, "script": script(*adds), "fails": fails}

    def observe(solution, inputs):
        traces = []
        for fails in inputs["fails"]:
            recorders = []

            def engine(scheduler, runner, fails=fails, recorders=recorders):
                recorders.append(Recorder(runner, **fails))
                return loop_of(solution, inputs["loop"])(scheduler, recorders[0])

            scheduler = scheduler_of(solution, inputs["scheduler"], inputs["memory"])
            trace = drive(solution, scheduler, inputs["script"], engine)
            traces.append(trace | {"steps": recorders[0].steps, "count": trace["steps"]})
        return traces

    def verify(inputs, got):
        for fails, trace in zip(inputs["fails"], got, strict=True):
            (kind, (number,)), what = next(iter(fails.items())), ""
            failed = {uid for uid, _ in trace["steps"][number]}
            ended = {uid for uid, outputs in judge.outputs_of(trace).items() if outputs[-1][1] == "error"}
            what = f"batch {number}, of requests {sorted(failed)}, failed ({kind})"
            unequal(ended, failed, f'{what}: requests {sorted(ended)} ended with "error"')
            hoped = "cannot be launched" if kind == "fail_launch" else "was lost"
            if not any(hoped in text for text in trace["logged"]):
                raise AssertionError(f"{what}; the log holds {trace['logged']}, and not what the runner raised")
            judge.assert_ends_once(inputs["script"], trace | {"steps": trace["count"]})
            for uid, tokens in judge.tokens_of(trace).items():
                hoped = judge.expected(inputs["script"], trace["max_len"])[uid][0]
                if tokens != (hoped[: len(tokens)] if uid in failed else hoped):
                    likely = "likely mistake: somebody found pages that the failed batch never computed"
                    raise AssertionError(f"{what}; request {uid} then got {tokens}, expected {hoped}\n{likely}")
            judge.assert_idle(trace)
