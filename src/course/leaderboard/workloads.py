"""What runs behind the boundary: the embedded model, loaded and used by the submission's code. A file of cases.

Knows no clock and no judgement: the grader's side has both.
"""

from collections.abc import Callable
from pathlib import Path

import mlx.core as mx

from course.case import case
from course.solution import Solution

Model = Callable[[mx.array], mx.array]


@case(task=1)
class Ready:
    """Starts the process, and nothing else."""

    def inputs(rng): ...

    def observe(solution, inputs):
        return None

    def verify(inputs, values): ...


@case(task=1)
class Decode:
    """The tokens that follow a prompt."""

    def inputs(rng): ...

    def observe(solution, way):
        model = load(solution, way)
        generate = solution.module("text.generate").generate
        best = lambda logits, history: mx.argmax(logits, axis=-1)  # noqa: E731
        return [int(token) for token in generate(model, way["prompt"], best, max_tokens=way["tokens"])]

    def verify(inputs, values): ...


@case(task=1)
class Prefill:
    """What follows each of several prompts, as logits."""

    def inputs(rng): ...

    def observe(solution, way):
        plain = load_plain(solution, way)
        found = []
        for prompt in way["prompts"]:
            logits = cached(solution, way, plain)(mx.array([prompt]))[:, -1]
            mx.eval(logits)
            found.append(logits)
        return found

    def verify(inputs, values): ...


def load(solution: Solution, way: dict[str, object]) -> Model:
    """The model with its cache."""
    return cached(solution, way, load_plain(solution, way))


def load_plain(solution: Solution, way: dict[str, object]) -> Model:
    """The submission's model. way: folder, ops (a table), packed (whether it takes packed weights), cache."""
    mx.set_default_device(mx.cpu)
    folder, ops = Path(way["folder"]), way["ops"]
    if ops == "python":
        return solution.module("model.checkpoint").load_model(folder, mx.float32)
    table = solution.module("kernels.tables").make_ops(ops)
    if way["packed"]:
        return solution.module("kernels.load").load_packed_model(folder, table, mx.float32)
    checkpoint = solution.module("model.checkpoint")
    config = checkpoint.load_config(folder)
    weights = checkpoint.load_weights(folder, config, mx.float32)
    return solution.module("model.qwen3").Qwen3(config, weights, table)


def cached(solution: Solution, way: dict[str, object], model: Model) -> Model:
    """With an empty cache, or without one."""
    if way["cache"] == "none":
        return model
    return solution.module("cache.cached").CachedModel(model, solution.module("cache.dense").DenseCache)
