"""The benchmarks run on a small model and write numbers that make sense; the numbers themselves are not judged here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_model import small_model

from course.checkpoints import SHAPES, Shape
from course.folder import is_complete
from course.timing import Spread, alternate


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return small_model(tmp_path_factory.mktemp("random-model"), max_positions=64)


def bench(*arguments: str, **settings: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | settings
    command = [sys.executable, "-m", "course", "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)


def assert_one_line(done: subprocess.CompletedProcess, part: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert part in done.stderr


def assert_spread(spread: dict[str, float]) -> None:
    assert 0 < spread["min"] <= spread["median"] <= spread["max"]


def test_model_bench_writes_machine_and_both_speeds(model, tmp_path):
    file = tmp_path / "numbers.json"
    small = ("--lengths", "4", "8", "--decode-at", "5", "--decode-tokens", "2", "--rounds", "3")
    done = bench("model", "--model", str(model), *small, "--json", str(file))
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    assert {"cpu", "cores", "memory_gib", "python", "mlx", "numpy", "mlx-lm", "openblas_route"} <= set(
        report["machine"]
    )
    found = [(r["kind"], r["length"]) for r in report["results"]]
    assert found == [("prefill", 4), ("prefill", 8), ("decode", 5)]
    for result in report["results"]:
        for key in ("ours_tokens_per_s", "mlx_lm_tokens_per_s", "ratio"):
            assert_spread(result[key])
    assert done.stdout.count("ratio") == 3


def test_recompute_bench_measures_at_the_context(model, tmp_path):
    file = tmp_path / "numbers.json"
    done = bench("recompute", "--model", str(model), "--context", "20", "--rounds", "2", "--json", str(file))
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    assert report["context"] == 20
    assert_spread(report["tokens_per_s"])
    assert "20 tokens" in done.stdout


def test_mistakes_are_one_line(model, tmp_path):
    assert_one_line(bench("model", "--model", str(model), "--lengths", "65"), "context of 64")
    assert_one_line(bench("recompute", "--model", str(model), "--context", "60"), "lower --context")
    assert_one_line(bench("model", "--shape", "9b"), "0.6b")
    assert_one_line(bench("nothing"), "recompute")
    (tmp_path / "mlx_lm").mkdir()
    (tmp_path / "mlx_lm" / "__init__.py").write_text("raise ImportError")
    assert_one_line(bench("model", "--model", str(model), PYTHONPATH=str(tmp_path)), "pdm install -G dev")


def test_random_checkpoint_is_made_once_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    from benches.random_checkpoint import random_checkpoint

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(SHAPES, "0.6b", Shape())
    folder = random_checkpoint("0.6b", shards=2)
    assert is_complete(folder)
    assert folder.is_relative_to(tmp_path)
    written = (folder / "config.json").stat().st_mtime_ns
    assert random_checkpoint("0.6b", shards=2) == folder
    assert (folder / "config.json").stat().st_mtime_ns == written


def test_published_shape_is_that_of_qwen3_0_6b():
    """596,049,920 parameters, as its model card says: 0.6 billion, 0.44 billion without the embedding."""
    s = SHAPES["0.6b"]
    layer = s.hidden * s.head_dim * (2 * s.heads + 2 * s.kv_heads) + 3 * s.hidden * s.intermediate
    norms = 2 * s.hidden + 2 * s.head_dim
    assert s.vocab * s.hidden + s.layers * (layer + norms) + s.hidden == 596_049_920


def test_alternate_measures_both_sides_equally_often():
    order = []
    pair = alternate(lambda: order.append("a"), lambda: order.append("b"), 3)
    assert order == ["a", "b", "a", "b", "b", "a", "a", "b"]
    assert pair.ours.least <= pair.ours.median <= pair.ours.most


def test_spread_of_speeds_turns_the_ends_around():
    assert Spread.of([2.0, 1.0, 4.0]).per(8) == Spread(4.0, 2.0, 8.0)
