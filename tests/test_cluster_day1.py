"""Virtual time in the reference over long random runs: queues against theory and SimPy, replicas fast and slow."""

import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Callable, Hashable, Sequence
from math import sqrt

import numpy as np
import pytest

from tiny_llm_ref.cache.radix import Node, RadixTree
from tiny_llm_ref.cluster import queueing
from tiny_llm_ref.cluster.cost import OPT_13B_A100, Formula, Linear, Mocker, StepCost, StepShape
from tiny_llm_ref.cluster.kernel import Phase, Simulation
from tiny_llm_ref.cluster.replica import Replica
from tiny_llm_ref.cluster.roofline import MACHINES, QWEN3, Roofline
from tiny_llm_ref.cluster.table import Attention, Line, Table
from tiny_llm_ref.cluster.trace_memory import TraceMemory
from tiny_llm_ref.cluster.trace_request import TraceRequest
from tiny_llm_ref.serving.chunked import ChunkedScheduler
from tiny_llm_ref.serving.memory import Memory, RowMemory
from tiny_llm_ref.serving.mixed import MixedScheduler
from tiny_llm_ref.serving.paged_memory import PagedMemory
from tiny_llm_ref.serving.prefix_memory import PrefixMemory
from tiny_llm_ref.serving.request import Batch, Request
from tiny_llm_ref.serving.scheduler import Scheduler

STUDENT_999 = 4.781
"""Two-sided 99.9 % quantile of Student's t with 9 degrees of freedom."""


class Log:
    """A sink that keeps all. runs: (start, end, uids that ran) step by step; tokens: times by uid."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, int, tuple[int, ...]]] = []
        self.tokens: dict[int, list[int]] = {}
        self.ends: list[tuple[int, int, str]] = []

    def ran(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        for end in map(int, ends):
            self.runs.append((start, end, tuple(step.request.uid for step in batch.steps)))
            for step in batch.sampling:
                if step.request.finish_reason is None:
                    self.tokens.setdefault(step.request.uid, []).append(end)
            start = end

    def ended(self, request: Request, time: int) -> None:
        self.ends.append((time, request.uid, request.finish_reason))


# Queues


class Each(Formula):
    """Service times of prompts of length L: L microseconds; decodes cost nothing that matters."""

    def time(self, shape: StepShape) -> float:
        return 1000.0 * shape.prefill_tokens + shape.n_decode


def one_token(request: Request) -> int:
    return 1


def fifo(arrivals: Sequence[int], lengths: Sequence[int], servers: int = 1) -> list[int]:
    """Ends of jobs on replicas that take one job at a time from one queue."""
    simulation, log = Simulation(), Log()
    queue: list[TraceRequest] = []
    replicas = [Replica(simulation, Scheduler(RowMemory(1, 10**9), 1), Each(), one_token, log) for _ in range(servers)]

    def dispatch() -> None:
        for replica in replicas:
            if queue and not replica.scheduler.requests:
                replica.add(queue.pop(0))

    def arrive(request: TraceRequest) -> None:
        queue.append(request)
        dispatch()

    def ended(request: Request, time: int) -> None:
        log.tokens[request.uid] = [time]
        simulation.at(time, Phase.WORKER_READY, dispatch)

    log.ended = ended
    for uid, (time, length) in enumerate(zip(arrivals, lengths, strict=True)):
        simulation.at(time, Phase.ADMISSION, arrive, TraceRequest(uid, length, 1))
    simulation.run()
    return [log.tokens[uid][0] for uid in range(len(arrivals))]


def poisson(rng: random.Random, rate: float, n: int) -> list[int]:
    time, times = 0.0, []
    for _ in range(n):
        time += rng.expovariate(rate)
        times.append(int(time * 1e9))
    return times


@pytest.mark.parametrize("servers", [1, 3])
def test_a_replica_is_lindleys_recursion_to_the_nanosecond(servers: int) -> None:
    rng = random.Random(servers)
    for _ in range(5):
        arrivals = sorted(rng.choice((0, 4_000_000, rng.randrange(10**9))) for _ in range(200))
        lengths = [rng.randint(1, 9000) for _ in arrivals]
        ends = fifo(arrivals, lengths, servers)
        assert ends == queueing.lindley(arrivals, [1000 * length for length in lengths], servers)


def inside(samples: Sequence[float], expected: float) -> None:
    """The mean of the seeds' means is as expected, as far as 10 seeds tell."""
    half = STUDENT_999 * np.std(samples, ddof=1) / sqrt(len(samples))
    assert abs(np.mean(samples) - expected) < half, f"{np.mean(samples):.6g} +- {half:.2g}, expected {expected:.6g}"


