"""`sim validate` and `sim calibrate`: what was put into a run is found again, and mistakes are named."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from course.cli import main
from course.sim.fit import fit_steps, non_negative, predicted
from course.sim.package import Package
from course.sim.vllm_run import Asked, Engine, ModelShape, Predictor
from tiny_llm_ref.cluster.cost import StepShape

SHAPE = "4,512,2,64"
DATA = Path(os.environ.get("TINY_LLM_DATA", "no data")) / "vllm_llama8b_rtxpro6000"


def lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def profile(folder: Path) -> None:
    """Kernel times of a small model."""
    dense = [("layer", "tokens", "time_us"), *(("qkv_proj", n, 40 + 0.5 * n) for n in (1, 64, 256))]
    sequence = [("layer", "sequences", "time_us"), ("lm_head", 1, 100), ("lm_head", 64, 160)]
    attention = [("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us")]
    attention += [(c, b, n, k, 5 + 0.1 * c + 0.001 * b + 0.2 * n + 0.002 * n * k)
                  for c in (0, 256) for b in (0, 1024) for n in (0, 32) for k in ((0,) if n == 0 else (16, 1024))
                  if c + n]  # fmt: skip
    for name, rows in (("dense", dense), ("per_sequence", sequence), ("attention", attention)):
        (folder / f"{name}.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run that was "measured" by a simulation whose steps take 700 us more than their kernels."""
    profile(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        Asked(int(n), int(m), int(t), rng.integers(0, 9, int(n)).tolist())
        for n, m, t in zip(
            rng.integers(20, 300, 60), rng.integers(1, 60, 60), np.cumsum(rng.exponential(1e7, 60)), strict=True
        )
    ]
    engine = Engine(ModelShape(4, 512, 2, 64), 2000, 16, 32, 256)
    times = Predictor(Package("tiny_llm_ref"), tmp_path, rows, engine).predict(700.0) / 1e3
    names = ("input_toks", "output_toks", "arrival_time_ns", "input_tok_ids")
    lines(tmp_path / "workload.jsonl", [{name: getattr(row, name) for name in names} for row in rows])
    measured = []
    for place in rng.permutation(60):
        queued = rows[place].arrival_time_ns / 1e9 + 1000
        first, last = queued + times[place, 0], queued + times[place, 2]
        measured.append(
            {"request_id": f"bench-{place}", "queued_ts": queued, "first_token_ts": first, "last_token_ts": last}
        )
    lines(tmp_path / "requests.jsonl", measured)
    (tmp_path / "meta.json").write_text(
        json.dumps({"engine_kwargs": {"max_num_seqs": 32, "max_num_batched_tokens": 256}})
    )
    return tmp_path


def validate(folder: Path, *more: str) -> int:
    return main(["sim", "validate", "--vllm", str(folder), "--model-shape", SHAPE, "--kv-blocks", "2000", *more])


