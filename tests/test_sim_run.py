"""What a simulated run leaves: its report, its files, its page. Equal seeds give equal bytes."""

import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from course.book import browser
from course.cli import main
from course.sim.config import Config
from course.sim.csv_file import COLUMNS
from course.sim.execute import execute
from course.sim.intervals import within
from course.sim.package import Package
from course.sim.perfetto import lanes
from course.sim.report import last_moment, mean_gpus, report, utilisation, window_of

PACKAGE = Package("tiny_llm_ref")
SMALL = ("--requests", "60", "--rate", "12", "--output-mean", "20", "--seed", "3")
SPLIT = ("--prefill-workers", "2", "--decode-workers", "1", "--slo-ttft-ms", "60")
FAULTS = ("--workers", "2", "--fault", "crash:worker-1@2s+1s", "--telemetry", "0.5")


@pytest.fixture(scope="module")
def left(tmp_path_factory) -> Path:
    """All files of a run of two pools."""
    folder = tmp_path_factory.mktemp("run")
    return run_into(folder, *SPLIT)


def run_into(folder: Path, *arguments: str) -> Path:
    files = ("--csv", "a.csv", "--json", "a.json", "--perfetto", "a.trace", "--html", "a.html")
    flags = [str(folder / each) if "." in each else each for each in files]
    assert main(["sim", "run", *SMALL, *arguments, *flags, "--plots", str(folder / "plots")]) == 0
    return folder


def test_equal_seeds_give_equal_bytes(left, tmp_path, capsys):
    again = run_into(tmp_path, *SPLIT)
    for path in sorted(left.rglob("*.*")):
        assert (again / path.relative_to(left)).read_bytes() == path.read_bytes(), path.name


def test_the_summary_names_window_and_definitions(capsys):
    assert main(["sim", "run", *SMALL, *SPLIT, "--warm-up", "1"]) == 0
    out, err = capsys.readouterr()
    for part in ("window: steady state", "Mean TTFT (ms)", "Token-weighted", "Goodput per GPU", "prefill: 2 workers"):
        assert part in out
    assert "simulated seconds" in err
    assert "simulated seconds" not in out  # how long it took is not part of the result


def test_the_report_holds_what_the_records_say(left):
    numbers = json.loads((left / "a.json").read_text())
    rows = list(csv.DictReader((left / "a.csv").open()))
    assert list(rows[0]) == list(COLUMNS)
    assert len(rows) == numbers["requests"]["arrived"] == numbers["requests"]["complete"] == 60
    assert np.mean([float(row["ttft_ms"]) for row in rows]) == pytest.approx(numbers["ttft_ms"]["mean"])
    assert np.mean([float(row["tpot_ms"]) for row in rows]) == pytest.approx(numbers["tpot_ms"]["mean"])
    assert np.quantile([float(row["e2e_ms"]) for row in rows], 0.99) == pytest.approx(numbers["e2e_ms"]["p99"])
    met = np.mean([float(row["ttft_ms"]) <= 60 for row in rows])
    assert numbers["goodput"]["attainment"] == met == np.mean([row["slo_met"] == "1" for row in rows])
    ends = [float(row["done_ms"]) for row in rows]
    seconds = (max(ends) - min(float(row["arrival_ms"]) for row in rows)) / 1e3
    assert numbers["window"]["seconds"] == pytest.approx(seconds)
    assert numbers["throughput"]["requests_per_s"] == pytest.approx(60 / seconds)
    assert numbers["throughput"]["output_tokens_per_s"] == pytest.approx(60 * 20 / seconds)
    assert numbers["throughput"]["mean_gpus"] == pytest.approx(3)
    assert numbers["transfers"]["done"] == 60
    stamps = [name for name in COLUMNS if name.endswith("_ms")][:7]
    for row in rows:
        times = [float(row[name]) for name in stamps]
        assert times == sorted(times)


def test_pools_are_weighed_by_the_time_their_workers_were_there():
    config = Config.of({"requests": 60, "rate": 12.0, "workers": 2, "fault": ("crash:worker-1@2s",)})
    run = execute(config, PACKAGE)
    span = window_of(config, PACKAGE, list(run.records.values()))
    one, other = run.workers.values()
    there = (span.end - span.start) + (2_000_000_000 - span.start)
    busy = one.busy.within(span) + other.busy.within(span)
    assert utilisation([one, other], span, run.end) == pytest.approx(busy / there)
    assert mean_gpus([one, other], span, run.end) == pytest.approx(there / (span.end - span.start))
    assert report(config, PACKAGE, run)["requests"]["migrated"] > 0


@pytest.mark.parametrize("planner", ["throughput", "classic+load", "thresholds"])
def test_planners_scale_within_their_budget(planner):
    goals = {"slo-ttft-ms": 300.0, "slo-tpot-ms": 30.0, "planner": planner, "max-gpus": 4, "start-time": 1.0}
    load = {"rate": 60.0, "requests": 900, "output-mean": 10.0, "telemetry": 1.0, "scale-interval": 3.0}
    run = execute(Config.of({"prefill-workers": 1, "decode-workers": 1, **goals, **load}), PACKAGE)
    assert len([one for one in run.workers.values() if one.pool == "prefill"]) > 1
    for at in {note.time for note in run.notes if note.kind == "ready"}:
        there = [one for one in run.workers.values() if one.started <= at and (one.stopped or run.end) > at]
        assert sum(one.gpus for one in there) <= 4


