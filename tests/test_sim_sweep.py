"""Many runs: the same results wherever they run, and the highest rate that meets the objectives."""

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from course.cli import main
from course.errors import CourseError
from course.sim.goodput import Search
from course.sim.sweep import axis, points

BASE = ("--requests", "40", "--output-mean", "10", "--slo-ttft-ms", "80")
GRID = ("--sweep", "rate=4,16", "--sweep", "prefill-workers+decode-workers=1+2,2+1")


def test_points_are_all_combinations():
    found = points({"workers": 3, "seed": 7}, ["rate=4,8", "prefill-workers+decode-workers=1+2,2+1"], "tiny_llm_ref")
    assert [str(point) for point in found] == [
        "rate 4, prefill-workers 1, decode-workers 2",
        "rate 4, prefill-workers 2, decode-workers 1",
        "rate 8, prefill-workers 1, decode-workers 2",
        "rate 8, prefill-workers 2, decode-workers 1",
    ]
    assert found[0].chosen == {"seed": 7, "rate": 4.0, "prefill-workers": 1, "decode-workers": 2}


@pytest.mark.parametrize(
    ("sweep", "part"),
    [
        ("rate", "is not OPTION=VALUE"),
        ("rate=", "is not OPTION=VALUE"),
        ("rat=1", "no option 'rat'"),
        ("rate=1,x", "--sweep rate: 'x' is not a number above 0"),
        ("workers+rate=1", "'1' is 1 values for 2 options"),
    ],
)
def test_mistakes_in_a_sweep(sweep, part):
    with pytest.raises(CourseError) as error:
        axis(sweep)
    assert part in str(error.value)


def test_two_processes_give_what_one_gives(tmp_path, capsys):
    texts = []
    for jobs in ("1", "2"):
        files = ("--json", str(tmp_path / f"{jobs}.json"), "--csv", str(tmp_path / f"{jobs}.csv"))
        assert main(["sim", "sweep", *BASE, *GRID, "--jobs", jobs, *files, "--plots", str(tmp_path / jobs)]) == 0
        texts.append((capsys.readouterr().out, *(path.read_bytes() for path in sorted(tmp_path.rglob(f"{jobs}*.*")))))
    assert texts[0] == texts[1]
    rows = list(csv.DictReader((tmp_path / "2.csv").open()))
    assert [(row["rate"], row["prefill-workers"]) for row in rows] == [("4", "1"), ("4", "2"), ("16", "1"), ("16", "2")]
    reports = json.loads((tmp_path / "2.json").read_text())
    assert float(rows[2]["ttft_ms.mean"]) == reports[2]["report"]["ttft_ms"]["mean"]
    assert sorted(path.name for path in (tmp_path / "2").iterdir()) == [
        "attainment.svg",
        "cost-of-speed.svg",
        "ratio.svg",
    ]


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
@pytest.mark.timeout(300)  # Ray takes 8 s to start, and much longer on a busy machine
def test_ray_gives_what_one_process_gives(tmp_path):
    files = [tmp_path / "here.json", tmp_path / "ray.json"]
    for where, file in zip((("--jobs", "1"), ("--ray", "local")), files, strict=True):
        command = [sys.executable, "-m", "course", "sim", "sweep", *BASE, "--sweep", "rate=4,16", *where]
        done = subprocess.run([*command, "--json", str(file)], capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stderr
    assert files[0].read_bytes() == files[1].read_bytes()


def test_without_ray_the_message_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["sim", "sweep", "--sweep", "rate=4,8", "--ray", "local"]) == 2
    assert capsys.readouterr().err == ("error: ray is not installed: run `pdm install -G ray`, or leave --ray out\n")


def test_a_point_that_cannot_run_is_named(capsys):
    assert main(["sim", "sweep", *BASE, "--sweep", "block-size=64,48", "--jobs", "2"]) == 2
    assert capsys.readouterr().err.startswith("error: block-size 48: block-size 48 does not divide the 512 tokens")


def nobody_left(group: int) -> bool:
    """Whether all processes of a group end within 10 s."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.timeout(60)
def test_ctrl_c_ends_a_sweep_and_its_processes():
    command = [sys.executable, "-m", "course", "sim", "sweep", "--sweep", "seed=1,2,3,4", "--jobs", "2"]
    slow = ["--requests", "300000", "--rate", "8"]
    done = subprocess.Popen([*command, *slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(1.5)
    os.killpg(done.pid, signal.SIGINT)
    out, err = done.communicate(timeout=30)
    assert done.returncode == 130
    assert (out, err) == (b"", b"")
    assert nobody_left(done.pid)


def step_search(limit: float) -> Search:
    return Search(lambda rate: {"goodput": {"attainment": 1.0 if rate <= limit else 0.5}})


@pytest.mark.parametrize("limit", [0.7, 3.0, 100.0])
def test_a_search_begins_between_a_rate_that_is_fine_and_one_that_is_not(limit):
    search = step_search(limit)
    low, high = search.bracket(8.0, 0.9)
    assert low <= limit < high == 2 * low
    assert len(search.reports) < 10


def test_a_search_without_end_says_so():
    with pytest.raises(CourseError, match="give more --requests"):
        step_search(1e12).bracket(8.0, 0.9)
    with pytest.raises(CourseError, match="relax the SLOs"):
        step_search(0.0).bracket(8.0, 0.9)


def test_goodput_is_the_highest_rate_that_meets_the_objectives(tmp_path, capsys):
    flags = ("--requests", "150", "--output-mean", "20", "--slo-ttft-ms", "100", "--tolerance", "0.05")
    file = tmp_path / "g.json"
    assert main(["sim", "goodput", *flags, "--json", str(file), "--plots", str(tmp_path / "p")]) == 0
    found = json.loads(file.read_text())
    met = {run["rate"]: run["report"]["goodput"]["attainment"] for run in found["runs"]}
    assert met[found["rate"]] >= 0.9
    assert min(rate for rate, share in met.items() if share < 0.9) <= 1.06 * found["rate"]
    assert f"goodput: {found['rate']:.3f} requests/s" in capsys.readouterr().out
    assert (tmp_path / "p" / "attainment.svg").is_file()


def test_goodput_of_a_trace_is_searched_by_its_speed(tmp_path, capsys):
    trace = tmp_path / "t.jsonl"
    line = '{{"timestamp": {}, "input_length": 500, "output_length": 5, "hash_ids": [{}]}}\n'
    trace.write_text("".join(line.format(250 * i, i) for i in range(60)))
    flags = ("--trace", str(trace), "--slo-ttft-ms", "100", "--low", "2", "--high", "100", "--tolerance", "0.1")
    assert main(["sim", "goodput", *flags, "--json", str(tmp_path / "g.json")]) == 0
    found = json.loads((tmp_path / "g.json").read_text())
    assert found["runs"][0]["report"]["config"]["load"]["speed_up"] == 0.5  # 4 requests/s as recorded
    assert 2 < found["rate"] < 100


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        ("", "goodput needs an objective"),
        ("--slo-ttft-ms 10 --concurrency 4", "leave --concurrency out"),
        ("--slo-ttft-ms 10 --low 4", "give both or none"),
        ("--slo-ttft-ms 10 --low 4 --high 3", "give both or none"),
    ],
)
def test_mistakes_in_a_search(capsys, flags, part):
    assert main(["sim", "goodput", *flags.split()]) == 2
    assert part in capsys.readouterr().err