def test_the_constant_of_a_run_is_found(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("out") / "errors.json"
    assert validate(run_folder, "--json", str(out)) == 0
    found = json.loads(out.read_text())
    assert found["fitted"]
    assert found["step_overhead_us"] == pytest.approx(700, abs=15)
    for part in found["parts"].values():
        assert abs(part["TPOT"]["error"]) < 0.01, part
        assert all(abs(row["error"]) < 0.06 for row in part.values()), part


def test_a_given_constant_is_not_fitted(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("out") / "errors.json"
    assert validate(run_folder, "--step-overhead-us", "700", "--json", str(out)) == 0
    exact = json.loads(out.read_text())["parts"]["all"]
    assert all(abs(row["error"]) < 1e-6 for row in exact.values()), exact
    assert validate(run_folder, "--step-overhead-us", "0", "--json", str(out)) == 0
    assert json.loads(out.read_text())["parts"]["all"]["TPOT"]["error"] < -0.2


def test_more_gpus_pay_for_their_sums(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("out") / "errors.json"
    options = ("--step-overhead-us", "0", "--json", str(out))
    assert validate(run_folder, *options, "--tp", "2", "--link-gbps", "64", "--link-us", "10") == 0
    slow = json.loads(out.read_text())["parts"]["all"]["TPOT"]["predicted_ms"]
    assert validate(run_folder, *options, "--tp", "2", "--link-gbps", "1000000", "--link-us", "0") == 0
    free = json.loads(out.read_text())["parts"]["all"]["TPOT"]["predicted_ms"]
    assert slow > free + 8 * 2 * 0.010 * 0.9  # two sums in each of 4 layers, each with two messages of 10 us


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model-shape", "32,4096"], "layers,hidden,kv_heads,head_dim"),
        (["--tp", "3"], "--tp 3 cannot share 2 KV heads"),
        (["--workload", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--kv-blocks", "5"], "raise --kv-blocks"),
        (["--kv-blocks", "0"], "of at least 1"),
        (["--json", "no/such/folder/x.json"], "no folder"),
    ],
)
def test_mistakes_are_named(run_folder: Path, capfd: pytest.CaptureFixture[str], options: list[str], said: str) -> None:
    try:
        status = validate(run_folder, *options)
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2
    error = capfd.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_one_engine_is_validated_at_a_time(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "validate"]) == 2
    assert "--vllm DIR, or --fit FILE" in capfd.readouterr().err


def test_a_fit_finds_what_made_the_steps() -> None:
    rng, steps = np.random.default_rng(1), []
    for _ in range(400):
        tokens, decodes = int(rng.integers(0, 200)), int(rng.integers(0, 30))
        shape = StepShape(tokens, tokens * 40, decodes, decodes * int(rng.integers(10, 900)), decodes + (tokens > 0))
        time = 900 + 11.0 * (tokens + decodes) + 40.0 * shape.n_sequences
        time += 0.02 * (shape.prefill_context + shape.decode_context)
        steps.append((shape, int(time * 1e3)))
    steps = [step for step in steps if step[0].n_sequences]
    fit = fit_steps(steps)
    assert fit.sequence == pytest.approx(40, rel=0.05)
    assert fit.pair == pytest.approx(0.02, rel=0.02)
    assert np.allclose(predicted(fit, steps), [time / 1e3 for _, time in steps], rtol=0.01)


def test_non_negative_least_squares_keep_their_conditions() -> None:
    rng = np.random.default_rng(2)
    design, wanted = rng.standard_normal((50, 6)), rng.standard_normal(50)
    found = non_negative(design, wanted)
    slope = design.T @ (design @ found - wanted)
    assert (found >= 0).all()
    assert (slope > -1e-6).all()  # no number would be better larger,
    assert np.abs(slope * found).max() < 1e-6  # and none that is above 0 smaller


def test_our_engine_is_calibrated_and_predicted(tmp_path: Path) -> None:
    fit, out = tmp_path / "fit.json", tmp_path / "errors.json"
    assert main(["sim", "calibrate", "--out", str(fit), "--requests", "6", "--rows", "4", "--token-budget", "128"]) == 0
    found = json.loads(fit.read_text())
    assert found["kind"] == "fitted"
    assert found["engine"]["rows"] == 4
    assert max(found["times_us"]) > 0
    options = ["--fit", str(fit), "--loads", "0.5", "--requests", "5", "--json", str(out)]
    assert main(["sim", "validate", *options]) == 0
    (part,) = json.loads(out.read_text())["parts"].values()
    assert all(row["measured_ms"] > 0 and row["predicted_ms"] > 0 for row in part.values())
    assert main(["sim", "run", "--step-time", str(fit), "--requests", "5", "--kv-blocks", "100"]) == 0


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not there: set TINY_LLM_DATA")
def test_a_real_vllm_is_predicted_with_one_constant(tmp_path: Path) -> None:
    out = tmp_path / "errors.json"
    options = ["--model-shape", "32,4096,8,128", "--kv-blocks", "33000", "--json", str(out)]
    assert main(["sim", "validate", "--vllm", str(DATA), *options]) == 0
    parts = json.loads(out.read_text())["parts"]
    for name in ("second half", "all"):
        for latency, bar in (("TTFT", 0.05), ("TPOT", 0.015), ("E2E", 0.02)):
            assert abs(parts[name][latency]["error"]) < bar, (name, latency, parts[name][latency])
