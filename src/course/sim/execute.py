"""One run of the simulator: from a configuration to what the run left behind."""

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.learner import explained
from course.sim.config import Config
from course.sim.deploy import deployment
from course.sim.faults import faults
from course.sim.package import Package
from course.sim.planner import planner
from course.sim.workload import total, workload

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.deployment import Deployment
    from tiny_llm_ref.cluster.run import Run

Seen = Callable[[int, int, int | None], None]
"""Simulated ns, requests done, and those in all where that is known."""


def execute(config: Config, package: Package, seen: Seen | None = None) -> "Run":
    """Run it. Raises CourseError for what cannot be meant, and for mistakes of the package."""
    with explained(package.name), _quiet_gc():
        load = workload(config, package)
        built = deployment(config, package, faults(config, package, load))
        loop, in_all = planner(config, package, built), total(config, load)
        progress = None if seen is None else lambda now, done, injected: seen(now, done, in_all)
        run = _simulate(package, built, load, config.goals.seed, loop, progress)
    if not run.records:
        raise CourseError("nothing arrived: give a workload with at least one request")
    return run


def _simulate(package: Package, built: "Deployment", *args: object) -> "Run":
    pools = importlib.import_module(f"{package.name}.serving.memory")
    try:
        return package.module("simulator").simulate(built, *args)
    except pools.OutOfPagesError as error:
        if "prefill-first" not in {pool.scheduler for pool in (built.pool, built.prefill) if pool}:
            raise
        raise CourseError(
            f"scheduler prefill-first ran out of KV blocks ({error}): it never takes any back; raise kv-blocks, or use "
            "--scheduler mixed"
        ) from None
    except MemoryError:
        raise CourseError("this machine has too little memory for the run: use fewer workers, or kv-blocks") from None


@contextmanager
def _quiet_gc() -> Iterator[None]:
    """No garbage collection: a run makes millions of small objects, and hardly any cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def progress_bar() -> Iterator[Seen | None]:
    """A bar with simulated time and requests done, on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, said="")

        def seen(now: int, done: int, in_all: int | None) -> None:
            of = "" if in_all is None else f" of {in_all:,}"
            bar.update(task, completed=done, total=in_all, said=f"{now / 1e9:,.0f} s simulated, {done:,}{of} requests")

        yield seen
