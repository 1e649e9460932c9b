"""Runners around runners, for tests of loops that launch ahead: what was launched and read when, and what fails.

Knows batches by their steps; nothing of the package under test but its public names.
"""

from collections.abc import Callable, Collection

import mlx.core as mx
import numpy as np

from course.solution import Solution

from .hash_model import HashRunner, next_token


class Recorder:
    """A runner that notes the order of launches and reads, and fails where it is told to.

    events: "launch 0", "read 0", ... fail_launch, fail_read: numbers of batches that raise.
    """

    def __init__(self, runner: object, fail_launch: Collection[int] = (), fail_read: Collection[int] = ()):
        self.runner, self.fail_launch, self.fail_read = runner, fail_launch, fail_read
        self.events: list[str] = []
        self.steps: list[list[tuple[int, bool]]] = []

    def launch(self, batch: object) -> "Recorded":
        """Note it, then launch it."""
        number = len(self.steps)
        self.events.append(f"launch {number}")
        self.steps.append([(step.request.uid, step.samples) for step in batch.steps])
        if number in self.fail_launch:
            raise RuntimeError(f"batch {number} cannot be launched")
        return Recorded(self, number, self.runner.launch(batch))


class Recorded:
    """A batch that was launched."""

    def __init__(self, recorder: Recorder, number: int, pending: object):
        self.recorder, self.number, self.pending = recorder, number, pending

    def results(self) -> object:
        """Note it, then read the results."""
        self.recorder.events.append(f"read {self.number}")
        results = self.pending.results()
        if self.number in self.recorder.fail_read:
            raise RuntimeError(f"batch {self.number} was lost")
        return results


class Simulated(HashRunner):
    """What `drive` needs to know of a runner, around the package's own on its own simulated device.

    make: (device, memory, choose, costs) -> the runner. ends: the device's clock when each batch had been read.
    """

    def __init__(self, solution: Solution, memory: object, launch_cost: int = 0, **costs: int):
        super().__init__(getattr(memory, "table", None), memory.page_size)
        module = solution.module("serving.simulated")
        self.device = solution.module("serving.streams").Device(launch_cost)
        self.simulated = module.SimulatedRunner(self.device, memory, next_token, module.Costs(**costs))
        self.ends: list[int] = []

    def launch(self, batch: object) -> "SimulatedBatch":
        """Launch it on the device."""
        self.batches.append([(step.request.uid, *step[1:]) for step in batch.steps])
        return SimulatedBatch(self, self.simulated.launch(batch))

    def hazards(self, solution: Solution) -> list[str]:
        """What the package's detector finds, in words."""
        return [str(hazard) for hazard in solution.module("serving.hazards").find_hazards(self.device.log)]


class SimulatedBatch:
    """A batch on the simulated device."""

    def __init__(self, runner: Simulated, pending: object):
        self.runner, self.pending = runner, pending

    def results(self) -> object:
        """Wait for it."""
        self.runner.between()
        results = self.pending.results()
        self.runner.ends.append(self.runner.device.now)
        return results


def lifetimes(trace: dict[str, object]) -> dict[int, int]:
    """How many steps of each request chose a token, by uid, whether it was wanted or not."""
    counts: dict[int, int] = {}
    for batch in trace["batches"]:
        for uid, _, _, samples in batch:
            counts[uid] = counts.get(uid, 0) + samples
    return counts


class Questions:
    """A context in which it is noted when somebody asks an `mx.array` for numbers, or evaluates one: both wait.

    asked: what was called, in words.
    """

    METHODS = ("item", "tolist", "__int__", "__float__", "__bool__", "__index__", "__array__")
    FUNCTIONS = ("eval", "synchronize")
    COPIES = ("array", "asarray", "ascontiguousarray")
    """Functions of NumPy that read an `mx.array` through its buffer, without a call of a method."""

    def __init__(self):
        self.asked: list[str] = []
        self._patched: list[tuple[object, str, object]] = []

    def __enter__(self) -> "Questions":
        for owner, names, words in ((mx.array, self.METHODS, "mx.array"), (mx, self.FUNCTIONS, "mx")):
            for name in names:
                original = getattr(owner, name)
                self._patched.append((owner, name, original))
                setattr(owner, name, self._noting(original, f"{words}.{name}"))
        for name in self.COPIES:
            original = getattr(np, name)
            self._patched.append((np, name, original))
            setattr(np, name, self._noting(original, f"np.{name}", lambda x=None, *_: isinstance(x, mx.array)))
        return self

    def __exit__(self, *_: object) -> None:
        while self._patched:
            setattr(*self._patched.pop())

    def _noting(self, original: Callable, words: str, waits: Callable[..., bool] = lambda *_: True) -> Callable:
        def noted(*args: object, **options: object) -> object:
            if waits(*args):
                self.asked.append(words)
            return original(*args, **options)

        return noted
