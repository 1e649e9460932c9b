"""How fast the simulator of Week 4 is: events of the kernel, a public trace, and larger and larger deployments.

events: callbacks of the kernel per second of CPU, beside a bare heap of tuples and SimPy, in the same run. trace: a
Mooncake trace (--trace) on 8 engines. growth: requests on more and more engines, each at the same load: CPU time for a
request may grow with the logarithm of their number at most; --largest 1000 runs a million requests on 1,000 engines.
Each size runs in a process of its own, which tells its peak memory.
"""

import argparse
import gc
import heapq
import importlib
import multiprocessing
import resource
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from course.errors import CourseError
from course.options import number
from course.variant import SOLUTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELP = "events per second, a trace, and a million requests"
PARTS = ("events", "trace", "growth")
EVENTS = 300_000
PER_ENGINE = 1000
"""Requests for each engine."""
RATE = 0.8
"""Requests per second for each engine."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    size = number(int, "from 1 to 10000", lambda x: 1 <= x <= 10_000, 100)
    parser.add_argument(
        "--only",
        choices=PARTS,
        nargs="+",
        default=list(PARTS),
        metavar="PART",
        help=f"only these parts: {', '.join(PARTS)}",
    )
    parser.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose simulator runs")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="a Mooncake trace (without it, no such part)")
    parser.add_argument("--largest", type=size, default=30, metavar="N", help="engines of the largest run (default 30)")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and lines of each part."""
    if args.trace is not None and not args.trace.is_file():
        raise CourseError(f"no trace {args.trace}: give a Mooncake JSONL file")
    numbers: dict[str, object] = {"solution": args.solution}
    lines: list[str] = []
    if "events" in args.only:
        numbers["events"] = speeds = events(args.solution)
        lines += ["events per second of CPU time:"]
        lines += [f"  {name:12} {speed:12,.0f}   x{speeds['kernel'] / speed:.2f}" for name, speed in speeds.items()]
    if "trace" in args.only and args.trace is not None:
        numbers["trace"] = rows = [apart(replay, args.solution, str(args.trace), policy) for policy in POLICIES]
        lines += ["", "the trace on 8 engines:", *map(described, rows)]
    if "growth" in args.only:
        sizes = [1 << power for power in range(3, 20) if 1 << power < args.largest] + [args.largest]
        numbers["growth"] = rows = [apart(grow, args.solution, size) for size in sizes]
        lines += ["", f"{PER_ENGINE} requests for each engine:", *map(described, rows)]
    return numbers, lines


POLICIES = ("round-robin", "kv-aware")


def described(row: dict[str, float]) -> str:
    """One line."""
    each = 1e6 * row["seconds"] / row["requests"]
    return (
        f"  {row['name']:14} {row['requests']:9,} requests {row['seconds']:8.1f} s {each:6.0f} us each "
        f"{row['gib']:6.2f} GiB {row['events']:11,} events {row['steps']:12,} engine steps"
    )


def events(solution: str) -> dict[str, float]:
    """Callbacks per second of the kernel, of a bare heap, and of SimPy where it is installed. The best of three."""
    kernel = importlib.import_module(f"{solution}.cluster.kernel")
    ways = {"kernel": lambda: of_kernel(kernel), "bare heap": of_heap}
    if importlib.util.find_spec("simpy"):
        ways["SimPy"] = of_simpy
    best = dict.fromkeys(ways, 0.0)
    for _ in range(3):
        for name, run in ways.items():
            start = time.process_time()
            run()
            best[name] = max(best[name], EVENTS / (time.process_time() - start))
    return best


def of_kernel(kernel: ModuleType) -> None:
    """100 clocks that tick at different times."""
    simulation = kernel.Simulation()
    left = EVENTS

    def tick(gap: int) -> None:
        nonlocal left
        left -= 1
        if left > 0:
            simulation.after(gap, kernel.Phase.ADMISSION, tick, gap)

    for gap in range(1000, 1100):
        simulation.after(gap, kernel.Phase.ADMISSION, tick, gap)
    simulation.run()


def of_heap() -> None:
    """The same without a kernel."""
    heap = [(gap, gap) for gap in range(1000, 1100)]
    heapq.heapify(heap)
    for _ in range(EVENTS):
        now, gap = heapq.heappop(heap)
        heapq.heappush(heap, (now + gap, gap))


def of_simpy() -> None:
    """The same as SimPy's processes."""
    import simpy

    environment = simpy.Environment()

    def clock(gap: int) -> object:
        for _ in range(EVENTS // 100):
            yield environment.timeout(gap)

    for gap in range(1000, 1100):
        environment.process(clock(gap))
    environment.run()


def apart(call: object, *args: object) -> dict[str, float]:
    """Call in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, args)


def simulated(solution: str, name: str, policy: str, workers: int, arrivals: list[object]) -> dict[str, float]:
    """A run, measured."""

    def module(part: str) -> ModuleType:
        return importlib.import_module(f"{solution}.cluster.{part}")

    deployment = module("deployment")
    pool = deployment.Pool(module("cost").Mocker(), workers)
    one = deployment.Deployment(pool, routing=deployment.Routing(policy))
    gc.freeze()
    gc.disable()
    start = time.process_time()
    run = module("simulator").simulate(one, module("workload").OpenLoop(arrivals))
    seconds = time.process_time() - start
    unit = 1 if sys.platform == "darwin" else 1024
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
    return {
        "name": name,
        "requests": len(run.records),
        "seconds": seconds,
        "gib": gib,
        "events": run.events,
        "steps": run.engine_steps,
    }


def replay(solution: str, trace: str, policy: str) -> dict[str, float]:
    """A trace on 8 engines."""
    from course.sim.trace_file import read_mooncake

    arrivals = read_mooncake(importlib.import_module(f"{solution}.cluster.workload"), Path(trace))
    return simulated(solution, policy, policy, 8, list(arrivals))


def grow(solution: str, engines: int) -> dict[str, float]:
    """Generated requests on so many engines."""
    workload = importlib.import_module(f"{solution}.cluster.workload")
    rng, n = np.random.default_rng(0), engines * PER_ENGINE
    times = workload.arrival_times(rng, RATE * engines, n)
    arrivals = workload.generate(rng, times, workload.Lengths(1000, 1), workload.Lengths(100, 1))
    return simulated(solution, f"{engines} engines", "round-robin", engines, arrivals)


def draw(numbers: dict[str, object]) -> "Figure":
    """CPU time by the number of requests, beside n log n through the first point."""
    from matplotlib.figure import Figure

    rows = numbers.get("growth")
    if not rows:
        raise CourseError("only the part growth can be drawn: leave it in --only")
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    counts = np.array([row["requests"] for row in rows], float)
    seconds = np.array([row["seconds"] for row in rows])
    axes.loglog(counts, seconds, "o-", label="measured")
    bound = counts * np.log(counts)
    axes.loglog(counts, bound * seconds[0] / bound[0], "--", label="n log n")
    axes.set(xlabel="requests", ylabel="seconds of CPU time")
    axes.legend()
    return figure
