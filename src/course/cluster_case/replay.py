"""A random workload for one simulated engine, and all that a replica reports when it runs it under virtual time.

Works with either package through public names. Scripts and reports are plain values; times are ns.
"""

from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np

LONGEST = 400
"""Positions of the longest request."""
NAMES = {
    "whole": ("serving.scheduler", "Scheduler"),
    "chunked": ("serving.chunked", "ChunkedScheduler"),
    "mixed": ("serving.mixed", "MixedScheduler"),
}
MEMORIES = {
    "rows": ("serving.memory", "RowMemory"),
    "prefix": ("serving.prefix_memory", "PrefixMemory"),
    "trace": ("cluster.trace_memory", "TraceMemory"),
}


def script(rng: np.random.Generator, requests: int = 30, **engine: object) -> dict[str, object]:
    """Random requests, aborts and looks. Many of their times are ends of steps, if these take as long as one another.

    engine: scheduler, memory, and others, in the place of random ones.
    """
    tick, time, adds, aborts, looks = int(rng.choice([500, 1500])), 0, [], [], []
    for uid in range(requests):
        time += int(rng.choice([0, tick * rng.integers(60), rng.integers(40 * tick)]))
        answer = int(rng.choice([1, 2, rng.integers(1, 150), rng.integers(50, 150)]))
        prompt = int(rng.choice([1, 4, 8, rng.integers(1, 150)]))
        limit = int(rng.choice([answer, 200, 20]))
        hashes = rng.integers(0, 4, rng.integers(0, 10)).tolist()
        adds.append({"time": time, "uid": uid, "prompt": prompt, "answer": answer, "limit": limit, "hashes": hashes})
        if rng.random() < 0.3:
            aborts.append({"time": time + tick * int(rng.integers(120)), "uid": uid})
        if rng.random() < 0.4:
            looks.append(time + tick * int(rng.integers(60)))
    page = int(rng.choice([2, 4, 8, 16]))
    price = [1000, 10, 1, 0, 0, 0] if tick == 500 else [int(n) for n in rng.integers(1, 300, 6)]
    shape = {"page": page, "pages": LONGEST // page + int(rng.integers(20)), "rows": int(rng.choice([2, 4, 8]))}
    shape["budget"] = int(rng.choice([4, 32]))  # over one token for each row
    return {"adds": adds, "aborts": aborts, "looks": looks, "price": price} | shape | engine


def scheduler_of(solution: object, script: dict[str, object]) -> object:
    """The scheduler that a script names, with its memory. `whole` cannot run out of pages by its rule: it has many."""
    module, name = MEMORIES[script["memory"]]
    rows, page = script["rows"], script["page"]
    pages = rows * (LONGEST // page + 1) if script["scheduler"] == "whole" else script["pages"]
    memory = getattr(solution.module(module), name)(rows, LONGEST, page, pages)
    module, name = NAMES[script["scheduler"]]
    return getattr(solution.module(module), name)(memory, script["budget"] + rows)


class Price:
    """A `StepCost` of six prices: of any prompt, a token, a pair; of any decode, each of them, a position."""

    def __init__(self, numbers: Sequence[int]):
        self.numbers = numbers

    def step_time(self, shape: Sequence[int]) -> int:
        """Nanoseconds of one step: prices of prompts and of decodes are added."""
        tokens, context, decodes, decode_context, _ = shape
        base, token, pair, decode_base, decode, position = self.numbers
        prompt = base + token * tokens + pair * context if tokens else 0
        return prompt + ((decode_base or 500) + decode * decodes + position * decode_context if decodes else 0)

    def step_times(self, shape: Sequence[int], steps: int) -> np.ndarray:
        """The same of the next steps, each with a longer context."""
        _, _, decodes, context, _ = shape
        contexts = context + decodes * np.arange(steps, dtype=np.int64)
        return np.array([self.step_time((0, 0, decodes, int(c), decodes)) for c in contexts], np.int64)


class Log:
    """A `Sink` that takes everything down."""

    def __init__(self) -> None:
        self.runs: list[list[object]] = []
        self.tokens: dict[int, list[int]] = {}
        self.ends: list[list[object]] = []
        self.after: Callable[[object, int], None] | None = None
        """Called with each request that has ended, and when."""

    def ran(self, batch: object, start: int, ends: Sequence[int]) -> None:
        """Steps one by one, and the tokens that count."""
        for end in map(int, ends):
            self.runs.append([start, end, [step.request.uid for step in batch.steps]])
            for request in (step.request for step in batch.sampling):
                if request.finish_reason is None:
                    self.tokens.setdefault(request.uid, []).append(end)
            start = end

    def ended(self, request: object, time: int) -> None:
        """Who ended, when and why."""
        self.ends.append([int(time), request.uid, request.finish_reason])
        if self.after is not None:
            self.after(request, time)


def request_of(solution: object, add: dict[str, object]) -> object:
    """The request of one entry of a script."""
    return solution.module("cluster.trace_request").TraceRequest(
        add["uid"], add["prompt"], add["limit"], add.get("hashes", ()), 16
    )


def replica_of(
    solution: object, simulation: object, scheduler: object, answers: dict[int, int], log: Log, **how: object
):
    """A replica whose requests have so many tokens. how: `cost`, `max_steps`."""
    replica = solution.module("cluster.replica").Replica
    return replica(simulation, scheduler, how.pop("cost"), lambda request: answers[request.uid], log, **how)


def look_at(scheduler: object, time: int) -> list[object]:
    """What can be seen of a scheduler and its memory, page numbers apart."""
    memory = scheduler.memory
    running = [[r.uid, r.cached_len, r.device_len, len(r.ids), memory.held(r)] for r in scheduler.running.values()]
    return [time, len(scheduler.waiting), memory.available, memory.free_rows, sorted(running)]


def on_a_replica(solution: object, script: dict[str, object], max_steps: int) -> dict[str, object]:
    """Run a script under virtual time. Returns all that a replica reports, and how many events that took."""
    kernel: ModuleType = solution.module("cluster.kernel")
    phase, simulation, log, states = kernel.Phase, kernel.Simulation(), Log(), []
    scheduler, answers = scheduler_of(solution, script), {add["uid"]: add["answer"] for add in script["adds"]}
    how = {"cost": Price(script["price"]), "max_steps": max_steps}
    replica = replica_of(solution, simulation, scheduler, answers, log, **how)

    def look() -> None:
        replica.wake()
        states.append(look_at(scheduler, simulation.now))

    for add in script["adds"]:
        simulation.at(add["time"], phase.ADMISSION, replica.add, request_of(solution, add))
    for abort in script["aborts"]:
        simulation.at(abort["time"], phase.ADMISSION, replica.abort, abort["uid"])
    for time in script["looks"]:
        simulation.at(time, phase.TELEMETRY, look)
    events = simulation.run()
    report = report_of(log, states, scheduler, replica.busy_time)
    return report | {"steps": replica.steps, "events": events}


def report_of(log: Log, states: list[object], scheduler: object, busy: int) -> dict[str, object]:
    """What must be the same however a script was run."""
    left = [len(scheduler.requests), scheduler.memory.available, scheduler.memory.free_rows]
    hits = [scheduler.asked_tokens, scheduler.hit_tokens]
    seen = {"runs": log.runs, "tokens": log.tokens, "ends": sorted(log.ends), "looks": states}
    return seen | {"left": left, "hits": hits, "busy": busy}
