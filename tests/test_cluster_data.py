"""The simulated engine against a real one and against Dynamo's replay; public data from the folder TINY_LLM_DATA."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from course.sim.vllm_profile import read_table
from tiny_llm_ref.cluster import table as tables
from tiny_llm_ref.cluster.cost import Mocker, StepCost
from tiny_llm_ref.cluster.kernel import Phase, Simulation
from tiny_llm_ref.cluster.replica import Replica
from tiny_llm_ref.cluster.trace_memory import TraceMemory
from tiny_llm_ref.cluster.trace_request import TraceRequest
from tiny_llm_ref.serving.mixed import MixedScheduler
from tiny_llm_ref.serving.request import Batch, Request

DATA = Path(os.environ.get("TINY_LLM_DATA", "no data"))
VLLM, TRACE = DATA / "vllm_llama8b_rtxpro6000", DATA / "mooncake_conversation_trace.jsonl"


def needs(path: Path) -> pytest.MarkDecorator:
    """Skip where a file is not there."""
    return pytest.mark.skipif(not path.exists(), reason=f"{path} is not there: set TINY_LLM_DATA")


class Times:
    """A sink that keeps when each request had its first and its last token."""

    def __init__(self) -> None:
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}

    def ran(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        for step in batch.sampling:
            self.first.setdefault(step.request.uid, int(ends[0]))

    def ended(self, request: Request, time: int) -> None:
        self.last[request.uid] = time


class Run:
    """Latencies in ms of requests that go round robin to some replicas."""

    def __init__(self, arrivals: Sequence[int], requests: Sequence[TraceRequest], outputs: Sequence[int]):
        self.simulation, self.times = Simulation(), Times()
        self.arrivals, self.requests, self.outputs = arrivals, requests, outputs
        self.replicas: list[Replica] = []

    def finish(self, request: Request) -> int:
        """How many tokens it will have."""
        return self.outputs[request.uid]

    def on(self, workers: int, rows: int, page: int, pages: int, budget: int, cost: StepCost) -> "Run":
        for _ in range(workers):
            scheduler = MixedScheduler(TraceMemory(rows, 1 << 20, page, pages), budget)
            self.replicas.append(Replica(self.simulation, scheduler, cost, self.finish, self.times))
        for number, (time, request) in enumerate(zip(self.arrivals, self.requests, strict=True)):
            self.simulation.at(time, Phase.ADMISSION, self.replicas[number % workers].add, request)
        self.simulation.run()
        return self

    def latencies(self) -> np.ndarray:
        """(requests, 3): TTFT, TPOT, E2E."""
        uids = range(len(self.requests))
        first, last = (np.array([times[uid] for uid in uids]) for times in (self.times.first, self.times.last))
        arrivals, gaps = np.array(self.arrivals), np.array(self.outputs) - 1
        tpot = np.where(gaps > 0, (last - first) / np.maximum(gaps, 1), np.nan)
        return np.stack([first - arrivals, tpot, last - arrivals], 1) / 1e6


def jsonl(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@needs(VLLM)
def test_a_real_vllm_is_predicted_with_one_constant() -> None:
    work, seen = jsonl(VLLM / "workload.jsonl"), jsonl(VLLM / "requests.jsonl")
    outputs = [row["output_toks"] for row in work]
    arrivals = [row["arrival_time_ns"] - work[0]["arrival_time_ns"] for row in work]
    numbers: dict[object, int] = {}

    def hashes(ids: Sequence[int]) -> list[int]:
        found, parent = [], -1
        for start in range(0, len(ids) - 15, 16):
            parent = numbers.setdefault((parent, *ids[start : start + 16]), len(numbers))
            found.append(parent)
        return found

    blocks = [hashes(row["input_tok_ids"]) for row in work]
    table = read_table(tables, VLLM, 32)

    def predict(overhead: float) -> np.ndarray:
        table.overhead = overhead
        requests = [TraceRequest(i, row["input_toks"], 4096, blocks[i], 16) for i, row in enumerate(work)]
        return Run(arrivals, requests, outputs).on(1, 128, 16, 30_000, 2048, table).latencies()

    stamps = [[row[name] for name in ("queued_ts", "first_token_ts", "last_token_ts")] for row in seen]
    real = np.array([[f - q, (e - f) / (n - 1), e - q] for (q, f, e), n in zip(stamps, outputs, strict=True)]) * 1000
    half = len(work) // 2
    low, high = 0.0, 4000.0
    while high - low > 10:
        middle = (low + high) / 2
        low, high = (middle, high) if predict(middle)[:half, 1].mean() < real[:half, 1].mean() else (low, middle)
    error = predict(low)[half:].mean(0) / real[half:].mean(0) - 1
    assert (abs(error) < (0.05, 0.015, 0.02)).all(), f"TTFT, TPOT, E2E are off by {error}, with {low:.0f} us a step"


@needs(TRACE)
def test_round_robin_is_dynamos_replay() -> None:
    rows = jsonl(TRACE)
    requests = [TraceRequest(uid, row["input_length"], 1 << 20, row["hash_ids"]) for uid, row in enumerate(rows)]
    run = Run([row["timestamp"] * 1_000_000 for row in rows], requests, [row["output_length"] for row in rows])
    run.on(8, 256, 64, 16_384, 8192, Mocker(16_384 * 64))
    mean = np.nanmean(run.latencies(), 0)
    assert (abs(mean / (321, 8.10, 2913) - 1) < 0.005).all(), mean
    assert np.percentile(run.latencies()[:, 0], 99) == pytest.approx(2048, rel=0.05)
    asked, hit = (sum(getattr(r.scheduler, name) for r in run.replicas) for name in ("asked_tokens", "hit_tokens"))
    assert hit / asked == pytest.approx(0.08, abs=0.005)
