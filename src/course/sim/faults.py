"""What goes wrong when, as text: `crash:worker-1@30s`, `slow-nic@10s+20s*0.1`, or by rate `crash=0.01/s`.

kind[:worker]@time[+duration][*factor]. Times take ms, s or min; without a worker, the run's seed chooses one. After a
crash with a duration, a new worker comes so much later.
"""

import re
from typing import TYPE_CHECKING

import numpy as np

from course.errors import CourseError
from course.sim.config import Config
from course.sim.deploy import SECOND, sizes
from course.sim.package import Package

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.deployment import Fault
    from tiny_llm_ref.cluster.workload import Workload

LASTING = {"partition": None, "slow-nic": 0.1, "slow-worker": 0.5, "lost-events": 1.0}
"""Kinds that last a while, with the factor of one that names none."""
KINDS = ("crash", *LASTING)
UNITS = {"ms": 1_000_000, "s": SECOND, "min": 60 * SECOND}
DURATION = 10 * SECOND
LATEST = 1_000_000_000 * SECOND
_TIME = r"\d+(?:\.\d+)?(?:ms|s|min)"
_REST = rf"(?:\+(?P<duration>{_TIME}))?(?:\*(?P<factor>\d*\.?\d+))?"
_FAULT = re.compile(rf"(?P<kind>[a-z-]+)(?::(?P<worker>[a-z]+-\d+))?@(?P<time>{_TIME}){_REST}")
_RATE = re.compile(rf"(?P<kind>[a-z-]+)=(?P<rate>\d*\.?\d+)/(?P<unit>ms|s|min){_REST}")
_STREAM = 2


def faults(config: Config, package: Package, workload: "Workload") -> "tuple[Fault, ...]":
    """In the order of their times; those by rate until the last arrival that is known. Raises CourseError."""
    found = [_scheduled(text, config, package) for text in config.control.fault]
    rng = np.random.default_rng([config.goals.seed, _STREAM])
    for text in config.control.fault_rate:
        found += _random(text, config, package, workload, rng)
    return tuple(sorted(found, key=lambda fault: fault.time))


def _scheduled(text: str, config: Config, package: Package) -> "Fault":
    if (match := _FAULT.fullmatch(text)) is None:
        raise CourseError(f"--fault {text!r} is not KIND[:WORKER]@TIME[+DURATION][*FACTOR]: try crash:worker-0@30s")
    worker = match["worker"]
    if worker is not None:
        _check_worker(text, worker, config)
    return _fault(text, match, _time(match["time"]), worker, package)


def _random(
    text: str, config: Config, package: Package, workload: "Workload", rng: np.random.Generator
) -> "list[Fault]":
    if (match := _RATE.fullmatch(text)) is None or float(match["rate"]) <= 0:
        raise CourseError(f"--fault-rate {text!r} is not KIND=RATE[+DURATION][*FACTOR]: try crash=0.01/s")
    if config.load.concurrency is not None:
        raise CourseError("--fault-rate needs arrivals that are known in advance: give --fault, or no --concurrency")
    end = max((arrival.time_ns for arrival in workload.initial()), default=0)
    rate = float(match["rate"]) / UNITS[match["unit"]]
    times, now = [], rng.exponential(1 / rate)
    while now < end:
        times.append(int(now))
        now += rng.exponential(1 / rate)
        if len(times) > 100_000:
            raise CourseError(f"--fault-rate {text} is more than 100,000 faults: give a lower rate")
    return [_fault(text, match, time, None, package) for time in times]


def _fault(text: str, match: re.Match[str], time: int, worker: str | None, package: Package) -> "Fault":
    kind, duration, factor = match["kind"], match["duration"], match["factor"]
    if kind not in KINDS:
        raise CourseError(f"fault {text!r}: no kind {kind!r}: choose from {', '.join(KINDS)}")
    if kind in ("crash", "partition") and factor:
        raise CourseError(f"fault {text!r}: a {kind} has no factor: leave it out")
    if factor and not 0 < float(factor) <= 1:
        raise CourseError(f"fault {text!r}: the factor {factor} is not above 0 and at most 1: try 0.1")
    lasts = _time(duration) if duration else 0 if kind == "crash" else DURATION
    strength = float(factor) if factor else LASTING.get(kind) or 0.0
    return package.module("deployment").Fault(time, kind, worker, lasts, strength)


def _check_worker(text: str, worker: str, config: Config) -> None:
    prefill, others = sizes(config)
    pools = {"prefill": prefill, "decode": others} if prefill else {"worker": others}
    pool, number = worker.rsplit("-", 1)
    there = pools.get(pool, 0)
    if there and config.control.planner is not None:
        return  # it may come later
    if int(number) >= there:
        names = ", ".join(f"{pool}-0 to {pool}-{size - 1}" for pool, size in pools.items())
        raise CourseError(f"fault {text!r}: there is no {worker}: choose from {names}")


def _time(text: str) -> int:
    """ns. Raises CourseError."""
    value, unit = re.fullmatch(r"([\d.]+)([a-z]+)", text).groups()
    if (time := float(value) * UNITS[unit]) > LATEST:
        raise CourseError(f"fault at {text[:40]}: the limit is {LATEST // SECOND:,} s: try 30s")
    return round(time)
