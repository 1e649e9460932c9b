"""`pdm run doctor` as a whole: on this machine, and where packages, compiler, home and cache are missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course import cli
from course.doctor import report
from course.doctor.diagnosis import Checked, Diagnosis, WeekVerdict
from course.paths import ROOT

BROKEN = 'raise ImportError("boom")\n'


def doctor(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "course", "doctor", *options]
    chosen = os.environ | {"PYTHONPATH": str(ROOT / "src"), **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=chosen, cwd=ROOT)


def test_all_weeks_can_be_done_here() -> None:
    done = doctor("--json")
    told = json.loads(done.stdout)
    assert done.stderr == ""
    assert told.keys() == {"checks", "weeks", "problem", "possible"}
    assert done.returncode == 0, [check for check in told["checks"] if check["state"] == "fail"]
    assert told["possible"]
    fields = {"name", "title", "state", "found", "fix", "fixes", "stops", "days"}
    assert all(check.keys() == fields for check in told["checks"])
    assert all(week.keys() == {"week", "title", "days", "possible", "stopped", "by"} for week in told["weeks"])
    assert len(told["weeks"]) == len(list((ROOT / "curriculum").glob("week*.toml")))


def test_without_a_working_mlx_a_compiler_a_home_and_a_cache(tmp_path: Path) -> None:
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "__init__.py").write_text(BROKEN)
    path = os.pathsep.join([str(ROOT / "src"), str(tmp_path)])
    where = {"PATH": "/nonexistent", "XDG_CACHE_HOME": "/proc/nowhere", "HOME": "", "PYTHONPATH": path, "NO_COLOR": "1"}
    done = doctor("--json", "--week", "1", **where, CXX="")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert done.stderr == ""
    states = {check["name"]: check["state"] for check in told["checks"]}
    assert [states[name] for name in ("mlx", "compiler", "folders", "git")] == ["fail", "fail", "warn", "warn"]
    assert [week["week"] for week in told["weeks"]] == [1]
    assert told["weeks"][0]["by"] == ["mlx"]


def test_without_msgspec_and_rich(tmp_path: Path) -> None:
    for name in ("msgspec", "rich"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(BROKEN)
    done = doctor(PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(tmp_path)]))
    assert done.returncode == 1
    assert done.stderr == ""
    said = " ".join(done.stdout.split())
    assert "broken: msgspec (ImportError: boom), rich (ImportError: boom) fix " in said
    assert "no week can be judged" in said
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_week_that_does_not_exist(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"weeks": [{"week": 2, "title": "T", "days": []}]}
    monkeypatch.setattr("course.doctor.diagnosis.ask", lambda name, seconds, full=False: answer)
    assert cli.main(["doctor", "--week", "77"]) == 2
    assert capsys.readouterr().err == "error: week 77 does not exist: choose from 2\n"


def test_the_report_says_which_days_and_why() -> None:
    long = "a finding of many words that does not fit into one line of a terminal of eighty columns at all"
    bad = Checked("compiler", "C++ compiler", "fail", long, "apt install g++", {}, ("library",), ("2.4", "2.5"))
    weeks = (
        WeekVerdict(1, "Text", 7, True, (), ()),
        WeekVerdict(2, "Kernels", 7, False, ("2.4", "2.5"), ("compiler",)),
        WeekVerdict(3, "Engine", 1, False, ("3.1",), ("compiler",)),
    )
    shown = ["{:6}{}".format(*report.wrapped(line, 80)) for line in report.lines(Diagnosis((bad,), weeks))]
    text = "\n".join(shown)
    assert "ready Week 1: Text" in text
    assert "stop  Week 2: Kernels: not day 4, 5, because of: C++ compiler" in text
    assert "stop  Week 3: Engine: no day, because of: C++ compiler" in text
    assert "fix  apt install g++" in text
    assert max(map(len, text.splitlines())) <= 80
