"""A secret seed changes what is graded, and stays with the grader."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from course.boundary import Boundary, problem
from course.paths import ROOT, SRC

if TYPE_CHECKING:
    from conftest import SmallCourse

_ATTACKS = Path(__file__).with_name("boundary_attacks.py")
_SECRET = "83726450918273645"
_MODES = [
    mode
    for mode in os.environ.get("BOUNDARY_MODES", "namespaces,limits").split(",")
    if problem(mode) is None and not (mode == "limits" and os.geteuid() == 0)  # root may look into everything
]
_TESTS = '''
import numpy as np
from course.case import case

@case(task=1)
class Draws:
    """Inputs are drawn."""
    def inputs(rng): return int(rng.integers(1 << 40))
    def observe(solution, x): return solution.module("model.basics").echo(x)
    def verify(x, value): raise AssertionError(f"drew {x} and saw {value}")

@case(task=2, timeout=20.0)
class Hunts:
    """Nothing is found."""
    def inputs(rng): return PLACES
    def observe(solution, x): return solution.module("model.basics").hunts(x)
    def verify(x, found):
        if found: raise AssertionError(f"found: {found}")
'''


@dataclass
class Grader:
    """A graded run of its own, with the seed in a pipe, in a file that is closed to others, and in its environment."""

    course: "SmallCourse"
    secret: Path

    def run(self, mode: str, seed: str = _SECRET) -> tuple[int, dict[str, dict[str, object]]]:
        boundary, events = self.secret.parent / f"{mode}.json", self.secret.parent / "events.jsonl"
        Boundary(str(self.course.root), mode).write(boundary)
        places = {"mark": str(boundary), "files": [str(self.secret)], "backwards": seed[::-1]}
        self.course.tests(_TESTS.replace("PLACES", repr(places)))
        read, write = os.pipe()
        os.write(write, seed.encode())
        os.close(write)
        tests = str(self.course.root / "tests_refsol/week_1/test_day_1.py")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-qq",
            "-c",
            str(ROOT / "pyproject.toml"),
            tests,
            "-p",
            "no:cacheprovider",
        ]
        command += [*self.course.options, "--boundary", str(boundary), "--seed-fd", str(read), "--events", str(events)]
        done = subprocess.run(
            [*command, "--basetemp", str(self.secret.parent / "pytest")],
            env=os.environ | {"PYTHONPATH": str(SRC), "COURSE_SECRET": seed},
            pass_fds=(read,),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        os.close(read)
        told = [json.loads(line) for line in events.read_text().splitlines()] if events.exists() else []
        results = {event["result"]["name"]: event["result"] for event in told if "result" in event}
        return done.returncode, results


@pytest.fixture(scope="module")
def grader(make_course: Callable[[], "SmallCourse"], tmp_path_factory: pytest.TempPathFactory) -> Grader:
    course = make_course()
    course.package(basics=_ATTACKS.read_text())
    for folder in (course.root, tmp_path_factory.getbasetemp()):
        folder.chmod(0o755)
    secret = tmp_path_factory.mktemp("secret") / "seeds.txt"
    secret.write_text(_SECRET)
    secret.chmod(0o600)
    return Grader(course, secret)


@pytest.mark.parametrize("mode", _MODES)
def test_seed_is_used_and_not_to_be_found(grader: Grader, mode: str):
    status, results = grader.run(mode)
    assert status == 1
    # A user's own files are open to processes of that user: `limits` does not promise that they are not read.
    if mode != "limits":
        assert results["Hunts[0]"]["kind"] == "passed", results["Hunts[0]"]["text"]
    else:
        assert f"found: ['{grader.secret}']" in results["Hunts[0]"]["text"]
    assert results["Draws[0]"]["kind"] == "failed"
    other = grader.run(mode, "7")[1]
    assert other["Draws[0]"]["text"] != results["Draws[0]"]["text"]
    assert grader.run(mode)[1]["Draws[0]"]["text"] == results["Draws[0]"]["text"]


@pytest.mark.parametrize("seed", ["", "-1", "seven", "9" * 300])
def test_what_is_no_seed_is_refused(grader: Grader, seed: str):
    mode = _MODES[0] if _MODES else "limits"
    assert grader.run(mode, seed)[0] == 4