def mean_time(seed: int, rate: float, length: Callable[[random.Random], int], servers: int = 1) -> float:
    """Seconds from arrival to end, by the recursion that the replica equals."""
    rng = random.Random(seed)
    arrivals = poisson(rng, rate, 20_000)
    services = [1000 * length(rng) for _ in arrivals]
    ends = queueing.lindley(arrivals, services, servers)
    times = [end - arrival for arrival, end in zip(arrivals, ends, strict=True)]
    return float(np.mean(times[1000:])) / 1e9


def test_closed_forms_hold() -> None:
    service = 0.01
    inside([mean_time(s, 70, lambda r: 10_000) for s in range(10)], queueing.md1_time(70, service))
    uniform = [mean_time(s, 70, lambda r: r.randint(0, 20_000)) for s in range(10)]
    inside(uniform, service + queueing.mg1_wait(70, service, service**2 * 4 / 3))
    exponential = [mean_time(s, 60, lambda r: round(r.expovariate(1 / 10_000))) for s in range(10)]
    inside(exponential, service + queueing.mmc_wait(60, service, 1))
    three = [mean_time(s, 220, lambda r: round(r.expovariate(1 / 10_000)), 3) for s in range(10)]
    inside(three, service + queueing.mmc_wait(220, service, 3))


def test_the_replica_itself_has_the_wait_of_m_d_1() -> None:
    means = []
    for seed in range(10):
        arrivals = poisson(random.Random(seed), 60, 1500)
        ends = fifo(arrivals, [10_000] * len(arrivals))
        means.append(np.mean([end - arrival for arrival, end in zip(arrivals, ends, strict=True)]) / 1e9)
    inside(means, queueing.md1_time(60, 0.01))


def test_two_stages_and_a_speed_up_are_distserves_forms() -> None:
    rate, service = 60, 0.01
    halves = []
    for seed in range(10):
        arrivals = poisson(random.Random(seed), rate, 20_000)
        first = queueing.lindley(arrivals, [5_000_000] * len(arrivals))
        second = queueing.lindley(first, [5_000_000] * len(arrivals))
        assert all(end - begin == 5_000_000 for begin, end in zip(first, second, strict=True)), "the second stage waits"
        halves.append(np.mean([end - arrival for arrival, end in zip(arrivals, second, strict=True)]) / 1e9)
    inside(halves, service + rate * service**2 / (4 * (2 - rate * service)))
    assert queueing.pipeline_time(rate, service) == pytest.approx(
        service + rate * service**2 / (4 * (2 - rate * service))
    )
    k = 1.6
    fast = service / k + rate * service**2 / (2 * k * (k - rate * service))
    assert queueing.speedup_time(rate, service, k) == pytest.approx(fast)
    assert queueing.md1_time(0, service) == service


@pytest.mark.skipif(importlib.util.find_spec("simpy") is None, reason="simpy is not installed")
def test_simpy_agrees() -> None:
    import simpy

    for seed in range(3):
        rng = random.Random(seed)
        arrivals = poisson(rng, 200, 300)
        lengths = [rng.randint(1, 20_000) for _ in arrivals]
        env = simpy.Environment()
        servers, ends = simpy.Resource(env, 3), [0] * len(arrivals)

        def job(uid: int, env=env, servers=servers, ends=ends, arrivals=arrivals, lengths=lengths):
            yield env.timeout(arrivals[uid])
            with servers.request() as turn:
                yield turn
                yield env.timeout(1000 * lengths[uid])
            ends[uid] = env.now

        for uid in range(len(arrivals)):
            env.process(job(uid))
        env.run()
        assert fifo(arrivals, lengths, 3) == ends


