"""The benchmark of the simulator runs, says what it measured, and can be drawn."""

import json
from pathlib import Path

import pytest

from course.cli import main


def test_small_deployments_are_measured_and_drawn(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out, plot = tmp_path / "out.json", tmp_path / "plot.svg"
    options = ["--only", "growth", "--largest", "2", "--json", str(out), "--plot", str(plot)]
    assert main(["bench", "simulate", *options]) == 0
    (row,) = json.loads(out.read_text())["growth"]
    assert row["requests"] == 2000
    assert row["events"] < row["steps"]
    assert 0 < row["gib"] < 8
    assert "<svg" in plot.read_text()
    assert "2,000 requests" in capfd.readouterr().out


def test_a_missing_trace_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "simulate", "--trace", "nowhere.jsonl"]) == 2
    assert "no trace nowhere.jsonl" in capfd.readouterr().err
