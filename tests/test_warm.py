"""Runs forked from a process that has imported everything are like runs started afresh, whatever the code does."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from course import warm
from course.paths import SRC
from course.scratch import grade

if TYPE_CHECKING:
    from conftest import SmallCourse

TESTS = """
from course.case import case

@case(task=1)
class First:
    "first() is 1."
    def inputs(rng):
        return None
    def observe(solution, inputs):
        return solution.module("model.basics").first()
    def verify(inputs, got):
        assert got == 1, got
"""


def kinds(course: "SmallCourse", code: str) -> list[str]:
    package = course.package(basics=code)
    return [result.kind for result in grade(package, [course.tests(TESTS)], *course.options).results]


def test_two_versions_of_a_package_are_two_runs(small_course: "SmallCourse") -> None:
    assert kinds(small_course, "def first():\n    return 1\n") == ["passed"]
    assert kinds(small_course, "def first():\n    return 2\n") == ["failed"]
    assert kinds(small_course, "def first():\n    return 1\n") == ["passed"]


def test_a_thread_that_never_ends_does_not_hold_the_run(small_course: "SmallCourse") -> None:
    head = "import threading, time\n\ndef first():\n"
    code = head + "    threading.Thread(target=time.sleep, args=(300,)).start()\n    return 1\n"
    started = time.monotonic()
    assert kinds(small_course, code) == ["passed"]
    assert time.monotonic() - started < 60


def test_what_one_run_changes_in_its_process_is_not_seen_by_the_next(small_course: "SmallCourse") -> None:
    head = "import math, os\n\ndef first():\n"
    assert kinds(small_course, head + "    math.pi = 3\n    os.environ['SPOILT'] = '1'\n    return 1\n") == ["passed"]
    clean = head + "    return int('SPOILT' not in os.environ and math.pi != 3)\n"
    assert kinds(small_course, clean) == ["passed"]


def test_a_run_that_kills_its_parent_costs_only_itself(small_course: "SmallCourse") -> None:
    kills = "import os, signal\n\ndef first():\n    os.kill(os.getppid(), signal.SIGKILL)\n    return 1\n"
    if sys.platform == "linux":  # elsewhere the parent is this process
        with pytest.raises(warm.Closed):
            kinds(small_course, kills)
    assert kinds(small_course, "def first():\n    return 1\n") == ["passed"]


def test_another_environment_is_another_process(small_course: "SmallCourse", monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os\n\ndef first():\n    return int(os.environ.get('SEEN', '0'))\n"
    assert kinds(small_course, code) == ["failed"]
    monkeypatch.setenv("SEEN", "1")
    assert kinds(small_course, code) == ["passed"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every run is started afresh")
def test_the_process_ends_with_the_one_that_started_it(small_course: "SmallCourse", tmp_path: Path) -> None:
    tests = small_course.tests(TESTS)
    package = small_course.package(basics="def first():\n    return 1\n")
    program = f"""
from pathlib import Path
import course.warm as warm
from course.scratch import grade

print(len(grade(Path({str(package)!r}), [Path({str(tests)!r})], *{small_course.options!r}).results))
print(warm._local.server._process.pid)
"""
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    count, pid = map(int, out.stdout.split())
    assert count == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
