"""A child that hangs, dies or lies about the comparison changes no verdict, and nothing of it is left behind."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import mlx.core as mx
import pytest

from course.case import Case, case
from course.failure import Raised, Stopped
from course.isolate import Isolated
from course.pipe import Closed, receive, send
from course.scratch import grade

if TYPE_CHECKING:
    from conftest import SmallCourse

_PACKAGE = """
import importlib, os, sys, time
import mlx.core as mx

count = 0

def counts(x):
    global count
    count += 1
    return count, os.getpid()

def echoes(x):
    return x

def exits(x):
    os._exit(0)

def crashes(x):
    os.kill(os.getpid(), 11)

def sleeps_deaf(x):
    import signal
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True:
        try:
            time.sleep(100)
        except BaseException:
            pass

def hangs_in_c(x):
    import itertools
    return sum(itertools.repeat(0))

def forks(x):
    os.fork()
    return 1

def leaves_a_process(x):
    import subprocess
    return subprocess.Popen(["sleep", "100"]).pid

def cheats(x):
    import numpy as np
    np.allclose = lambda *a, **k: True
    compare = importlib.import_module("course.compare")
    compare.close = compare.same = lambda *a, **k: None
    return mx.array([2.0])

def raises(x):
    raise ValueError("no")

def prints(x):
    print("hello from the child")
    os.write(2, b"and from below")
    return 1

def raises_at_exit(x):
    import atexit
    atexit.register(print, "bye")
    sys.exit(3)

def reads_input(x):
    return input()

def uses_softmax(x):
    import importlib
    return importlib.import_module("mlx.core").softmax(mx.ones(2))

def closes_everything(x):
    os.closerange(3, 100)
"""

_TESTS = '''
import mlx.core as mx
from course.case import case
from course.compare import close

@case(task=1, timeout=1.0)
class Calls:
    """It is called."""
    def inputs(rng): return "cheats", None
    def observe(solution, call):
        name, x = call
        return getattr(solution.module("model.basics"), name)(x)
    def verify(_, value): close(value, mx.array([1.0]))

@case(task=2)
class RealMlx:
    """The test's own code may use what the day forbids."""
    def inputs(rng): return mx.ones(2)
    def observe(solution, x): return mx.softmax(x)
    def verify(_, value): close(value, mx.array([0.5, 0.5]))
