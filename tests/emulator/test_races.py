"""The race detector's short memory against one that forgets nothing."""

import subprocess
from pathlib import Path

import pytest

from course.emulator.compiler import compiler
from course.emulator.runtime import FOLDER


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("races") / "oracle"
    source = Path(__file__).with_name("race_oracle.cpp")
    command = [compiler(), "-std=c++20", "-O1", "-I", str(FOLDER / "native"), str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=120)
    return program


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_cell_finds_the_race_that_the_whole_history_shows(oracle: Path, seed: int):
    done = subprocess.run([oracle, str(seed)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    races, silent = map(int, done.stdout.split())
    assert min(races, silent) > 20_000, "the histories are all alike"
