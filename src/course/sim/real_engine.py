"""Runs the course's serving engine in real time on a given load, and notes how long each step takes.

The load is the one that the simulator gets: arrivals, lengths of prompts, lengths of answers. Prompts are random
tokens, answers never end early.
"""

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from course.sim.vllm_run import latencies

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.cost import StepShape
    from tiny_llm_ref.cluster.workload import Arrival
    from tiny_llm_ref.serving.engine import Pending, Runner
    from tiny_llm_ref.serving.request import Batch

VOCABULARY = 2000
"""Prompts are made of the first so many tokens."""


@dataclass(frozen=True)
class Settings:
    """Of the engine, as `serve` names them. rows: requests that run at once. max_len: positions of the longest."""

    rows: int = 16
    token_budget: int = 256
    page_size: int = 16
    max_len: int = 1024

    @property
    def pages(self) -> int:
        """Enough for all rows."""
        return self.rows * self.max_len // self.page_size


@dataclass(frozen=True)
class Observed:
    """A run. steps: (shape, ns) of each. times: (requests, 3), TTFT, TPOT, E2E in ms."""

    steps: list[tuple["StepShape", int]]
    times: np.ndarray


class Shapes:
    """A `Runner` that remembers the shape of its last batch."""

    def __init__(self, runner: "Runner", cost: object):
        self.runner, self.cost = runner, cost
        self.last: StepShape | None = None

    def launch(self, batch: "Batch") -> "Pending":
        """Launch it."""
        self.last = self.cost.shape_of(batch.steps)
        return self.runner.launch(batch)


class RealEngine:
    """The engine of `package`, such as tiny_llm_ref, with a model and the scheduler that the simulator has."""

    def __init__(self, package: str, folder: Path, ops: str, settings: Settings):
        import mlx.core as mx

        self.package, self.settings = package, settings
        self.assemble = importlib.import_module(f"{package}.serving.assemble")
        self.request = importlib.import_module(f"{package}.serving.request").Request
        self.model = self.assemble.load_batched(folder, ops, mx.float32)

    def run(self, load: Sequence["Arrival"], seed: int) -> Observed:
        """Serve a load. Every run begins with an empty cache."""
        options = self.assemble.Options(
            rows=self.settings.rows,
            max_len=self.settings.max_len,
            page_size=self.settings.page_size,
            pages=self.settings.pages,
            token_budget=self.settings.token_budget,
            scheduler="mixed",
            loop="normal",
        )
        engine = self.assemble.assemble(self.model, options)
        engine.runner = runner = Shapes(engine.runner, importlib.import_module(f"{self.package}.cluster.cost"))
        rng = np.random.default_rng(seed)
        prompts = [rng.integers(0, VOCABULARY, each.input_length).tolist() for each in load]
        first, last = np.zeros(len(load)), np.zeros(len(load))
        steps, coming, start = [], 0, time.perf_counter_ns()
        while coming < len(load) or engine.busy:
            now = time.perf_counter_ns() - start
            while coming < len(load) and load[coming].time_ns <= now:
                engine.add(self.request(coming, prompts[coming], load[coming].output_length))
                coming += 1
            if not engine.busy:
                time.sleep((load[coming].time_ns - now) / 1e9)
                continue
            begin = time.perf_counter_ns()
            outputs = engine.step()
            end = time.perf_counter_ns()
            steps.append((runner.last, end - begin))
            for output in outputs:
                first[output.uid] = first[output.uid] or end - start
                last[output.uid] = end - start
        arrivals, tokens = (np.array([getattr(each, name) for each in load]) for name in ("time_ns", "output_length"))
        return Observed(steps, latencies(arrivals, first, last, tokens) / 1e6)
