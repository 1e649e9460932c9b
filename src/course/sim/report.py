"""What a run says in numbers: a plain report that the table, the JSON file and sweeps share.

Definitions are those of the package's `metrics`: nothing is measured twice. Units stand in the names. Nothing here
depends on the machine or the hour, so equal seeds give equal reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.sim.config import Config
from course.sim.package import Package

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.goodput import Objective
    from tiny_llm_ref.cluster.metrics import Distribution, Summary
    from tiny_llm_ref.cluster.record import Record
    from tiny_llm_ref.cluster.run import Choice, Run, WorkerRun
    from tiny_llm_ref.cluster.window import Window

Json = dict[str, object]
MS = 1e6
SECOND = 1e9
FORMAT = 1
"""Of the report: raised when a key changes its meaning."""


def report(config: Config, package: Package, run: "Run") -> Json:
    """All numbers of a run. Raises CourseError where nothing was measured."""
    records = list(run.records.values())
    span = window_of(config, package, records)
    summary = package.module("metrics").summarise(records, span)
    gpus = mean_gpus(list(run.workers.values()), span, run.end)
    return {
        "format": FORMAT,
        "config": asdict(config),
        "window": _window(config, span),
        "requests": _requests(records),
        "throughput": _throughput(summary, records, span, gpus),
        **{f"{name}_ms": _distribution(getattr(summary, name)) for name in ("ttft", "tpot", "itl", "e2e")},
        "hit_rate": summary.hits._asdict(),
        "goodput": _goodput(config, package, records, span, gpus),
        "pools": _pools(package, run, span),
        "transfers": _transfers(run),
        "notes": [{"time_s": one.time / SECOND, **_without_time(one._asdict())} for one in run.notes],
        "simulated": {"end_s": last_moment(run) / SECOND, "events": run.events, "engine_steps": run.engine_steps},
    }


def window_of(config: Config, package: Package, records: "Sequence[Record]") -> "Window":
    """The part of the run that is measured. Raises CourseError where nothing is left."""
    module, warm_up = package.module("window"), config.goals.warm_up
    try:
        if warm_up is None:
            return module.whole_run(records)
        return module.steady_state(records, round(warm_up * SECOND))
    except ValueError as error:
        raise CourseError(str(error)) from None


def objective_of(config: Config, package: Package) -> "Objective":
    """The objectives of the configuration, in ns."""
    goals = config.goals
    bounds = (goals.slo_ttft_ms, goals.slo_tpot_ms, goals.slo_e2e_ms)
    return package.module("goodput").Objective(*(None if bound is None else round(bound * MS) for bound in bounds))


def last_moment(run: "Run") -> int:
    """When the last request had ended and the last step was done: timers of the deployment may run on."""
    ends = [record.arrival if record.done is None else record.done for record in run.records.values()]
    steps = [one.steps[-1].end for one in run.workers.values() if one.steps]
    return max([*ends, *steps, *(note.time for note in run.notes)], default=run.end)


def mean_gpus(workers: "Sequence[WorkerRun]", span: "Window", end: int) -> float:
    """GPUs that were there in the window, on average."""
    return sum(one.gpus * _alive(one, span, end) for one in workers) / (span.end - span.start)


def utilisation(workers: "Sequence[WorkerRun]", span: "Window", end: int) -> float:
    """rho of some workers: busy time over the time that they were there."""
    there = sum(_alive(one, span, end) for one in workers)
    return sum(one.busy.within(span) for one in workers) / there if there else 0.0


def _alive(worker: "WorkerRun", span: "Window", end: int) -> int:
    stopped = max(end, span.end) if worker.stopped is None else worker.stopped
    return max(min(stopped, span.end) - max(worker.started, span.start), 0)


def _window(config: Config, span: "Window") -> Json:
    name = "whole run" if config.goals.warm_up is None else "steady state"
    return {"name": name, "start_s": span.start / SECOND, "end_s": span.end / SECOND, "seconds": span.seconds}


def _requests(records: "Sequence[Record]") -> Json:
    reasons: dict[str, int] = {}
    for record in records:
        reason = record.finish_reason or "unfinished"
        reasons[reason] = reasons.get(reason, 0) + 1
    return {
        "arrived": len(records),
        "complete": sum(record.complete for record in records),
        "by_finish_reason": dict(sorted(reasons.items())),
        "migrated": sum(record.migrations > 0 for record in records),
        "input_tokens": sum(record.input_length for record in records),
        "output_tokens": sum(record.output_length for record in records),
    }


def _throughput(summary: "Summary", records: "Sequence[Record]", span: "Window", gpus: float) -> Json:
    prompts = sum(one.input_length for one in records if one.complete and span.start <= (one.done or 0) < span.end)
    return {
        "requests_per_s": summary.requests_per_second,
        "output_tokens_per_s": summary.tokens_per_second,
        "total_tokens_per_s": summary.tokens_per_second + prompts / span.seconds,
        "mean_gpus": gpus,
        "output_tokens_per_s_per_gpu": summary.tokens_per_second / gpus if gpus else 0.0,
        "tokens_per_s_per_user": SECOND / summary.tpot.mean if summary.tpot and summary.tpot.mean else None,
    }


def _distribution(values: "Distribution | None") -> Json | None:
    if values is None:
        return None
    return {name: value if name == "count" else value / MS for name, value in values._asdict().items()}


def _goodput(config: Config, package: Package, records: "Sequence[Record]", span: "Window", gpus: float) -> Json | None:
    """None without an objective."""
    module, objective = package.module("goodput"), objective_of(config, package)
    if (objective.ttft, objective.tpot, objective.e2e) == (None, None, None):
        return None
    rate = module.goodput(records, objective, span)
    return {
        "attainment": module.attainment(records, objective, span),
        "requests_per_s": rate,
        "requests_per_s_per_gpu": rate / gpus if gpus else 0.0,
    }


def _pools(package: Package, run: "Run", span: "Window") -> Json:
    limit, found = package.module("metrics").SATURATED, {}
    served: dict[str, list[Choice]] = {}
    for choice in run.choices:
        served.setdefault(choice.worker, []).append(choice)
    for pool in dict.fromkeys(one.pool for one in run.workers.values()):
        mine = [one for one in run.workers.values() if one.pool == pool]
        rho = utilisation(mine, span, run.end)
        found[pool] = {
            "workers": len(mine),
            "mean_gpus": mean_gpus(mine, span, run.end),
            "rho": rho,
            "saturated": rho > limit,
            "engine_steps": sum(step.count for one in mine for step in one.steps),
            "by_worker": {one.name: _worker(run, served.get(one.name, []), one, span) for one in mine},
        }
    return found


def _worker(run: "Run", served: "Sequence[Choice]", worker: "WorkerRun", span: "Window") -> Json:
    return {
        "gpus": worker.gpus,
        "started_s": worker.started / SECOND,
        "stopped_s": None if worker.stopped is None else worker.stopped / SECOND,
        "rho": utilisation([worker], span, run.end),
        "requests": len(served),
        "overlap_blocks": sum(one.overlap for one in served),
    }


def _transfers(run: "Run") -> Json:
    done = [one for one in run.moves if one.status == "done"]
    return {
        "done": len(done),
        "failed": len(run.moves) - len(done),
        "bytes": sum(one.size for one in done),
        "mean_ms": sum(one.end - one.start for one in done) / len(done) / MS if done else None,
    }


def _without_time(note: Mapping[str, object]) -> Json:
    return {key: value for key, value in note.items() if key != "time"}
