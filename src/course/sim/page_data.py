"""What the page of a run draws: a few hundred numbers per worker, however long the run was."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course.sim.intervals import within
from course.sim.report import Json, last_moment

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.run import Choice, Run, Sample, WorkerRun

BINS = 240
QUANTILES = 200
MOST_WORKERS = 64
MOST_NOTES = 300
SECOND = 1e9


def page_data(run: "Run", numbers: Json) -> Json:
    """For the page's script."""
    end = max(last_moment(run), 1)
    edges = np.linspace(0, end, BINS + 1)
    goals = numbers["config"]["goals"]
    shown = [one for pool in numbers["pools"] for one in run.workers.values() if one.pool == pool][:MOST_WORKERS]
    samples, choices = _by_worker(run.samples), _by_worker(run.choices)
    return {
        "end_s": end / SECOND,
        "cdfs": [
            _cdf(run, "TTFT", "ttft", goals["slo_ttft_ms"]),
            _cdf(run, "TPOT", "tpot", goals["slo_tpot_ms"]),
            _cdf(run, "E2E", "e2e", goals["slo_e2e_ms"]),
        ],
        "pools": [_pool(run, pool, edges, end) for pool in numbers["pools"]],
        "workers": [
            _steps(one, edges)
            | _choices(choices.get(one.name, []), edges)
            | _samples(one, samples.get(one.name, []), edges, end)
            for one in shown
        ],
        "left_out": len(run.workers) - len(shown),
        "notes": [[note.time / SECOND, note.kind, note.worker, note.text] for note in run.notes if note.time][
            :MOST_NOTES
        ],
    }


def _by_worker(items: "Sequence[Sample] | Sequence[Choice]") -> "Mapping[str, list[Sample] | list[Choice]]":
    found: dict[str, list] = {}
    for item in items:
        found.setdefault(item.worker, []).append(item)
    return found


def _cdf(run: "Run", name: str, attribute: str, bound: float | None) -> Json:
    """Values in ms at equal steps of the share of requests, the slowest last."""
    values = [getattr(record, attribute) for record in run.records.values() if record.complete]
    values = [value / 1e6 for value in values if value is not None]
    quantiles = np.quantile(values, np.linspace(0, 1, QUANTILES + 1)) if values else np.zeros(0)
    return {"name": name, "ms": _short(quantiles, 3), "slo": bound}


def _pool(run: "Run", pool: str, edges: np.ndarray, end: int) -> Json:
    """The share of a pool's time that it was busy."""
    busy, there = np.zeros(BINS), np.zeros(BINS)
    for worker in (one for one in run.workers.values() if one.pool == pool):
        busy += within(worker.busy.starts, worker.busy.ends, edges)
        there += _there(worker, edges, end)
    return {"name": pool, "busy": _short(np.divide(busy, there, out=np.zeros(BINS), where=there > 0))}


def _there(worker: "WorkerRun", edges: np.ndarray, end: int) -> np.ndarray:
    return within([worker.started], [end if worker.stopped is None else worker.stopped], edges)


def _steps(worker: "WorkerRun", edges: np.ndarray) -> Json:
    """Shares of time in batches with prompts, and in batches of decodes only."""
    found = {"name": worker.name, "pool": worker.pool}
    for name, is_prefill in (("prefill", True), ("decode", False)):
        mine = [step for step in worker.steps if bool(step.prefill_tokens) is is_prefill]
        covered = within([step.start for step in mine], [step.end for step in mine], edges)
        found[name] = _short(covered / np.diff(edges))
    return found


def _choices(choices: "Sequence[Choice]", edges: np.ndarray) -> Json:
    """Requests that came in each bin, without and with blocks believed to be cached, and how many blocks on average."""
    places = np.clip(np.searchsorted(edges, [choice.time for choice in choices], side="right") - 1, 0, BINS - 1)
    overlap = np.array([choice.overlap for choice in choices], float)
    count, hits = (np.bincount(places, weights, BINS) for weights in (np.ones(len(choices)), overlap > 0))
    blocks = np.divide(np.bincount(places, overlap, BINS), count, out=np.zeros(BINS), where=count > 0)
    return {"misses": _short(count - hits, 0), "hits": _short(hits, 0), "overlap": _short(blocks, 1)}


def _samples(worker: "WorkerRun", samples: "Sequence[Sample]", edges: np.ndarray, end: int) -> Json:
    """What was last seen in or before each bin: shares of the KV blocks, and requests."""
    names = ("used", "cached", "running", "waiting")
    if not samples:
        return {name: [0] * BINS for name in names}
    last = np.searchsorted([sample.time for sample in samples], edges[1:], side="right") - 1
    seen = np.array([(s.blocks - s.cached, s.cached, s.running, s.waiting) for s in samples], float)
    there = (last >= 0) & (_there(worker, edges, end) > 0)
    rows = np.where(there[:, None], seen[np.maximum(last, 0)], 0.0)
    rows[:, :2] /= worker.kv_blocks
    return {name: _short(rows[:, place]) for place, name in enumerate(names)}


def _short(values: np.ndarray, digits: int = 4) -> list[float]:
    rounded = np.round(np.asarray(values, float), digits).tolist()
    return [int(value) if value.is_integer() else value for value in rounded]