def test_a_run_ends_with_its_last_request():
    run = execute(Config.of({"requests": 5, "prefill-workers": 1, "decode-workers": 1}), PACKAGE)
    assert last_moment(run) == max(record.done for record in run.records.values())


def test_the_trace_has_tracks_and_arrows_between_them(left):
    events = json.loads((left / "a.trace").read_text())
    kinds = Counter(event["ph"] for event in events)
    assert kinds["s"] == kinds["t"] == kinds["f"] == 60
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    pools = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {"prefill", "decode", "links"} <= set(pools.values())
    slices = [e for e in events if e["ph"] == "X"]
    for number in range(1, 61):
        start, step, end = (next(e for e in events if e["ph"] == ph and e["id"] == number) for ph in "stf")
        assert start["ts"] <= step["ts"] <= end["ts"]
        where = [names[each["pid"], each["tid"]].split("-")[0] for each in (start, step, end)]
        assert where == ["prefill", "prefill", "decode"]  # lanes of links are called after the sender
        for each in (start, step, end):
            mine = [e for e in slices if (e["pid"], e["tid"]) == (each["pid"], each["tid"])]
            assert any(e["ts"] - 0.001 <= each["ts"] <= e["ts"] + e["dur"] + 0.001 for e in mine)
    counters = {event["name"] for event in events if event["ph"] == "C"}
    assert {"decode-0 KV blocks", "decode-0 queue", "prefill-1 queue"} <= counters


def test_transfers_of_a_lane_do_not_overlap():
    moved = PACKAGE.module("run").Moved
    times = [(0, 10), (5, 7), (7, 9), (10, 12), (11, 12)]
    found = lanes([moved(i, "prefill-0", "decode-0", start, end, 1, "done") for i, (start, end) in enumerate(times)])
    assert [lane for lane, _ in found] == [f"prefill-0 {n}" for n in (1, 2, 2, 1, 2)]


def test_intervals_cover_bins_exactly():
    covered = within([0, 10, 25], [5, 20, 26], np.array([0.0, 4.0, 12.0, 30.0]))
    assert covered.tolist() == [4.0, 3.0, 9.0]
    assert within([], [], np.array([0.0, 1.0])).tolist() == [0.0]


def test_the_page_needs_no_network(left):
    page = (left / "a.html").read_text()
    assert not re.search(r"https?://|src=|<link|@import|url\(|fetch\(|<!--", page)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    assert [worker["name"] for worker in data["workers"]] == ["prefill-0", "prefill-1", "decode-0"]
    assert sum(sum(worker["misses"]) + sum(worker["hits"]) for worker in data["workers"]) == 120
    assert {cdf["name"] for cdf in data["cdfs"]} == {"TTFT", "TPOT", "E2E"}
    assert "prefill-workers = 2" in page


def test_the_page_shows_idle_workers_and_says_how_many_it_leaves_out(tmp_path, capsys):
    file = tmp_path / "a.html"
    assert main(["sim", "run", "--requests", "3", "--workers", "70", "--html", str(file)]) == 0
    assert "Shown are the first 64 of 70 workers." in file.read_text()


@pytest.mark.skipif(not browser.available(), reason="needs chromium and chromedriver")
def test_the_page_draws_at_any_width_and_in_both_themes(tmp_path, capsys):
    run_into(tmp_path, *FAULTS)
    with browser.browser() as window:
        for width in (390, 1280):
            window.resize(width, 900)
            window.open((tmp_path / "a.html").as_uri())
            assert window.run("return document.documentElement.scrollWidth") <= width
            assert window.run("return document.querySelectorAll('svg').length") == 8
            assert window.run("return document.querySelectorAll('#timeline .row').length") == 3
            assert window.run("return document.querySelectorAll('#kv .mark').length") >= 2
        assert window.errors() == []


def test_plots_are_pictures(left):
    assert sorted(path.name for path in (left / "plots").iterdir()) == ["latency.svg", "workers.svg"]
    assert "</svg>" in (left / "plots" / "latency.svg").read_text()


def test_a_reader_that_leaves_is_no_mistake(tmp_path):
    file = tmp_path / "a.json"
    command = [sys.executable, "-m", "course", "sim", "run", *SMALL, "--json", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as done:
        done.stdout.close()
        assert "Traceback" not in done.stderr.read()
        assert done.wait(60) == 141
    assert json.loads(file.read_text())["requests"]["complete"] == 60  # files come first


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_under_the_table_is_told_in_one_line():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "course", "sim", "run", *SMALL]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: No space left on device: the output"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("flag", ["--csv", "--json", "--perfetto", "--html"])
def test_a_full_disk_is_told_in_one_line(flag, capsys):
    assert main(["sim", "run", "--requests", "40", flag, "/dev/full"]) == 2
    message = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(message) == 1
    assert "cannot write /dev/full" in message[0]


def test_help_is_quick_and_light():
    code = "import sys; from course.cli import main\ntry: main(['sim', 'run', '--help'])\nexcept SystemExit: pass\n"
    heavy = "print(*(name for name in ('numpy', 'rich', 'mlx', 'matplotlib') if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code + heavy], capture_output=True, text=True, timeout=60, check=True)
    assert "--prefill-workers" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize("command", [("run",), ("sweep", "--sweep", "rate=1,2", "--jobs", "2"), ("goodput",)])
def test_a_package_without_a_cluster_is_told_in_one_line(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tiny_llm.cluster", None)
    assert main(["sim", *command, "--solution", "tiny_llm", "--requests", "3", "--slo-ttft-ms", "9"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert "Traceback" not in err
