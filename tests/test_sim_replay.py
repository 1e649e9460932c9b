"""The simulator on Mooncake's public conversation trace, against Dynamo's own replay of it, and against arithmetic.

Public data from the folder TINY_LLM_DATA. Dynamo's figures: ai-dynamo-runtime 1.6.1, `run_mocker_trace_replay`.
"""

import gc
import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from course.sim.trace_file import read_mooncake
from tiny_llm_ref.cluster import workload
from tiny_llm_ref.cluster.cost import Mocker
from tiny_llm_ref.cluster.deployment import Deployment, Pool, Routing, Transport
from tiny_llm_ref.cluster.routing import CostConfig
from tiny_llm_ref.cluster.simulator import simulate
from tiny_llm_ref.cluster.workload import Arrival, OpenLoop

TRACE = Path(os.environ.get("TINY_LLM_DATA", "no data")) / "mooncake_conversation_trace.jsonl"
pytestmark = pytest.mark.skipif(not TRACE.exists(), reason=f"{TRACE} is not there: set TINY_LLM_DATA")
NO_TIME = Transport(bytes_per_s=10**18, latency=0)
"""Dynamo's replay lets KV move in no time."""


@pytest.fixture(scope="module")
def arrivals() -> list[Arrival]:
    return list(read_mooncake(workload, TRACE))


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Millions of objects live long, and none is in a cycle that matters here."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def seen(deployment: Deployment, arrivals: list[Arrival]) -> dict[str, float]:
    """Means in ms; reuse: cached tokens of all prompt tokens."""
    records = list(simulate(deployment, OpenLoop(arrivals)).records.values())
    assert all(record.complete for record in records)
    ttft = np.array([record.ttft for record in records]) / 1e6
    return {
        "ttft": ttft.mean(),
        "p99": np.percentile(ttft, 99),
        "tpot": np.mean([record.tpot for record in records if record.tpot is not None]) / 1e6,
        "e2e": np.mean([record.e2e for record in records]) / 1e6,
        "reuse": sum(record.hit_tokens for record in records) / sum(record.input_length for record in records),
    }


DYNAMO = {
    "8, round robin": ((321, 2048, 8.10, 2913, 0.08), 0.05, Deployment(Pool(Mocker(), 8))),
    "8, KV router": ((277, 1690, 8.22, 2757, 0.20), 0.10, Deployment(Pool(Mocker(), 8), routing=Routing("kv-aware"))),
    "4 + 4, round robin": (
        (499, 2461, 7.72, 3156, 0.08),
        0.05,
        Deployment(Pool(Mocker(), 4), Pool(Mocker(), 4), transport=NO_TIME),
    ),
    "4 + 4, KV router": (
        (388, 1817, 7.51, 2977, 0.16),
        0.10,
        Deployment(Pool(Mocker(), 4), Pool(Mocker(), 4), Routing("kv-aware", "kv-aware"), transport=NO_TIME),
    ),
}


@pytest.mark.parametrize("name", DYNAMO)
def test_dynamos_own_replay_gives_the_same_means(name: str, arrivals: list[Arrival]) -> None:
    wanted, bar, deployment = DYNAMO[name]
    found = seen(deployment, arrivals)
    for key, value in zip(("ttft", "p99", "tpot", "e2e"), wanted, strict=False):
        assert found[key] == pytest.approx(value, rel=bar), (key, found)
    assert found["reuse"] == pytest.approx(wanted[4], abs=0.01), found


def test_an_infinite_cache_hits_what_is_not_new(arrivals: list[Arrival]) -> None:
    blocks = [block for arrival in arrivals for block in arrival.hash_ids]
    assert len(blocks) == 288_500
    assert round(1 - len(set(blocks)) / len(blocks), 4) == 0.3664
    one = Pool(Mocker(), 1, block_size=512, kv_blocks=400_000, max_num_seqs=2048, max_num_batched_tokens=1 << 20)
    apart = [arrival._replace(time_ns=uid * 10**10, output_length=1) for uid, arrival in enumerate(arrivals[:2000])]
    hits = simulate(Deployment(one), OpenLoop(apart)).records.values()
    known: set[int] = set()
    for arrival, record in zip(apart, hits, strict=True):
        whole = arrival.hash_ids[: (arrival.input_length - 1) // 512]
        assert record.hit_tokens == 512 * sum(block in known for block in whole)
        known.update(arrival.hash_ids[: arrival.input_length // 512])


def test_an_lru_cache_of_three_million_tokens_has_two_fifths_of_all_hits(arrivals: list[Arrival]) -> None:
    cache: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for arrival in arrivals:
        for block in arrival.hash_ids:
            hits += block in cache
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > 3_000_000 // 512:
            cache.popitem(last=False)
    assert 0.36 <= hits / (288_500 - 182_790) <= 0.46


def test_the_more_a_scheduler_knows_of_caches_the_sooner_comes_the_first_token(arrivals: list[Arrival]) -> None:
    pool = Pool(Mocker(), 8)
    routings = [
        Routing("random"),
        Routing("least-loaded"),
        Routing("kv-aware"),
        Routing("kv-aware", fetch=True, cost=CostConfig(shared=0.9)),
    ]
    ttft = [seen(Deployment(pool, routing=routing), arrivals[:4000])["ttft"] for routing in routings]
    assert ttft == sorted(ttft, reverse=True), ttft
