"""The workload that a configuration asks for: a trace, arrivals at a rate, users who wait, or conversations."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from course.errors import CourseError
from course.sim.config import Config, Load
from course.sim.package import Package
from course.sim.trace_file import read_trace

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.workload import Arrival, Lengths, Workload

REQUESTS = 1000
_STREAM = 1
"""Workloads draw from a stream of their own: other random choices leave them as they are."""


def workload(config: Config, package: Package) -> "Workload":
    """Raises CourseError for a trace that cannot be read, or has nothing."""
    load, module = config.load, package.module("workload")
    rng = np.random.default_rng([config.goals.seed, _STREAM])
    if load.trace is not None:
        return module.OpenLoop(_trace(load, package, rng))
    requests, closed = load.requests or REQUESTS, package.module("closed_loop")
    inputs, outputs = _lengths(load, package)
    if load.concurrency is not None:
        return closed.ClosedLoop(
            rng=rng, users=load.concurrency, requests=requests, inputs=inputs, outputs=outputs, think=load.think
        )
    if load.sessions is not None:
        times = module.arrival_times(rng, load.rate, load.sessions, load.burstiness)
        turns = module.Lengths(load.turns)
        return closed.Conversations(rng=rng, times=times, turns=turns, inputs=inputs, outputs=outputs, think=load.think)
    times = module.arrival_times(rng, load.rate, requests, load.burstiness)
    shared = module.SharedPrefixes(load.prefixes, load.prefix_tokens, load.prefix_zipf) if load.prefixes else None
    return module.OpenLoop(module.generate(rng, times, inputs, outputs, shared))


def total(config: Config, made: "Workload") -> int | None:
    """How many requests there will be, where that is known in advance."""
    if config.load.concurrency is not None:
        return config.load.requests or REQUESTS
    return None if config.load.sessions is not None else len(made.arrivals)


def _lengths(load: Load, package: Package) -> "tuple[Lengths, Lengths]":
    kind = package.module("workload").Lengths
    return kind(load.input_mean, load.input_cv), kind(load.output_mean, load.output_cv)


def _trace(load: Load, package: Package, rng: np.random.Generator) -> "list[Arrival]":
    module, path = package.module("workload"), Path(load.trace)
    try:
        arrivals = read_trace(module, path, rng if load.jitter else None)
    except OSError as error:
        raise CourseError(f"cannot read the trace {path}: {error.strerror}") from None
    if not arrivals:
        raise CourseError(f"the trace {path} has no request: give another one")
    arrivals = arrivals[: load.requests]
    return module.speed_up(arrivals, load.speed_up) if load.speed_up != 1 else arrivals
