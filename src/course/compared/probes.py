"""What runs in the child beside the code under test: one `observe` of a graded case, watched in one of several ways.

It is a file of cases itself, so `course.isolate` (or any other observer) can serve it. Knows no judgement."""

import importlib.util
import sys
import time
import tracemalloc
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import ModuleType

import mlx.core as mx

from course.case import Case, case
from course.codec import pack, unpack
from course.solution import Solution

Plain = dict[str, object]


@case(task=1)
class Probe:
    """Runs a graded case: tests (file), case (name), inputs, what (one of the functions below), calls (for times)."""

    def inputs(rng):
        return {}

    def observe(solution, request):
        graded: Case = vars(load_tests(request["tests"]))[request["case"]]
        watch = {"values": _values, "seconds": _seconds, "memory": _memory, "kernels": _kernels}[request["what"]]
        return watch(graded, solution, pack(request["inputs"]), request["calls"])

    def verify(inputs, values):
        return None


@cache
def load_tests(file: str) -> ModuleType:
    """A test file as a module of its own; the code under test has no part in it."""
    name = f"compared_{Path(file).parent.name}_{Path(file).stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses of the test file look their module up
    spec.loader.exec_module(module)
    return module


def _values(graded: Case, solution: Solution, data: bytes, calls: int) -> Plain:
    """What the case observes, and how long that took."""
    inputs = unpack(data)
    start = time.perf_counter()
    values = graded.observe(solution, inputs)
    _finish(values)
    return {"values": values, "seconds": time.perf_counter() - start}


def _seconds(graded: Case, solution: Solution, data: bytes, calls: int) -> float:
    """Seconds of one call, the mean of `calls`, each on fresh inputs."""
    copies = [unpack(data) for _ in range(calls)]
    start = time.perf_counter()
    for inputs in copies:
        _finish(graded.observe(solution, inputs))
    return (time.perf_counter() - start) / calls


def _memory(graded: Case, solution: Solution, data: bytes, calls: int) -> Plain:
    """Bytes at most held beside the inputs: by MLX's arrays, and by Python with NumPy."""
    inputs = unpack(data)
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    tracemalloc.start()
    try:
        _finish(graded.observe(solution, inputs))
        python = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {"mlx": max(mx.get_peak_memory() - before, 0), "python": python}


def _kernels(graded: Case, solution: Solution, data: bytes, calls: int) -> Plain:
    """Calls of each kernel, C++ or Metal, and the counters of Metal kernels, added by kernel."""
    from course.kernels import checked, dispatches

    inputs = unpack(data)
    with ExitStack() as stack:
        counts = stack.enter_context(dispatches())
        run = stack.enter_context(checked())
        values = graded.observe(solution, inputs)
        _finish(values)
    counters: dict[str, dict[str, int]] = {}
    for launch in [*run.launches, *launches_in(values)]:
        total = counters.setdefault(launch["kernel"], {})
        for name, count in launch["counters"].items():
            total[name] = total.get(name, 0) + count
    return {"calls": dict(counts), "counters": counters}


def launches_in(value: object) -> list[Plain]:
    """The launches of checked runs that a case has put into its values."""
    if isinstance(value, dict):
        if {"kernel", "counters"} <= value.keys():
            return [value]
        return [launch for item in value.values() for launch in launches_in(item)]
    if isinstance(value, list | tuple):
        return [launch for item in value for launch in launches_in(item)]
    return []


def _finish(values: object) -> None:
    """Wait for every array: MLX is lazy."""
    if isinstance(values, mx.array):
        mx.eval(values)
    elif isinstance(values, dict):
        _finish(list(values.values()))
    elif isinstance(values, list | tuple):
        for value in values:
            _finish(value)
