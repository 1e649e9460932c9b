"""The assembled simulator: closed forms, limits, equal runs, and nothing lost or leaked whatever goes wrong."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tiny_llm_ref.cluster import worker as worker_module
from tiny_llm_ref.cluster.conditional import Conditional
from tiny_llm_ref.cluster.cost import Linear, Mocker
from tiny_llm_ref.cluster.deployment import Control, Deployment, Fault, Pool, Routing, Transport
from tiny_llm_ref.cluster.metrics import summarise
from tiny_llm_ref.cluster.run import Run
from tiny_llm_ref.cluster.simulator import Simulator, simulate
from tiny_llm_ref.cluster.window import whole_run
from tiny_llm_ref.cluster.workload import (
    Arrival,
    Lengths,
    OpenLoop,
    SharedPrefixes,
    arrival_times,
    generate,
)

S, MS = 10**9, 10**6
FIXED = Linear((20.0, 0.0, 0.0), (10.0, 0.0, 0.0))
"""20 ms for prompts, 10 ms for decodes, whatever their number."""


def load(seed: int, n: int = 150, rate: float = 6.0) -> list[Arrival]:
    rng = np.random.default_rng(seed)
    return generate(rng, arrival_times(rng, rate, n), Lengths(1500, 1), Lengths(60, 1), SharedPrefixes(6, 2048))


def two_pools(**changes: object) -> Deployment:
    pool = Pool(Mocker(), 2)
    routing = Routing("kv-aware", "kv-aware")
    return Deployment(pool, pool, routing, transport=Transport(bytes_per_s=10**10), **changes)


def stamps(run: Run) -> list[object]:
    """All that a report shows of requests."""
    names = ("arrival", "prefill_start", "prefill_end", "transfer_start", "transfer_end", "decode_start", "done")
    return [
        (*(getattr(each, name) for name in names), each.hit_tokens, each.finish_reason, each.token_times.tolist())
        for each in run.records.values()
    ]


def verify(arrivals: Sequence[Arrival], simulator: Simulator, run: Run) -> None:
    """Every request had all its tokens, once each and in order, and nothing is left anywhere."""
    assert Counter(each.finish_reason for each in run.records.values()) == {"stop": len(arrivals)}
    for arrival, record in zip(arrivals, run.records.values(), strict=True):
        record.check()
        assert record.output_length == arrival.output_length, record.uid
        assert (np.diff(record.token_times) >= 0).all()
    for worker in simulator.fleet.workers.values():
        memory = worker.memory
        assert memory.pages - memory.allocator.available == memory.tree.evictable, worker.name
        assert worker.idle
        if hasattr(worker, "receiver"):
            assert not memory.holds, worker.name
            assert not worker.receiver.records
            assert not worker.sender.records
    for stage in getattr(simulator.front, "stages", ()):
        assert not stage.journeys
        assert not stage.prefill.placed
        assert not stage.decode.placed
    for router in simulator.front.routers:
        assert not router.placed
        assert not any(each.active_blocks or each.prefill_tokens for each in router.load.workers.values())


def run_of(deployment: Deployment, arrivals: Sequence[Arrival], seed: int = 0) -> Run:
    simulator = Simulator(deployment, OpenLoop(arrivals), seed)
    run = simulator.simulate()
    verify(arrivals, simulator, run)
    return run


def test_one_request_alone_takes_the_sum_of_its_steps() -> None:
    arrivals = [Arrival(5 * MS, 100, 4)]
    (record,) = run_of(Deployment(Pool(FIXED)), arrivals).records.values()
    assert (record.ttft, record.e2e, record.tpot) == (20 * MS, 50 * MS, 10 * MS)
    link = Transport(bytes_per_token=1000, bytes_per_s=10**6, latency=7 * MS)
    (record,) = run_of(Deployment(Pool(FIXED), Pool(FIXED), transport=link), arrivals).records.values()
    # 100 tokens are 2 pages of 64: the last one is moved whole. The question and the first byte take 7 ms each.
    assert (record.ttft, record.e2e) == (20 * MS, (20 + 7 + 7 + 128 + 30) * MS)
    free = Transport(bytes_per_s=10**18, latency=0)
    (record,) = run_of(Deployment(Pool(FIXED), Pool(FIXED), transport=free), arrivals).records.values()
    assert abs(record.e2e - 50 * MS) <= 1


def test_one_engine_with_one_row_is_the_queue_m_d_1() -> None:
    rate, step, n = 30.0, 0.02, 40_000
    rng = np.random.default_rng(3)
    arrivals = [Arrival(time, 10, 1) for time in arrival_times(rng, rate, n).tolist()]
    run = simulate(Deployment(Pool(FIXED, max_num_seqs=1), control=Control(telemetry=10**15)), OpenLoop(arrivals))
    ttft, free = [], 0
    for arrival in arrivals:  # Lindley's recursion
        free = max(free, arrival.time_ns) + 20 * MS
        ttft.append(free - arrival.time_ns)
    assert [record.ttft for record in run.records.values()] == ttft
    assert np.mean(ttft) / S == pytest.approx(step + rate * step**2 / (2 * (1 - rate * step)), rel=0.03)


@pytest.mark.parametrize("deployment", [Deployment(Pool(Mocker(), 3), routing=Routing("kv-aware")), two_pools()])
def test_many_steps_at_once_are_the_same_as_one_by_one(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = load(1)
    fast = run_of(deployment, arrivals)
    for name in ("Replica", "TellingReplica"):
        monkeypatch.setattr(worker_module, name, partial(getattr(worker_module, name), max_steps=1))
    slow = run_of(deployment, arrivals)
    assert stamps(fast) == stamps(slow)
    assert fast.engine_steps == slow.engine_steps
    assert fast.events < 0.7 * slow.events


def test_a_seed_gives_the_same_bytes_in_every_process() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from test_cluster_simulator import Fault, S, load, run_of, stamps, two_pools\n"
        "run = run_of(two_pools(faults=[Fault(9 * S, 'crash', duration=S)]), load(2, 60), 5)\n"
        "print(stamps(run), run.choices, run.moves, run.samples, run.notes)"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": "src"},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 10_000


FAULTS = [
    Fault(8 * S, "crash", duration=4 * S),
    Fault(8 * S, "crash"),
    Fault(8 * S, "partition", duration=2 * S),
    Fault(8 * S, "partition", duration=15 * S),
    Fault(3 * S, "slow-worker", duration=9 * S, factor=0.2),
    Fault(0, "lost-events", duration=20 * S, factor=0.5),
]


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{each.kind}-{each.duration // S}" for each in FAULTS])
@pytest.mark.parametrize("policy", ["round-robin", "kv-aware"])
def test_one_pool_survives(fault: Fault, policy: str) -> None:
    deployment = Deployment(Pool(Mocker(), 3), routing=Routing(policy, event_delay=MS), faults=[fault])
    run = run_of(deployment, load(4))
    assert any(note.kind in ("crashed", "silent", fault.kind) for note in run.notes)


@pytest.mark.parametrize("handoff", ["pull", "push", "bootstrap"])
@pytest.mark.parametrize("kind", ["prefill", "decode"])
@pytest.mark.parametrize("fault", [*FAULTS[:4], Fault(3 * S, "slow-nic", duration=9 * S, factor=0.02)], ids=str)
def test_two_pools_survive(fault: Fault, kind: str, handoff: str) -> None:
    deployment = two_pools(handoff=handoff, faults=[replace(fault, worker=f"{kind}-0")])
    run = run_of(deployment, load(5, 80))
    assert any(move.status == "done" for move in run.moves)


@pytest.mark.parametrize(("prefill", "decode"), [(1, 4), (4, 1), (2, 8), (8, 8)])
def test_tensor_parallel_sizes_may_differ(prefill: int, decode: int) -> None:
    deployment = two_pools()
    deployment = replace(
        deployment, prefill=replace(deployment.prefill, gpus=prefill), pool=replace(deployment.pool, gpus=decode)
    )
    run = run_of(deployment, load(6, 60))
    assert Counter(move.uid for move in run.moves)[0] == max(prefill, decode)


def test_short_prompts_stay_where_their_answer_is() -> None:
    arrivals = [Arrival(uid * S, 600 if uid % 2 else 9000, 20, (uid,) * 0) for uid in range(20)]
    run = run_of(two_pools(rule=Conditional(tokens=2048, share=1.1)), arrivals)
    assert {move.uid % 2 for move in run.moves} == {0}
    assert all((record.transfer_end is None) == (uid % 2 == 1) for uid, record in run.records.items())


def test_what_no_engine_can_hold_is_refused_and_the_rest_goes_on() -> None:
    arrivals = [Arrival(uid * S, 100 if uid % 2 else 10_000, 5) for uid in range(10)]
    for deployment in (
        Deployment(Pool(Mocker(), kv_blocks=100)),
        replace(two_pools(), pool=Pool(Mocker(), 2, kv_blocks=100)),
    ):
        run = simulate(deployment, OpenLoop(arrivals))
        reasons = [record.finish_reason for record in run.records.values()]
        assert reasons == ["rejected", "stop"] * 5


def test_with_all_workers_gone_requests_are_refused_and_the_run_ends() -> None:
    faults = [Fault(S, "crash", "worker-0"), Fault(S, "crash", "worker-1")]
    arrivals = [Arrival(uid * S // 4, 2000, 20) for uid in range(12)]
    run = simulate(Deployment(Pool(Mocker(), 2), faults=faults), OpenLoop(arrivals))
    assert Counter(record.finish_reason for record in run.records.values())["rejected"] >= 7


def test_several_routers_that_hear_of_each_other_serve_everybody() -> None:
    for sync in (None, 0, S):
        run_of(Deployment(Pool(Mocker(), 3), routing=Routing("kv-aware", routers=4, sync=sync)), load(7))
        base = two_pools()
        run_of(replace(base, routing=replace(base.routing, routers=3, sync=sync)), load(8, 60))


def test_little_s_law_holds_for_the_whole_run() -> None:
    run = run_of(Deployment(Pool(Mocker(), 3)), load(9, 300))
    records = list(run.records.values())
    window = whole_run(records)
    summary = summarise(records, window)
    present = sum(record.done - record.arrival for record in records) / (window.end - window.start)
    rate = len(records) / window.seconds
    assert present == pytest.approx(rate * np.mean([record.e2e for record in records]) / S, rel=1e-12)
    assert summary.requests_per_second == pytest.approx(rate)
