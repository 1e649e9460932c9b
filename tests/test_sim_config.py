"""The configuration of a simulation: what flags and files may say, who wins, and how mistakes are told."""

import argparse
from pathlib import Path

import pytest

from course.cli import main
from course.errors import CourseError
from course.sim.choose import add_options, chosen, merged, read_config, write_config
from course.sim.config import OPTIONS, Config
from course.sim.deploy import deployment
from course.sim.execute import execute
from course.sim.faults import faults
from course.sim.package import Package
from course.sim.step_time import engine
from course.sim.workload import workload

PACKAGE = Package("tiny_llm_ref")


def from_flags(*arguments: str) -> dict[str, object]:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return chosen(parser.parse_args(arguments))


def config_file(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a mistake gets."""
    assert main(["sim", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def test_every_option_has_a_name_of_its_own_and_a_default_that_it_would_take():
    for key, one in OPTIONS.items():
        assert key == one.key
        if isinstance(one.default, bool | int | float | str) and one.default is not None:
            assert one.read_toml(one.default, key) == one.default


def test_a_printed_configuration_reads_as_itself(tmp_path):
    values = from_flags(
        *("--rate", "3.5", "--burstiness", "inf", "--prefill-workers", "2", "--decode-workers", "1", "--approximate"),
        *("--fault", "crash:decode-0@3s", "--fault", "slow-nic@1s+2s*0.5", "--planner", 'odd "name"'),
    )
    text = write_config(values)
    assert read_config(config_file(tmp_path, text)) == values
    assert "# workers = ..." in text
    assert "# block-size = 64" in text


def test_flags_win_over_a_file_and_over_its_rivals(tmp_path):
    path = config_file(tmp_path, "[load]\nrate = 8\nrequests = 7\n[pools]\nworkers = 4\n")
    assert from_flags(str(path), "--rate", "2") == {"rate": 2.0, "requests": 7, "workers": 4}
    two = from_flags(str(path), "--prefill-workers", "1", "--decode-workers", "2")
    assert two == {"rate": 8.0, "requests": 7, "prefill-workers": 1, "decode-workers": 2}
    assert "rate" not in from_flags(str(path), "--trace", "x.jsonl")
    assert from_flags("--approximate", "--no-approximate")["approximate"] is False


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[load]\nrat = 1", "no key 'rat': did you mean rate?"),
        ("[lod]\nrate = 1", "no table 'lod': did you mean load?"),
        ("load = 1", "load = 1 is not a table: write [load]"),
        ("rate = 1", "rate stands in another table: move it to [load]"),
        ("[pools]\nrate = 1", "rate stands in another table: move it to [load]"),
        ("[load]\nrate = -1", "[load] rate: '-1' is not a number above 0: try 8"),
        ("[load]\nrate = true", "true is not a number"),
        ('[load]\nrate = "8"', "'8' is not a number"),
        ("[load]\njitter = 1", "is not true or false"),
        ("[load]\nrequests = 1.5", "'1.5' is not a whole number of at least 1"),
        ("[load]\nrate = nan", "'nan' is not a number"),
        ("[routing]\nrouter = 'best'", "'best' is none of random, round-robin"),
        ("[routing]\nrouter = 3", "3 is not text"),
        ("[control]\nfault = 'x'", "is not a list"),
        ("[control]\nfault = [1]", "1 is not text"),
        ("[load]\nrate = [1]", "[1] is not a number"),
        ("[load", "is no TOML file"),
        ("[load]\ntrace = 'a'\nrate = 1", "trace and rate exclude each other"),
        ("[pools]\nworkers = 1\nprefill-workers = 1", "exclude each other"),
        ("[load]\nspeed-up = 2", "speed-up says nothing without trace"),
    ],
)
def test_mistakes_in_a_file_are_told_in_one_line(tmp_path, capsys, text, part):
    path = config_file(tmp_path, text)
    message = said(capsys, "run", str(path))
    assert part in message
    if "says nothing" not in part:
        assert str(path) in message


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("--rate 0", "'0' is not a number above 0: try 8"),
        ("--rate 1e-300", "'1e-300' is below the limit, 0.0001: try 8"),
        ("--rate 1e300", "'1e300' is above the limit, 1,000,000,000: try 8"),
        ("--workers 1000000000", "'1000000000' is above the limit, 10,000: try 4"),
        ("--input-mean 1e300", "is above the limit, 10,000,000: try 1024"),
        ("--telemetry 1e-9", "is below the limit, 0.001: try 5"),
        ("--fault crash@99999999999999999999s", "the limit is 1,000,000,000 s: try 30s"),
        ("--json /", "/ is a folder: name a file"),
        ("--scheduler prefill-first --kv-blocks 20 --rate 100", "prefill-first ran out of KV blocks"),
        ("--workers two", "'two' is not a whole number of at least 1"),
        ("--unknown", "unrecognized arguments: --unknown"),
        ("--trace a.jsonl --concurrency 3", "trace and concurrency exclude each other"),
        ("--prefill-workers 2", "add decode-workers"),
        ("--prefill-tp 2", "add --prefill-workers and --decode-workers"),
        ("--block-size 48", "block-size 48 does not divide the 512 tokens"),
        ("--tp 2", "step-time mocker knows one GPU, not tp 2"),
        ("--model qwen3-8b", "the roofline needs both --model and --machine"),
        ("--model qwen3-9b --machine h100", "no model 'qwen3-9b': choose from qwen3-0.6b"),
        ("--model qwen3-8b --machine h900", "no machine 'h900': choose from a100"),
        ("--model qwen3-8b --machine h100 --tp 3", "tp 3 does not divide the 8 KV heads"),
        ("--model qwen3-32b --machine rtx-pro-6000", "the memory of rtx-pro-6000 is not known: give --kv-blocks"),
        ("--model qwen3-8b --machine h100 --step-time mocker", "belong to the roofline, not to step-time mocker"),
        ("--step-time fastest", "step-time fastest is none of mocker"),
        ("--trace nothing.jsonl", "cannot read the trace nothing.jsonl: No such file or directory"),
        ("--fault crash", "is not KIND[:WORKER]@TIME"),
        ("--fault crash:worker-4@3s --workers 4", "there is no worker-4: choose from worker-0 to worker-3"),
        ("--fault crash:decode-0@3s", "there is no decode-0"),
        ("--fault flood@3s", "no kind 'flood': choose from crash"),
        ("--fault crash@3s*0.5", "a crash has no factor"),
        ("--fault slow-nic@3s*2", "the factor 2 is not above 0 and at most 1"),
        ("--fault-rate crash", "is not KIND=RATE"),
        ("--fault-rate crash=1/s --concurrency 2", "needs arrivals that are known in advance"),
        ("--planner magic", "no planner 'magic': choose from classic"),
        ("--planner throughput --workers 2", "sizes two pools"),
        ("--planner load", "needs objectives"),
        ("--planner thresholds --workers 4 --max-gpus 2", "max-gpus 2 is less than the 4 GPUs at the start"),
        ("--sync-ms -0.5", "sync-ms -0.5 is neither -1 (never) nor at least 0"),
        ("--warm-up 1000 --requests 3", "leaves nothing: measure longer"),
        ("--csv no/such/folder.csv", "no folder no/such"),
        ("none.toml", "cannot read none.toml"),
    ],
)
def test_mistakes_in_flags_are_told_in_one_line(capsys, arguments, part):
    assert part in said(capsys, "run", *arguments.split())


def test_a_deployment_is_what_was_asked_for():
    values = from_flags(
        *("--prefill-workers", "3", "--decode-workers", "2", "--model", "qwen3-8b", "--machine", "H100"),
        *("--prefill-tp", "2", "--router", "kv-aware", "--credit", "0.5", "--temperature", "0.2", "--sync-ms", "-1"),
        *("--link-gbps", "25", "--nics", "2", "--handoff", "push", "--conditional", "256", "--lease", "3"),
    )
    built = deployment(Config.of(values), PACKAGE)
    assert (built.prefill.workers, built.prefill.gpus) == (3, 2)
    assert (built.pool.workers, built.pool.gpus) == (2, 1)
    assert built.prefill.kv_blocks > 2 * built.pool.kv_blocks  # weights are shared, memory is twice
    assert built.prefill.cost.cards == 2
    routing = built.routing
    assert (routing.policy, routing.decode_policy, routing.cost.credit) == ("kv-aware", "kv-aware", 0.5)
    assert (routing.temperature, routing.sync) == (0.2, None)
    assert (built.handoff, built.rule.tokens, built.rule.share) == ("push", 256, 0.7)
    assert (built.transport.bytes_per_s, built.transport.nics) == (25_000_000_000, 2)
    assert built.transport.bytes_per_token == 147_456  # of Qwen3 8B
    assert built.control.lease == 3_000_000_000


def test_the_memory_of_a_roofline_engine_is_what_weights_leave():
    pools = Config.of({"model": "qwen3-8b", "machine": "h100"}).pools
    weights = 2 * (36 * (2 * 4096 * 128 * (32 + 8) + 3 * 4096 * 12_288) + 151_936 * 4096)
    assert engine(PACKAGE, pools, 1).kv_blocks == int((0.9 * 80 * 2**30 - weights) // (147_456 * 64))


def test_a_step_time_model_comes_from_a_file(tmp_path):
    path = tmp_path / "fit.json"
    path.write_text('{"kind": "linear", "prefill": [1, 0.5, 0], "decode": [2, 0, 0.1], "kv_bytes": 1000, "tp": 2}')
    pools = Config.of({"step-time": str(path)}).pools
    found = engine(PACKAGE, pools, 2)
    shape = PACKAGE.module("cost").StepShape(10, 55, 3, 30, 4)
    assert found.cost.step_time(shape) == round((1 + 5 + 2 + 0.3) * 1e6)
    assert found.kv_bytes == 1000
    with pytest.raises(CourseError, match="was measured on 2 GPUs, not 1"):
        engine(PACKAGE, pools, 1)
    path.write_text('{"kind": "linear", "prefill": [1, 0.5]}')
    with pytest.raises(CourseError, match="is no step-time model"):
        engine(PACKAGE, pools, 1)


def test_faults_are_read_with_their_times_and_factors():
    config = Config.of(
        {"workers": 3, "fault": ("slow-nic:worker-2@1.5s+250ms*0.2", "partition@100ms", "crash@1min+2s")}
    )
    load = workload(config, PACKAGE)
    found = [(f.time, f.kind, f.worker, f.duration, f.factor) for f in faults(config, PACKAGE, load)]
    assert found == [
        (100_000_000, "partition", None, 10_000_000_000, 0.0),
        (1_500_000_000, "slow-nic", "worker-2", 250_000_000, 0.2),
        (60_000_000_000, "crash", None, 2_000_000_000, 0.0),
    ]


def test_faults_by_rate_repeat_with_the_seed_and_end_with_the_arrivals():
    def drawn(seed: int) -> list[int]:
        config = Config.of({"rate": 10.0, "requests": 1000, "seed": seed, "fault-rate": ("crash=0.5/s+5s",)})
        load = workload(config, PACKAGE)
        found = faults(config, PACKAGE, load)
        assert all(f.time <= load.arrivals[-1].time_ns for f in found)
        return [f.time for f in found]

    assert drawn(1) == drawn(1) != drawn(2)
    assert 25 <= len(drawn(1)) <= 80  # 50 are expected in 100 s


MOONCAKE = (
    '{"timestamp": 0, "input_length": 600, "output_length": 4, "hash_ids": [1, 2]}\n'
    '{"timestamp": 3000, "input_length": 500, "output_length": 3, "hash_ids": [1]}\n'
)
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,600,4\n2023-11-16 18:15:49.5,500,3\n"


@pytest.mark.parametrize(("name", "text"), [("t.jsonl", MOONCAKE), ("t.csv", AZURE), ("trace", MOONCAKE), ("t", AZURE)])
def test_traces_are_told_apart_and_sped_up(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    config = Config.of({"trace": str(path), "speed-up": 2.0})
    found = workload(config, PACKAGE).arrivals
    assert [(a.time_ns, a.input_length, a.output_length) for a in found] == [(0, 600, 4), (1_500_000_000, 500, 3)]
    assert len(workload(Config.of({"trace": str(path), "requests": 1}), PACKAGE).arrivals) == 1


def test_an_empty_trace_is_a_mistake(tmp_path, capsys):
    (tmp_path / "t.jsonl").write_text("\n")
    assert "t.jsonl" in said(capsys, "run", "--trace", str(tmp_path / "t.jsonl"))


@pytest.mark.parametrize(
    ("values", "count"),
    [({"concurrency": 3, "requests": 20, "think": 0.1}, 20), ({"sessions": 5, "turns": 3.0, "rate": 2.0}, 15)],
)
def test_users_who_wait_are_served_to_the_end(values, count):
    run = execute(Config.of(values), PACKAGE)
    assert len(run.records) == count
    assert all(record.complete for record in run.records.values())


def test_sweeps_win_over_files():
    base = {"workers": 4, "rate": 3.0}
    assert merged(base, {"prefill-workers": 1, "decode-workers": 2}, "a", "b") == {
        "rate": 3.0,
        "prefill-workers": 1,
        "decode-workers": 2,
    }


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            MOONCAKE.replace('"timestamp": 0', '"timestamp": 1e308'),
            "1e+308 ms: the limit is 1e+11, from 0 at the start",
        ),
        (AZURE.replace("2023", "9999", 1), "more than 1e+11 ms, the limit: cut it"),
    ],
)
def test_traces_that_never_end_are_a_mistake(tmp_path, capsys, text, part):
    path = tmp_path / "trace"
    path.write_text(text)
    assert part in said(capsys, "run", "--trace", str(path))
