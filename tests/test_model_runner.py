"""The reference's runner on a model: every table, batches that choose nothing, rows that are used again, failures."""

import mlx.core as mx
import pytest

from course.paths import MODELS
from tiny_llm_ref.cache.cached import CachedModel
from tiny_llm_ref.cache.dense import DenseCache
from tiny_llm_ref.kernels.tables import make_ops
from tiny_llm_ref.model.qwen3 import Qwen3
from tiny_llm_ref.serving.assemble import load_batched
from tiny_llm_ref.serving.batch_sampler import BatchSampler
from tiny_llm_ref.serving.engine import Engine
from tiny_llm_ref.serving.memory import RowMemory
from tiny_llm_ref.serving.model_runner import DenseRows, ModelRunner
from tiny_llm_ref.serving.request import Batch, Request
from tiny_llm_ref.serving.scheduler import Scheduler
from tiny_llm_ref.text.generate import generate, greedy

PROMPTS = [[5, 17, 4], [99], [23, 8, 42, 7, 300, 12], [3, 3], [77, 78, 79, 80]]


@pytest.fixture(scope="module")
def model() -> Qwen3:
    return load_batched(MODELS / "tiny", "python", mx.float32)


def engine_of(model: Qwen3, rows: int = 2) -> Engine:
    runner = ModelRunner(model, DenseRows(len(model.layers)), BatchSampler())
    return Engine(Scheduler(RowMemory(rows, 64)), runner)


def run(engine: Engine, requests: list[Request]) -> list[list[int]]:
    for request in requests:
        engine.add(request)
    while engine.busy:
        engine.step()
    return [request.ids[request.prompt_len :] for request in requests]


def requests_of(tokens: int = 8) -> list[Request]:
    return [Request(uid, list(prompt), tokens) for uid, prompt in enumerate(PROMPTS)]


def alone(model: Qwen3, tokens: int = 8) -> list[list[int]]:
    """By Week 1's loop and Week 2's cache, with the table that is not for batches."""
    plain = load_batched(MODELS / "tiny", "python", mx.float32)
    plain.ops = make_ops("python")
    for layer in plain.layers:
        layer.ops = plain.ops
    return [list(generate(CachedModel(plain, DenseCache), p, greedy, max_tokens=tokens)) for p in PROMPTS]


def test_an_engine_answers_as_the_loop_of_week_1(model: Qwen3) -> None:
    assert run(engine_of(model), requests_of()) == alone(model)


@pytest.mark.parametrize("name", ["packed", "cpu", "fused", "flash"])
def test_batched_is_single_with_every_table(name: str) -> None:
    model = load_batched(MODELS / "tiny", name, mx.float32)
    together, single = run(engine_of(model, rows=4), requests_of()), run(engine_of(model, rows=1), requests_of())
    assert together == single


def test_a_chunk_chooses_nothing_and_computes_its_keys(model: Qwen3) -> None:
    engine = engine_of(model)
    request = Request(0, [5, 17, 4, 9], 2)
    engine.add(request)
    scheduler, runner = engine.scheduler, engine.runner
    scheduler.memory.open(scheduler.waiting.popleft(), scheduler.memory.match(request))
    for tokens in (3, 1):
        batch = Batch((scheduler.launch(request, tokens),))
        results = runner.launch(batch).results()
        assert len(results) == (tokens == 1)
        scheduler.commit(batch, results)
    engine.step()
    assert [request.ids[4:]] == run(engine_of(model), [Request(0, [5, 17, 4, 9], 2)])


def test_a_row_is_clean_after_a_failure(model: Qwen3, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caches of the failed batch hold a graph that cannot be computed; nobody may meet it."""
    engine = engine_of(model)
    for request in requests_of()[:2]:
        engine.add(request)
    engine.step()
    with monkeypatch.context() as broken:
        broken.setattr(model.ops, "mlp", lambda layer, x: mx.matmul(x, mx.ones((1, 1))), raising=True)
        assert {output.finish_reason for output in engine.step()} == {"error"}
    assert not engine.busy
    assert run(engine, requests_of()) == run(engine_of(model), requests_of())
