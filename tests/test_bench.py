"""The benchmarks run on a small model and write numbers that make sense; the numbers themselves are not judged here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_model import PACKABLE, small_model

from course.checkpoints import SHAPES, Shape
from course.folder import is_complete
from course.paths import REFERENCE
from course.timing import Spread, alternate
from course.variant import build


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return small_model(tmp_path_factory.mktemp("random-model"), max_positions=64, shape=PACKABLE)


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


@pytest.fixture
def llama_bench(tmp_path) -> Path:
    """Stands in for llama.cpp's program: checks that it got a model file and says that it is as fast as one asks."""
    program = tmp_path / "llama-bench"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "options = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "assert open(options['-m'], 'rb').read(4) == b'GGUF' and options['-t'] and options['-r'] == '1'\n"
        "print(json.dumps([{'avg_ts': 1000 * float(options['-p']) + float(options['-n'])}]))\n"
    )
    program.chmod(0o755)
    return program


def test_model_bench_writes_machine_and_all_speeds(model, tmp_path, llama_bench):
    file, plot = tmp_path / "numbers.json", tmp_path / "plot.svg"
    small = ("--ops", "packed", "--lengths", "4", "8", "--decode-at", "5", "--decode-tokens", "2", "--rounds", "3")
    out = ("--json", str(file), "--plot", str(plot), "--as-shipped")
    done = bench(
        "model", "--model", str(model), *small, *out, LLAMA_BENCH=str(llama_bench), XDG_CACHE_HOME=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    assert {"cpu", "cores", "memory_gib", "python", "mlx", "numpy", "mlx-lm", "openblas_route"} <= set(
        report["machine"]
    )
    found = [(r["kind"], r["length"]) for r in report["results"]]
    assert found == [("prefill", 4), ("prefill", 8), ("decode", 5)]
    for result, said in zip(report["results"], (4000, 8000, 2), strict=True):
        assert list(result["speeds"]) == ["tiny_llm_ref packed", "mlx-lm float32", "llama.cpp Q4_0"]
        assert result["speeds"]["llama.cpp Q4_0"]["median"] == said
        for spread in [*result["speeds"].values(), *result["ratios"].values()]:
            assert_spread(spread)
    assert done.stdout.count("ours is") == 6
    assert len(report["as_shipped"]) == 2
    assert "</svg>" in plot.read_text()


@pytest.fixture(scope="module")
def extension() -> None:
    """The reference's C++ library, built before a bench that needs it is timed."""
    build(REFERENCE.name)


def test_roofline_bench_finds_two_ceilings_by_two_witnesses(extension, tmp_path):
    file, plot = tmp_path / "numbers.json", tmp_path / "plot.png"
    done = bench("roofline", "--quick", "--json", str(file), "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    assert report["ridge"] == pytest.approx(report["flops"] / report["bandwidth"])
    assert {name.partition(",")[0] for name in report["readings"]} == {"bandwidth", "flops"}
    for witnesses in report["readings"].values():
        assert set(witnesses) == {"C++", "OpenBLAS"}
        for spread in witnesses.values():
            assert_spread(spread)
            assert 1e8 < spread["median"] < 1e14
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_ladder_bench_climbs_every_step(extension, model, tmp_path):
    file, plot = tmp_path / "numbers.json", tmp_path / "plot.svg"
    small = ("--context", "8", "--tokens", "3", "--rounds", "2", "--quick")
    done = bench("ladder", "--model", str(model), *small, "--json", str(file), "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    ways = [(step["ops"], step["cache"]) for step in report["steps"]]
    assert ways == [("python", "none"), *((ops, "dense") for ops in ("python", "packed", "cpu", "fused", "flash"))]
    plain, cached, packed, *_ = (step["bytes_per_token"] for step in report["steps"])
    s = PACKABLE
    keys_and_values = 8 * 2 * s.layers * s.kv_heads * s.head_dim * 4
    assert cached - plain == keys_and_values
    assert plain / (packed - keys_and_values) == pytest.approx(4 / (4 / 8 + 4 / 64))
    for step in report["steps"]:
        assert_spread(step["tokens_per_s"])
        assert step["limit"] == pytest.approx(report["bandwidth"] / step["bytes_per_token"])
    assert "</svg>" in plot.read_text()


def test_ladder_bench_of_one_table(model):
    done = bench("ladder", "--model", str(model), "--ops", "packed", "--context", "60")
    assert_one_line(done, "60 + 32 tokens do not fit in the model's context of 64: lower --context")


def test_ops_bench_compares_every_kernel_with_mlx(extension, model, tmp_path):
    file = tmp_path / "numbers.json"
    small = ("--rows", "1", "9", "--rounds", "2", "--quick")
    done = bench("ops", "--model", str(model), *small, "--json", str(file))
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    kernels = [result["kernel"] for result in report["results"]]
    assert {kernel: kernels.count(kernel) for kernel in kernels} == {
        "4-bit matvec": 4,
        "4-bit matrix product": 3,
        "flash attention": 2,
        "fused": 6,
    }
    for result in report["results"]:
        for key in ("ours_s", "mlx_s", "of_limit", "times_mlx"):
            assert_spread(result[key])
    assert len(report["metal"]) == 9
    for name, found in report["metal"].items():
        assert found["moved"] >= 0.99 * found["least"], f"{name} did not touch all of its arrays"


def test_gguf_blocks_are_those_of_llama_cpp():
    """Worked by hand: the number of largest magnitude, -8 here, gets level 0, and zero gets level 8."""
    from benches.common.gguf import quantize_q4_0

    values = np.zeros(32, np.float32)
    values[0], values[1], values[16], values[31] = -8.0, 7.0, 2.2, 1.5
    packed = quantize_q4_0(values)
    assert packed[:2] == np.float16(1.0).tobytes()
    assert list(packed[2:]) == [0xA0, 0x8F, *[0x88] * 13, 0xA8]
    assert quantize_q4_0(np.zeros(32, np.float32))[2:] == bytes([0x88] * 16)


def test_recompute_bench_measures_at_the_context(model, tmp_path):
    file = tmp_path / "numbers.json"
    done = bench("recompute", "--model", str(model), "--context", "20", "--rounds", "2", "--json", str(file))
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    assert report["context"] == 20
    assert_spread(report["tokens_per_s"])
    assert "20 tokens" in done.stdout


def test_kernels_bench_compares_each_kernel_with_the_scalar_one(extension, tmp_path):
    file = tmp_path / "numbers.json"
    done = bench("kernels", "--rows", "1", "2", "--rounds", "2", "--json", str(file))
    assert done.returncode == 0, done.stderr
    results = json.loads(file.read_text())["results"]
    assert [result["rows"] for result in results] == [1] * 4 + [2] * 5
    assert {result["kernel"] for result in results if result["rows"] == 1} == {
        "unpack, then MLX",
        "scalar",
        "vector",
        "all threads",
    }
    for result in results:
        assert_spread(result["flops"])
        assert_spread(result["gain"])
        if result["kernel"] == "scalar":
            assert result["gain"] == {"median": 1.0, "min": 1.0, "max": 1.0}


def test_mistakes_are_one_line(model, tmp_path):
    assert_one_line(bench("model", "--model", str(model), "--lengths", "65"), "context of 64")
    assert_one_line(bench("recompute", "--model", str(model), "--context", "60"), "lower --context")
    assert_one_line(bench("model", "--shape", "9b"), "0.6b")
    assert_one_line(bench("nothing"), "recompute")
    short = ("--model", str(model), "--ops", "packed", "--lengths", "8", "--decode-at", "8")
    assert_one_line(bench("model", "--llama-bench", "/no/such"), "/no/such is no program")
    assert_one_line(bench("model", "--model", str(model), "--plot", "plot.txt"), "plot.txt")
    assert_one_line(bench("model", "--model", str(model), "--json", "/no/such/file"), "no folder /no/such")
    (tmp_path / "mlx_lm").mkdir()
    (tmp_path / "mlx_lm" / "__init__.py").write_text("raise ImportError")
    assert_one_line(bench("model", *short, PYTHONPATH=str(tmp_path)), "pdm install -G dev")


def test_random_checkpoint_is_made_once_in_the_cache(tmp_path, monkeypatch):
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
