"""A run of a real vLLM: what it was asked, what it measured, and what our engine takes for the same.

The layout is LLMServingSim's (Cho et al., 2024): `workload.jsonl` with input_toks, output_toks, arrival_time_ns and
input_tok_ids of each request; `requests.jsonl` with request_id, queued_ts, first_token_ts and last_token_ts (seconds);
`meta.json` with engine_kwargs; beside them the kernel times that `vllm_profile` reads.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from course.errors import CourseError
from course.sim.package import Package
from course.sim.vllm_profile import read_table

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.cost import StepCost

TIMES = ("ttft_ms", "tpot_ms", "e2e_ms")


class Asked(msgspec.Struct):
    """One request of a workload."""

    input_toks: int
    output_toks: int
    arrival_time_ns: int
    input_tok_ids: list[int] = []


class Measured(msgspec.Struct):
    """What vLLM noted of it, in seconds. output_toks: how many tokens there really were, if the file says so."""

    queued_ts: float
    first_token_ts: float
    last_token_ts: float
    request_id: str = ""
    output_toks: int | None = None


class Limits(msgspec.Struct, frozen=True):
    """The engine's settings that matter here, where meta.json has them."""

    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int | None = None


class Meta(msgspec.Struct):
    """meta.json."""

    engine_kwargs: Limits = Limits()


@dataclass(frozen=True)
class ModelShape:
    """What the messages of tensor parallelism depend on."""

    layers: int
    hidden: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class Engine:
    """The engine that is simulated. tp: GPUs; link: bytes/s between them; latency: seconds of each message."""

    shape: ModelShape
    kv_blocks: int
    block_size: int
    max_num_seqs: int
    max_num_batched_tokens: int
    tp: int = 1
    link: float = 64e9
    latency: float = 0.0


def read_lines(path: Path, kind: type) -> list:
    """The lines of a JSONL file. Raises CourseError."""
    try:
        rows = [msgspec.json.decode(line, type=kind) for line in path.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        raise CourseError(f"{path}: {error.strerror}: a vLLM run has workload.jsonl and requests.jsonl") from None
    except msgspec.DecodeError as error:
        raise CourseError(f"{path}: {error}") from None
    if not rows:
        raise CourseError(f"{path} has no requests")
    return rows


def read_meta(folder: Path) -> Limits:
    """The engine's settings; none are known without the file. Raises CourseError."""
    path = folder / "meta.json"
    if not path.exists():
        return Limits()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Meta).engine_kwargs
    except msgspec.DecodeError as error:
        raise CourseError(f"{path}: {error}") from None


def matched(asked: Sequence[Asked], rows: Sequence[Measured]) -> list[Measured]:
    """What was measured of each request, in the order of the workload.

    Rows whose ids end in different numbers belong to those requests, else they are in order.
    """
    if len(asked) != len(rows):
        raise CourseError(f"the workload has {len(asked)} requests, but {len(rows)} were measured: give the right one")
    places = [int(found.group()) if (found := re.search(r"\d+$", row.request_id)) else -1 for row in rows]
    if sorted(places) == list(range(len(rows))):
        return [rows[place] for place in np.argsort(places)]
    return list(rows)


def answered(asked: Sequence[Asked], rows: Sequence[Measured]) -> list[Asked]:
    """The workload with the lengths of answers that were measured: a model may have ended one early."""
    return [
        msgspec.structs.replace(one, output_toks=row.output_toks or one.output_toks)
        for one, row in zip(asked, rows, strict=True)
    ]


def measured(asked: Sequence[Asked], rows: Sequence[Measured]) -> np.ndarray:
    """(requests, 3): TTFT, TPOT, E2E in ms. TPOT is NaN for one token."""
    queued, first, last = (np.array([getattr(row, f"{name}_ts") for row in rows]) for name in NAMES)
    return latencies(queued, first, last, np.array([row.output_toks for row in asked])) * 1e3


NAMES = ("queued", "first_token", "last_token")


def latencies(arrival: np.ndarray, first: np.ndarray, last: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """(requests, 3): TTFT, TPOT, E2E in the unit of the times. TPOT is NaN for one token."""
    tpot = np.divide(last - first, tokens - 1, out=np.full(len(tokens), np.nan), where=tokens > 1)
    return np.stack([first - arrival, tpot, last - arrival], 1)


class Predictor:
    """Runs a workload on our engine under virtual time, with the kernel times of a folder."""

    def __init__(self, package: Package, folder: Path, asked: Sequence[Asked], engine: Engine):
        self.package, self.engine, self.asked = package, engine, asked
        self.table = read_table(package.module("table"), folder, engine.shape.layers)
        self.cost: StepCost = self.table
        if engine.tp > 1:
            shape = engine.shape
            reduce = package.module("sharded").Sharded
            self.cost = reduce(self.table, shape.layers, 2 * shape.hidden, engine.tp, engine.latency, engine.link)
        start = min(row.arrival_time_ns for row in asked)
        arrival = package.module("workload").Arrival
        names: dict[tuple[int, ...], int] = {}
        self.arrivals = [
            arrival(row.arrival_time_ns - start, row.input_toks, row.output_toks, self.hashes(row.input_tok_ids, names))
            for row in asked
        ]

    def hashes(self, ids: Sequence[int], names: dict[tuple[int, ...], int]) -> tuple[int, ...]:
        """A number for each whole block, equal for equal blocks after equal blocks."""
        size, found, before = self.engine.block_size, [], -1
        for end in range(size, len(ids) + 1, size):
            before = names.setdefault((before, *ids[end - size : end]), len(names))
            found.append(before)
        return tuple(found)

    def predict(self, overhead: float) -> np.ndarray:
        """(requests, 3): TTFT, TPOT, E2E in ms, where each step takes `overhead` us more than its kernels."""
        self.table.overhead = overhead
        engine, deployment = self.engine, self.package.module("deployment")
        pool = deployment.Pool(
            self.cost,
            gpus=engine.tp,
            max_num_seqs=engine.max_num_seqs,
            max_num_batched_tokens=engine.max_num_batched_tokens,
            block_size=engine.block_size,
            kv_blocks=engine.kv_blocks,
        )
        load = self.package.module("workload").OpenLoop(self.arrivals, engine.block_size)
        ran = self.package.module("simulator").simulate(deployment.Deployment(pool), load)
        order = sorted(range(len(self.asked)), key=lambda place: self.arrivals[place].time_ns)
        result = np.zeros((len(order), 3))
        for place, record in zip(order, ran.records.values(), strict=True):
            if not record.complete:
                raise CourseError(f"request {place} was {record.finish_reason} in the simulation: raise --kv-blocks")
            result[place] = record.ttft, np.nan if record.tpot is None else record.tpot, record.e2e
        return result / 1e6


def fitted_overhead(predictor: Predictor, real: np.ndarray, most: float = 20_000.0, exact: float = 5.0) -> float:
    """The overhead in us, up to `exact`, with which the mean TPOT of the first half is that of `real`."""
    half = len(real) // 2

    def tpot(times: np.ndarray) -> float:
        return float(np.nanmean(times[:half, 1]))

    wanted, low, high = tpot(real), 0.0, most
    while high - low > exact:
        middle = (low + high) / 2
        low, high = (middle, high) if tpot(predictor.predict(middle)) < wanted else (low, middle)
    return round(low)
