"""A class graded by the real grader: the points are those of the work, and the mistakes those that were made."""

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from course.curriculum import Task, load
from course.grading.grade import read
from course.paths import ROOT
from course.work.checkpoint import render_checkpoint

WEEK, DAY = 1, 1


def _submit(folder: Path, done: Callable[[Task], bool], old: str = "", new: str = "") -> None:
    for name, content in render_checkpoint(load(), done).items():
        if name.startswith("model/"):
            text = content.decode()
            assert text.count(old) == 1 or not old or not name.endswith("basics.py")
            path = folder / "src" / "tiny_llm" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(old, new) if old else text, encoding="utf-8")


def _class(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "course", "class", root / "submissions", "--output", root / "out"]
    asked = [*command, "--week", str(WEEK), "--day", str(DAY), *options]
    return subprocess.run(list(map(str, asked)), cwd=ROOT, capture_output=True, text=True, timeout=280)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("a class")
    _submit(root / "submissions" / "Jörg Müller", lambda task: True)
    _submit(root / "submissions" / "eve", lambda task: True, " - mx.max(scores, axis=axis, keepdims=True)", "")
    _submit(root / "submissions" / "starter", lambda task: False)
    done = _class(root)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_points_are_those_of_the_work(graded: Path) -> None:
    points = {task.number: task.points for task in load().day(WEEK, DAY).tasks}
    rows = {row["name"]: row for row in _rows(graded / "out" / "class.csv")}
    assert {name: row["ended"] for name, row in rows.items()} == dict.fromkeys(rows, "graded")
    assert float(rows["Jörg Müller"]["final"]) == sum(points.values())
    assert float(rows["starter"]["final"]) == 0
    assert rows["eve"]["1.1.1"] == "0.0"
    assert 0 < float(rows["eve"]["final"]) < sum(points.values())
    for name, row in rows.items():
        assert read(graded / "out" / "students" / name).points == float(row["points"])


def test_the_mistake_that_was_made_is_named(graded: Path) -> None:
    mistakes = [row for row in _rows(graded / "out" / "mistakes.csv") if row["key"] == "1.1.1"]
    assert [row["students"] for row in mistakes if "the maximum was not subtracted" in row["mistake"]] == ["1"]
    assert (graded / "out" / "plots" / "mistakes.svg").exists()
