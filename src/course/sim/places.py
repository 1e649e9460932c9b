"""Where many runs are computed: in this process, in several, or on a Ray cluster. The results are the same."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from course.errors import CourseError
from course.sim.report import Json
from course.sim.sweep import Point, measure


def here(points: Sequence[Point]) -> Iterator[Json]:
    """One after the other."""
    return map(measure, points)


def in_processes(points: Sequence[Point], jobs: int) -> Iterator[Json]:
    """In so many fresh processes, the results in order. Raises CourseError where one of them dies."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(min(jobs, len(points)), multiprocessing.get_context("spawn"))
    try:
        with _children_ignore_interrupts():
            futures = [pool.submit(measure, point) for point in points]
        for future in futures:
            yield future.result()
        pool.shutdown()
    except BrokenProcessPool:
        raise CourseError("a process of the sweep died, perhaps for want of memory: try fewer --jobs") from None
    finally:
        for child in multiprocessing.active_children():
            child.terminate()
        pool.shutdown(cancel_futures=True)


def on_ray(points: Sequence[Point], address: str) -> Iterator[Json]:
    """As tasks of a Ray cluster; address: of it, "auto" for the one of this machine, "local" for a new one.

    Every node must have this repository in the same place. Raises CourseError.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise CourseError("ray is not installed: run `pdm install -G ray`, or leave --ray out") from None
    try:
        new = {"include_dashboard": False} if address == "local" else {}
        ray.init(address, log_to_driver=False, logging_level="ERROR", **new)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise CourseError(f"no Ray cluster at {address!r} ({str(error).splitlines()[0]}): try --ray local") from None
    try:
        task = ray.remote(max_retries=3)(measure)
        for reference in [task.remote(point) for point in points]:
            yield ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, CourseError):
            raise error.cause from None
        raise CourseError(f"a task of Ray failed: {error}") from None
    except ray.exceptions.RayError as error:
        raise CourseError(f"the Ray cluster failed: {error}") from None
    finally:
        ray.shutdown()


def choose(jobs: int | None, address: str | None) -> Callable[[Sequence[Point]], Iterator[Json]]:
    """Where to compute. jobs: processes, None for one per core."""
    if address is not None:
        return lambda points: on_ray(points, address)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    number = jobs or cores
    return lambda points: here(points) if min(number, len(points)) == 1 else in_processes(points, number)


@contextmanager
def _children_ignore_interrupts() -> Iterator[None]:
    """Processes that start here leave Ctrl-C to this one, which ends them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