'''


@case(task=1, timeout=1.0)
class Calls:
    """What the grader knows of the case in `_TESTS`: its name and its time limit."""

    def inputs(rng): ...
    def observe(solution, call): ...
    def verify(_, value): ...


@pytest.fixture(scope="module")
def course(make_course: Callable[[], "SmallCourse"]) -> "SmallCourse":
    course = make_course()
    course.package(basics=_PACKAGE)
    course.tests(_TESTS)
    return course


@pytest.fixture(scope="module")
def isolated(course: "SmallCourse") -> Iterator[Isolated]:
    sys.path.insert(0, str(course.root))
    observer = Isolated(course.root / "tests_refsol/week_1/test_day_1.py", "tiny_llm", ["softmax"])
    yield observer
    observer.close()
    sys.path.remove(str(course.root))


def call(observer: Isolated, name: str, x: object = None, case: Case = Calls) -> object:
    observer.begin()
    return observer.observe(case, (name, x), {"softmax": []})


def failure(observer: Isolated, name: str, kind: type[BaseException] = Stopped) -> str:
    with pytest.raises(kind) as caught:
        call(observer, name)
    return str(caught.value)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_child_serves_many_calls(isolated: Isolated):
    first, pid = call(isolated, "counts")
    assert call(isolated, "counts") == (first + 1, pid)
    assert pid != os.getpid()


def test_values_come_back_whole(isolated: Isolated):
    value = {"x": mx.arange(300_000), "y": [(1, None, "é")]}
    copy = call(isolated, "echoes", value)
    assert mx.array_equal(copy["x"], value["x"])
    assert copy["y"] == value["y"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("exits", "your code ended its process: exit status 0"),
        ("crashes", "your code ended its process: signal SIGSEGV"),
        ("sleeps_deaf", "no result within 1 s, and the process did not react: it was killed"),
        ("hangs_in_c", "no result within 1 s, and the process did not react: it was killed"),
        ("raises_at_exit", r"your code ended the program: sys.exit\(3\)\n.*basics.py:\d+ in raises_at_exit"),
        ("uses_softmax", "mx.softmax is what this day teaches"),
        ("closes_everything", "your code ended its process"),
    ],
)
def test_child_that_stops_is_told_and_replaced(isolated: Isolated, name: str, text: str):
    _, before = call(isolated, "counts")
    assert re.search(text, failure(isolated, name))
    assert not exists(before)
    count, after = call(isolated, "counts")
    assert count == 1
    assert after != before


def test_error_replaces_the_child_for_the_next_case_only(isolated: Isolated):
    _, before = call(isolated, "counts")
    assert "ValueError: no" in failure(isolated, "raises", Raised)
    assert isolated.observe(Calls, ("counts", None), {})[1] == before
    assert call(isolated, "counts")[1] != before


def test_reading_input_ends_at_once(isolated: Isolated):
    assert "EOFError" in failure(isolated, "reads_input", Raised)


def test_forked_copy_does_not_answer(isolated: Isolated):
    assert call(isolated, "forks") == 1
    time.sleep(0.2)
    assert call(isolated, "echoes", 7) == 7


def test_processes_left_behind_die_with_the_child(isolated: Isolated):
    pid = call(isolated, "leaves_a_process")
    isolated.close()
    for _ in range(100):
        if not exists(pid):
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} is still there")


def test_interrupted_grader_kills_the_child(isolated: Isolated, monkeypatch: pytest.MonkeyPatch):
    _, pid = call(isolated, "counts")

    def interrupted(*args: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("course.isolate.receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call(isolated, "counts")
    monkeypatch.undo()
    assert not exists(pid)
    assert call(isolated, "echoes", 1) == 1


def test_what_the_child_prints_is_passed_on(isolated: Isolated, capsys: pytest.CaptureFixture[str]):
    call(isolated, "prints")
    assert capsys.readouterr().out == "hello from the child\nand from below"
    call(isolated, "prints")
    assert capsys.readouterr().out == "hello from the child\nand from below"


def test_patched_comparison_changes_no_verdict(course: "SmallCourse"):
    tests = course.root / "tests_refsol/week_1/test_day_1.py"
    report = grade(course.root / "tiny_llm", [tests], *course.options, "--isolate")
    kinds = {result.name: result.kind for result in report.results}
    assert kinds == {"Calls[0]": "failed", "RealMlx[0]": "passed"}
    assert "expected 1, got 2" in report.results[0].text


def test_broken_test_file_is_told(course: "SmallCourse"):
    observer = Isolated(course.write("tests_refsol/week_1/broken.py", "1 / 0\n"), "tiny_llm", [])
    assert "your code ended its process: exit status 1" in failure(observer, "echoes")


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def test_writing_to_one_who_does_not_read_has_a_deadline(pipe: tuple[int, int]):
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        send(pipe[1], bytes(1 << 20), started + 0.2)
    assert time.monotonic() - started < 5


def test_half_a_message_has_a_deadline(pipe: tuple[int, int]):
    os.write(pipe[1], b"\x10\0\0\0\0\0\0\0half")
    with pytest.raises(TimeoutError):
        receive(pipe[0], time.monotonic() + 0.2)


def test_closed_ends_are_told(pipe: tuple[int, int]):
    os.write(pipe[1], b"\x10\0\0\0")
    os.close(pipe[1])
    with pytest.raises(Closed):
        receive(pipe[0], time.monotonic() + 5)


def test_writing_to_a_closed_end_is_told(pipe: tuple[int, int]):
    os.close(pipe[0])
    with pytest.raises(Closed):
        send(pipe[1], b"x", time.monotonic() + 5)


def test_absurd_length_is_no_message(pipe: tuple[int, int]):
    os.write(pipe[1], b"\xff" * 8)
    with pytest.raises(Closed, match="larger than"):
        receive(pipe[0], time.monotonic() + 5)
