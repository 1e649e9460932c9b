"""The assembled simulator under random deployments, workloads and faults: every run ends, and leaves nothing behind.

Run more of them by `python tests/test_cluster_simulator_random.py FIRST LAST`.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from test_cluster_simulator import MS, S, stamps

from tiny_llm_ref.cluster import worker as worker_module
from tiny_llm_ref.cluster.actuation import Actuation, Limit
from tiny_llm_ref.cluster.closed_loop import ClosedLoop, Conversations
from tiny_llm_ref.cluster.conditional import Conditional
from tiny_llm_ref.cluster.cost import Linear, Mocker
from tiny_llm_ref.cluster.deployment import Control, Deployment, Fault, Pool, Routing, Transport
from tiny_llm_ref.cluster.goodput import Objective
from tiny_llm_ref.cluster.load_planner import LoadPlanner
from tiny_llm_ref.cluster.planner import ThroughputPlanner
from tiny_llm_ref.cluster.planner_loop import PlannerLoop
from tiny_llm_ref.cluster.profile import measure
from tiny_llm_ref.cluster.routing import CostConfig
from tiny_llm_ref.cluster.run import Run
from tiny_llm_ref.cluster.simulator import Simulator
from tiny_llm_ref.cluster.threshold import ThresholdPlanner
from tiny_llm_ref.cluster.workload import Arrival, Lengths, OpenLoop, SharedPrefixes, Workload, arrival_times, generate

RUNS, GROUP = 160, 20
"""Seeds, and how many of them a test takes."""
POLICIES = ("random", "round-robin", "least-loaded", "power-of-two", "kv-aware")
MOST_TICKS = 4000
"""Looks of a run: more, and it does not end."""


class Noted:
    """A workload that remembers all of its arrivals, in the order in which they are asked for."""

    def __init__(self, workload: Workload):
        self.workload, self.block_tokens, self.arrivals = workload, workload.block_tokens, []

    def initial(self):
        for arrival in self.workload.initial():
            self.arrivals.append(arrival)
            yield arrival

    def after(self, done: Arrival, now: int) -> Arrival | None:
        following = self.workload.after(done, now)
        if following is not None:
            self.arrivals.append(following)
        return following


def pool(rng: Random, block: int) -> Pool:
    blocks = rng.choice([max(4096 // block, 4), max(20_000 // block, 8), 400_000 // block])
    scheduler = rng.choice(["mixed", "mixed", "chunked", "prefill-first"])
    if scheduler == "prefill-first":
        blocks = 4_000_000 // block  # it trusts that memory never runs out
    return Pool(
        rng.choice([Mocker(blocks * block), Linear((20.0, 0.01, 0.0), (10.0, 0.0, 0.1))]),
        workers=rng.randint(1, 4),
        gpus=rng.choice([1, 1, 2, 4, 8]),
        scheduler=scheduler,
        max_num_seqs=rng.choice([1, 4, 256]),
        max_num_batched_tokens=rng.choice([64, 1000, 8192]),
        chunk=rng.choice([None, 256]),
        block_size=block,
        kv_blocks=blocks,
        start_time=rng.choice([0, 1, 3 * S]),
    )


def routing(rng: Random) -> Routing:
    policy = rng.choice([*POLICIES, "kv-aware", "kv-aware"])
    fetch = policy == "kv-aware" and rng.random() < 0.4
    return Routing(
        policy,
        rng.choice(POLICIES),
        CostConfig(shared=0.9 if fetch else 0.0),
        temperature=rng.choice([0.0, 0.5]),
        approximate=rng.random() < 0.2,
        fetch=fetch,
        routers=rng.choice([1, 1, 2, 3]),
        sync=rng.choice([None, 0, MS, S]),
        busy_prefill_tokens=rng.choice([None, None, 2000]),
        overload_blocks=rng.choice([None, None, None, 60]),
        event_delay=rng.choice([0, MS, S // 2]),
    )


def fault(rng: Random, pools: Sequence[str], moments: Sequence[int]) -> Fault:
    """At any time, just after something comes, or never; of a worker by name, or of any."""
    kind = rng.choice(["crash", "crash", "partition", "partition", "slow-nic", "slow-worker", "lost-events"])
    near = rng.choice(moments) + rng.choice([0, 1, MS, 21 * MS, 60 * MS, 200 * MS])
    time = rng.choice([0, near, near, near, rng.randrange(20 * S), 900 * S])
    worker = rng.choice([None, f"{rng.choice(pools)}-{rng.randrange(5)}"])
    lasts = rng.choice([0, 1, S, 4 * S, 12 * S]) if kind == "crash" else rng.choice([1, MS, S, 2 * S, 12 * S])
    return Fault(time, kind, worker, lasts, rng.choice([0.01, 0.1, 0.5, 1.0]))


def workload(rng: Random) -> Workload:
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    inputs = Lengths(rng.choice([1, 300, 2500]), rng.choice([0, 1.0]))
    outputs = Lengths(rng.choice([1, 2, 40, 150]), rng.choice([0, 1.0]))
    n, think = rng.choice([0, 1, 10, 30, 60]), rng.choice([0.0, 1.0])
    kind = rng.choice(["open", "open", "open", "closed", "sessions", "at once"])
    if kind == "closed":
        return ClosedLoop(rng=numbers, users=5, requests=n, inputs=inputs, outputs=outputs, think=think)
    times = arrival_times(numbers, rng.choice([1.0, 8.0, 50.0]), n, rng.choice([0.1, 1.0]))
    if kind == "sessions":
        return Conversations(rng=numbers, times=times[:12], turns=Lengths(3), inputs=inputs, outputs=outputs)
    times = times * 0 if kind == "at once" else times
    prefixes = rng.choice([None, SharedPrefixes(3, 2048)])
    return OpenLoop(generate(numbers, times, inputs, outputs, prefixes))


def planner(rng: Random, deployment: Deployment) -> PlannerLoop | None:
    if rng.random() < 0.6:
        return None
    pools = {"worker": deployment.pool}
    if deployment.prefill:
        pools = {"prefill": deployment.prefill, "decode": deployment.pool}
    limits = {name: Limit(each.gpus, 1, 6) for name, each in pools.items()}
    actuation = Actuation(limits, 48, rng.choice([1, 2, 4]), rng.choice([0, 3 * S]))
    goals = Objective(300 * MS, 20 * MS)
    throughput = None
    if deployment.prefill and rng.random() < 0.4:
        costs = (deployment.prefill.cost, deployment.pool.cost)
        tokens = deployment.pool.kv_blocks * deployment.pool.block_size
        throughput = ThroughputPlanner(measure(*costs, tokens), goals)
    load = rng.choice(
        [LoadPlanner(goals, warm_up=S), ThresholdPlanner("throughput", 4096), ThresholdPlanner("latency", 4096)]
    )
    return PlannerLoop(actuation, throughput, load, 2 * S)


def scenario(seed: int) -> Simulator:
    """Everything of one run."""
    rng = Random(seed)
    block, load = rng.choice([16, 64, 64, 512]), Noted(workload(rng))
    two = rng.random() < 0.6
    names = ("prefill", "decode") if two else ("worker",)
    moments = [arrival.time_ns for arrival in getattr(load.workload, "arrivals", ())] or [0, S]
    deployment = Deployment(
        pool(rng, block),
        pool(rng, block) if two else None,
        routing(rng),
        rng.choice(["pull", "push", "bootstrap"]),
        rng.choice([None, None, Conditional(tokens=1000)]),
        transport=Transport(
            bytes_per_s=rng.choice([10**8, 10**10]),
            nics=rng.choice([1, 1, 3]),
            latency=rng.choice([0, 5000, 50 * MS]),
            slice_bytes=1 << 24,
        ),
        control=Control(rng.choice([1, 3 * S, 10 * S]), rng.choice([S // 3, S, 5 * S]), rng.choice([0, 1, 3, 9])),
        faults=[fault(rng, names, moments) for _ in range(rng.choice([0, 1, 2, 4, 8]))],
    )
    return Simulator(deployment, load, seed, planner(rng, deployment))


def played(seed: int) -> Run:
    """The run of a seed, all of which was looked at."""
    simulator, ticks = scenario(seed), []

    def tick(*counts: int) -> None:
        ticks.append(counts)
        assert len(ticks) < MOST_TICKS, "the run does not end"

    run = simulator.simulate(tick)
    check_records(simulator, run)
    check_workers(simulator)
    check_front(simulator)
    return run


def check_records(simulator: Simulator, run: Run) -> None:
    """Each request ended once; those that are complete had all of their tokens, and nobody more."""
    arrivals = sorted(simulator.front.workload.arrivals, key=lambda arrival: arrival.time_ns)
    assert len(run.records) == len(arrivals)
    wanted = {}
    room = [worker.memory.max_len for worker in simulator.front.workers.values()]
    for arrival in arrivals:
        wanted.setdefault((arrival.time_ns, arrival.input_length), []).append(max(arrival.output_length, 1))
    for record in run.records.values():
        record.check()
        assert record.finish_reason in ("stop", "length", "rejected", "error"), record.uid
        lengths = wanted[record.arrival, record.input_length]
        if record.finish_reason == "stop":
            assert record.output_length in lengths, record.uid
        elif record.finish_reason == "length":
            assert record.input_length + record.output_length in room, record.uid
        assert record.output_length <= max(lengths), record.uid
        assert (np.diff(record.token_times) >= 0).all(), record.uid


def check_workers(simulator: Simulator) -> None:
    """No worker keeps pages, requests or records."""
    fleet = simulator.fleet
    for worker in (*fleet.workers.values(), *fleet.draining.values()):
        memory = worker.memory
        assert worker.idle, worker.name
        assert memory.pages - memory.allocator.available == memory.tree.evictable, worker.name
        assert not worker._first, worker.name
        if simulator.deployment.prefill:
            sides = (worker.receiver.records, worker.receiver.queue, worker.sender.records, worker.sender.requests)
            assert not any((*sides, memory.holds, memory.marked, memory._spare, worker.answers)), worker.name
    for worker in simulator.run.workers.values():
        for before, after in zip(worker.steps, worker.steps[1:], strict=False):
            assert before.end <= after.start, worker.name


def check_front(simulator: Simulator) -> None:
    """Routers know of nobody any more."""
    front = simulator.front
    stages = getattr(front, "stages", ())
    assert not front.jobs
    assert not any(stage.journeys for stage in stages)
    for router in (*front.routers, *(each for stage in stages for each in (stage.prefill, stage.decode))):
        assert not router.placed, router.load.router
        assert not len(router.queue), router.load.router
        if simulator.deployment.routing.sync is not None:
            loads = router.load.workers.values()
            assert not any(each.active_blocks or each.prefill_tokens for each in loads), router.load.router


def text(run: Run) -> str:
    """All that a report can show."""
    workers = [(each.name, each.started, each.stopped) for each in run.workers.values()]
    return repr((stamps(run), run.choices, run.moves, run.samples, run.notes, workers, run.engine_steps))


def one_by_one(seed: int) -> Run:
    """The same run, each step an event of its own."""
    slow = {name: partial(getattr(worker_module, name), max_steps=1) for name in ("Replica", "TellingReplica")}
    with patch.multiple(worker_module, **slow):
        return played(seed)


def digest(first: int, last: int) -> str:
    """Of the runs of some seeds."""
    return hashlib.sha256("".join(text(played(seed)) for seed in range(first, last)).encode()).hexdigest()


@pytest.mark.parametrize("first", range(0, RUNS, GROUP))
def test_runs_end_and_leave_nothing_behind(first: int) -> None:
    for seed in range(first, first + GROUP):
        assert text(played(seed)) == text(one_by_one(seed)), seed


def test_equal_seeds_give_equal_bytes_in_every_process() -> None:
    code = "import sys; sys.path.insert(0, 'tests'); import test_cluster_simulator_random as t; print(t.digest(0, 30))"
    found = set()
    for seed in ("1", "2"):
        names = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": "src"}
        done = subprocess.run([sys.executable, "-c", code], env=names, capture_output=True, check=True, timeout=120)
        found.add(done.stdout)
    assert len(found) == 1
