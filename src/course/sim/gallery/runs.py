"""What several scenarios do with the simulator: make a workload, and read a run."""

from collections.abc import Callable, Iterable, Sequence
from itertools import count, islice
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.record import Record
    from tiny_llm_ref.cluster.run import Run
    from tiny_llm_ref.cluster.workload import Arrival, OpenLoop

Cluster = Callable[[str], ModuleType]
"""Gives a module of a package's `cluster`."""
Line = tuple[Sequence[float], Sequence[float]]
SECOND, MS = 1_000_000_000, 1_000_000
BLOCK = 64
"""Tokens of a KV block, and of a block of a workload."""


def requests(
    cluster: Cluster,
    rate: float,
    number: int,
    prompt: tuple[float, float],
    answer: tuple[float, float],
    burstiness: float = 1.0,
    prefixes: tuple[int, int, float] | None = None,
) -> "OpenLoop":
    """Requests that wait for nobody. rate: per second. prompt, answer: mean and cv of their tokens.

    prefixes: kinds, tokens and exponent of system prompts.
    """
    load, rng = cluster("workload"), np.random.default_rng(1)
    times = load.arrival_times(rng, rate, number, burstiness)
    shared = load.SharedPrefixes(*prefixes) if prefixes else None
    lengths = load.Lengths(*prompt, most=8000), load.Lengths(*answer)
    return load.OpenLoop(load.generate(rng, times, *lengths, shared, BLOCK), BLOCK)


def chat_beside_prompts(cluster: Cluster, answer: int, starts: Iterable[float], prompt: int) -> "OpenLoop":
    """A chat with an answer of so many tokens, and prompts that come at `starts`, s. All their blocks are new."""
    load, fresh = cluster("workload"), count()

    def arrival(start: float, tokens: int, told: int) -> "Arrival":
        ids = tuple(islice(fresh, load.blocks(tokens, BLOCK)))
        return load.Arrival(round(start * SECOND), tokens, told, ids)

    return load.OpenLoop([arrival(0, 100, answer), *(arrival(start, prompt, 1) for start in starts)], BLOCK)


def mean_ms(values: Iterable[float | None]) -> float:
    """Their mean, from ns. Those that are None are left out."""
    return float(np.mean([value for value in values if value is not None])) / MS


def ttft_ms(run: "Run") -> float:
    """The mean time to the first token."""
    return mean_ms(record.ttft for record in run.records.values())


def tpot_ms(run: "Run") -> float:
    """The mean time per token after the first."""
    return mean_ms(record.tpot for record in run.records.values())


def cached_percent(run: "Run") -> float:
    """Of all prompt tokens, those that a cache had."""
    records = run.records.values()
    return 100 * sum(record.hit_tokens for record in records) / sum(record.input_length for record in records)


def served(run: "Run") -> dict[str, int]:
    """How many requests each worker ended, by name."""
    counts = dict.fromkeys(run.workers, 0)
    for record in run.records.values():
        counts[record.decode_worker] += 1
    return counts


def gaps_ms(record: "Record") -> Line:
    """Seconds at which a request had each token after the first, and ms since the one before."""
    times = record.token_times
    return (times[1:] / SECOND).tolist(), (np.diff(times) / MS).tolist()


def workers_over_time(run: "Run") -> Line:
    """Seconds, and how many workers served from then on."""
    times, counts = [0.0], [0]
    for note in run.notes:
        if note.kind in ("ready", "draining"):
            times.append(note.time / SECOND)
            counts.append(counts[-1] + (1 if note.kind == "ready" else -1))
    return [*times, max(times[-1], run.end / SECOND)], [*counts, counts[-1]]


def worker_minutes(run: "Run") -> float:
    """How long all workers served together."""
    ends = {name: run.end if worker.stopped is None else worker.stopped for name, worker in run.workers.items()}
    return sum(max(ends[name] - worker.started, 0) for name, worker in run.workers.items()) / SECOND / 60
