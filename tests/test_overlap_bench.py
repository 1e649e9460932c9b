"""The bench of both loops, on the embedded model, with few tokens."""

import json
import subprocess
import sys

import pytest

from course.build import ensure_built
from course.paths import EXTENSION, REFERENCE, extension_folder


@pytest.fixture(scope="module")
def extension() -> None:
    """Compiled beforehand: a bench has a time limit, a compiler has not."""
    ensure_built(extension_folder(REFERENCE), REFERENCE, EXTENSION)


def test_both_loops_are_measured_in_turns(extension, tmp_path):
    file = tmp_path / "overlap.json"
    small = ("--concurrency", "1", "3", "--tokens", "6", "--rounds", "2")
    command = [sys.executable, "-m", "course", "bench", "overlap", *small, "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert [row["requests"] for row in rows] == [1, 3]
    for row in rows:
        assert row["normal"]["median"] > 0
        assert row["overlap"]["median"] > 0
        assert 0 < row["host"] < 1
        assert row["ratio"]["min"] <= row["ratio"]["median"] <= row["ratio"]["max"]
    assert len([line for line in done.stdout.splitlines() if "%" in line]) == 2