# Costs


@pytest.mark.parametrize(
    ("name", "kv"), [("0.6B", 114_688), ("1.7B", 114_688), ("4B", 147_456), ("8B", 147_456), ("14B", 163_840)]
)
def test_models_have_their_bytes_per_token(name: str, kv: int) -> None:
    assert QWEN3[name].kv_bytes == kv
    assert QWEN3["32B"].kv_bytes == 262_144
    assert QWEN3["30B-A3B"].kv_bytes == 98_304


def test_the_roofline_is_compute_for_prompts_and_memory_for_decodes() -> None:
    cost = Roofline(MACHINES["H100"], QWEN3["8B"], overhead=0)
    prompt = StepShape(8192, 8192 * 8193 // 2, 0, 0, 1)
    weights = QWEN3["8B"].attention_weights + QWEN3["8B"].expert_weights
    assert cost.step_time(prompt) / 1e6 == pytest.approx(1000 * cost.work(prompt) / cost.flops)
    assert cost.work(prompt) == pytest.approx(2 * 8192 * weights, rel=0.2)
    one, two = (cost.step_time(StepShape(0, 0, n, 1000 * n, n)) for n in (1, 2))
    assert one < two < 1.05 * one
    assert weights + 2 * QWEN3["8B"].head_weights == pytest.approx(8.19e9, rel=0.01)
    sparse = QWEN3["30B-A3B"]
    assert sparse.attention_weights + 128 * sparse.expert_weights + 2 * sparse.head_weights == pytest.approx(
        30.5e9, rel=0.01
    )
    assert sparse.experts_read(1) == pytest.approx(8)


def small_table() -> Table:
    attention = {(0, 0, n, c): 3.0 + n * c / 7 for n in (1, 4, 16) for c in (16, 64, 512)}
    attention |= {(chunk, b, 0, 0): chunk + b / 3 for chunk in (16, 64) for b in (0, 48)}
    attention |= {(chunk, b, n, 32): chunk + b / 3 + n for chunk in (16, 64) for b in (0, 48) for n in (1, 16)}
    return Table(Line([(1, 10), (8, 12), (64, 40)]), Line([(1, 5), (16, 8)]), Attention(attention), 2, overhead=100)


COSTS = {
    "linear": OPT_13B_A100,
    "mocker": Mocker(3000),
    "roofline": Roofline(MACHINES["L40S"], QWEN3["4B"]),
    "moe on two cards": Roofline(MACHINES["A100"], QWEN3["30B-A3B"], cards=2),
    "table": small_table(),
    "thirds": Linear((1, 0, 0), (1 / 3, 0, 0)),
    "flat": Linear((1, 0, 0), (0.5, 0, 0)),
}


# Requests of traces


def test_pages_of_a_trace_follow_its_blocks() -> None:
    request = TraceRequest(3, 1100, 500, [7, 9, 11])
    assert request.page_keys(512, 1099) == [7, 9]
    assert request.page_keys(256, 1099) == [14, 15, 18, 19]
    other = TraceRequest(4, 2000, 500, [7, 9, 11, 13])
    same = [a == b for a, b in zip(request.page_keys(256, 1099), other.page_keys(256, 1099), strict=True)]
    assert same == [True] * 4
    own = request.page_keys(64, 1300)
    assert len(own) == 20
    assert own[16] == 11 * 8
    assert own[17] not in other.page_keys(64, 2500)
    assert request.page_keys(64, 1300) == own
    assert TraceRequest(5, 1100, 500).page_keys(64, 1099) != TraceRequest(6, 1100, 500).page_keys(64, 1099)
    with pytest.raises(ValueError, match="pages of 100"):
        request.page_keys(100, 1000)


# Replica

Build = Callable[[], Scheduler]


def schedulers(page: int, pages: int, rows: int, budget: int) -> dict[str, Build]:
    """Each scheduler with each memory. Where one cannot run out of pages by its rule, it gets few of them."""

    def memory(kind: type) -> Memory:
        return RowMemory(rows, 400, page, pages) if kind is RowMemory else kind(rows, 400, page, pages)

    build: dict[str, Build] = {"whole, rows": lambda: Scheduler(RowMemory(rows, 400, page), budget)}
    build["whole, prefixes"] = lambda: Scheduler(PrefixMemory(rows, 400, page, rows * 400 // page + rows), budget)
    for kind in (RowMemory, PagedMemory, PrefixMemory, TraceMemory):
        build[f"chunked, {kind.__name__}"] = lambda kind=kind: ChunkedScheduler(memory(kind), budget)
        build[f"mixed, {kind.__name__}"] = lambda kind=kind: MixedScheduler(memory(kind), budget + rows)
        build[f"mixed in small chunks, {kind.__name__}"] = lambda kind=kind: MixedScheduler(
            memory(kind), budget + rows, 7
        )
    return build


NAMES = list(schedulers(4, 100, 4, 32))


def replay(
    scheduler: Scheduler, cost: StepCost, seed: int, max_steps: int, build: Callable[..., Replica] = Replica
) -> tuple[object, ...]:
    """All that a random workload with aborts gives; the times of arrivals hit the ends of steps now and then."""
    rng = random.Random(seed)
    simulation, log = Simulation(), Log()
    lengths: dict[int, int] = {}
    replica = build(simulation, scheduler, cost, lambda request: lengths[request.uid], log, max_steps)
    tick = cost.step_time(StepShape(0, 0, 1, 50, 1)) // rng.choice((1, 3))
    states: list[tuple[int, ...]] = []

    def look() -> None:
        replica.wake()
        memory = scheduler.memory
        running = [(r.uid, r.cached_len, r.device_len, len(r.ids), memory.held(r)) for r in scheduler.running.values()]
        states.append((simulation.now, len(scheduler.waiting), memory.available, memory.free_rows, *running))

    time = 0
    for uid in range(40):
        time += rng.choice((0, tick * rng.randint(0, 60), rng.randrange(40 * tick)))
        lengths[uid] = rng.choice((1, 2, rng.randint(1, 150), rng.randint(50, 150)))
        prompt = rng.choice((1, 4, 8, rng.randint(1, 150)))
        shared = [rng.randint(0, 3) for _ in range(rng.randint(0, 10))]
        request = TraceRequest(uid, prompt, rng.choice((lengths[uid], 200, 20)), shared, 16)
        simulation.at(time, Phase.ADMISSION, replica.add, request)
        if rng.random() < 0.3:
            simulation.at(time + tick * rng.randint(0, 120), Phase.ADMISSION, replica.abort, uid)
        if rng.random() < 0.3:
            simulation.at(time + tick * rng.randint(0, 50), Phase.TELEMETRY, look)
    simulation.run()
    assert not scheduler.requests
    assert not scheduler.waiting
    assert len(log.ends) == 40
    asked = scheduler.asked_tokens, scheduler.hit_tokens, scheduler.memory.available, scheduler.memory.free_rows
    return log.runs, log.tokens, sorted(log.ends), states, simulation.now, replica.busy_time, replica.steps, asked


@pytest.mark.parametrize("name", NAMES)
def test_fast_forward_is_step_by_step(name: str) -> None:
    for seed in range(8):
        rng = random.Random(seed)
        page = rng.choice((2, 4, 8, 16))
        build = schedulers(page, rng.choice((330, 400, 700)) // page, rng.choice((2, 4, 8)), 32)[name]
        cost = COSTS[rng.choice(("flat", *COSTS))]
        fast, slow = replay(build(), cost, seed, 4096), replay(build(), cost, seed, 1)
        assert fast == slow


def test_evictions_come_on_time_where_others_follow_them() -> None:
    """Only pages that are free are taken late."""

    class Follower(Replica):
        def spare(self) -> int:
            return self.scheduler.memory.allocator.available

    class Told(RadixTree):
        def insert(self, keys: Sequence[Hashable], pages: Sequence[int]) -> tuple[int, Node]:
            already, node = super().insert(keys, pages)
            names.update(zip(pages[already:], keys[already:], strict=True))
            return already, node

        def evict(self, pages: int) -> list[int]:
            evicted = super().evict(pages)
            told.append((clock[-1].now, [names[page] for page in evicted]))
            return evicted

    clock: list[Simulation] = []

    def followed(simulation: Simulation, *args: object) -> Replica:
        clock.append(simulation)
        return Follower(simulation, *args)

    for seed in range(10):
        runs = []
        for steps in (4096, 1):
            told: list[tuple[int, list[Hashable]]] = []
            names: dict[int, Hashable] = {}
            memory = TraceMemory(6, 400, 4, 120)
            memory.tree = Told()
            runs.append((replay(MixedScheduler(memory, 40), COSTS["mocker"], seed, steps, followed), told))
        assert len(runs[0][1]) > 10
        assert runs[0] == runs[1]


def test_runs_are_the_same_to_the_byte() -> None:
    script = "import sys; sys.path.insert(0, 'tests'); import test_cluster_day1 as t; "
    script += "print(t.replay(t.schedulers(4, 210, 4, 32)['mixed, PrefixMemory'](), t.COSTS['roofline'], 5, 4096))"
    command = [sys.executable, "-c", script]
    outputs = [
        subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 10_000


def test_a_memory_that_counts_is_the_one_with_pages() -> None:
    for seed in range(20):
        page = random.Random(seed).choice((4, 16))
        run = [
            replay(MixedScheduler(kind(6, 400, page, 800 // page), 40), COSTS["linear"], seed, 4096)
            for kind in (PrefixMemory, TraceMemory)
        ]
        assert run[0] == run[1]


def test_a_uid_may_come_again_while_its_aborted_step_runs() -> None:
    log, simulation = Log(), Simulation()
    replica = Replica(simulation, MixedScheduler(RowMemory(4, 64)), COSTS["flat"], lambda request: 3, log)
    simulation.at(0, Phase.ADMISSION, replica.add, TraceRequest(1, 3, 9))
    simulation.at(10, Phase.ADMISSION, replica.abort, 1)
    simulation.at(10, Phase.ADMISSION, replica.add, TraceRequest(1, 3, 9))
    simulation.run()
    assert [reason for _, _, reason in log.ends] == ["abort", "stop"]
    assert len(log.tokens[1]) == 3


def test_what_arrives_when_a_step_ends_is_in_the_next_batch() -> None:
    log, simulation = Log(), Simulation()
    replica = Replica(
        simulation, MixedScheduler(RowMemory(4, 64)), Linear((1, 0, 0), (1, 0, 0)), lambda request: 9, log
    )
    simulation.at(0, Phase.ADMISSION, replica.add, TraceRequest(0, 3, 9))
    simulation.at(4_000_000, Phase.ADMISSION, replica.add, TraceRequest(1, 3, 9))
    simulation.run()
    assert log.tokens[1][0] == 6_000_000
    simulation.at(simulation.now, Phase.STEP_DONE, replica.wake)
    with pytest.raises(ValueError, match="later phase"):
        simulation.run()


def test_a_crash_ends_all_and_leaves_the_memory_to_nobody() -> None:
    for time in (0, 10, 1_700_000, 4_000_000, 4_500_001):
        log, simulation = Log(), Simulation()
        scheduler = MixedScheduler(PrefixMemory(2, 64, 4, 32))
        replica = Replica(simulation, scheduler, COSTS["flat"], lambda request: 30, log)
        for uid in range(5):
            simulation.at(0, Phase.ADMISSION, replica.add, TraceRequest(uid, 3 + uid, 40))
        simulation.at(time, Phase.TELEMETRY, replica.crash)
        simulation.at(time + 5, Phase.ADMISSION, replica.add, TraceRequest(1, 3, 40))
        simulation.run()
        assert [(uid, reason) for _, uid, reason in log.ends] == [*((uid, "error") for uid in range(5)), (1, "stop")]
        assert scheduler.memory.free_rows == 2
        assert scheduler.memory.available == 32
        assert not scheduler.requests
        assert simulation.now == time + 5 + 1_000_000 + 29 * 500_000
