"""Whatever code of a submission does, its case ends with the right verdict, and the next case runs as ever.

Runs in the modes that work here; BOUNDARY_MODES names others (see test_boundary_users)."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from course.boundary import MODES, Boundary, Limits, problem
from course.boundary.sandboxed import Sandboxed
from course.case import case
from course.failure import Raised, Stopped
from course.paths import REFERENCE, ROOT

if TYPE_CHECKING:
    from conftest import SmallCourse

_ATTACKS = Path(__file__).with_name("boundary_attacks.py")
_LIMITS = Limits(memory_mb=600, processes=60, scratch_mb=48, file_mb=16, message_mb=16, printed_kb=64)
_TESTS = '''
from course.case import case

@case(task=1, timeout=10.0)
class Calls:
    """It is called."""
    def inputs(rng): ...
    def observe(solution, call):
        name, x = call
        return getattr(solution.module("model.basics"), name)(x)
    def verify(_, value): ...
'''


@case(task=1, timeout=10.0)
class Calls:
    """What the grader knows of the case in `_TESTS`: its name and its time limit."""

    def inputs(rng): ...
    def observe(solution, call): ...
    def verify(_, value): ...


def _modes() -> list[str]:
    wanted = os.environ.get("BOUNDARY_MODES", "namespaces,limits").split(",")
    return [mode for mode in wanted if problem(mode) is None]


@dataclass
class Attacked:
    """An observer in one mode, and what its grader has."""

    mode: str
    observer: Sandboxed
    course: "SmallCourse"

    def call(self, name: str, x: object = None, timeout: float = 10.0) -> object:
        self.observer.begin()
        return self.observer.observe(replace(Calls, timeout=timeout), (name, x), {"softmax": []})

    def fails(
        self,
        name: str,
        x: object = None,
        kind: type[BaseException] | tuple[type[BaseException], ...] = (Stopped, Raised),
        timeout: float = 10.0,
    ) -> str:
        with pytest.raises(kind) as caught:
            self.call(name, x, timeout)
        return str(caught.value)

    def promises(self, modes: str) -> bool:
        return self.mode in modes.split()


@pytest.fixture(scope="module")
def course(make_course: Callable[[], "SmallCourse"], tmp_path_factory: pytest.TempPathFactory) -> "SmallCourse":
    course = make_course()
    course.package(basics=_ATTACKS.read_text())
    course.tests(_TESTS)
    for folder in (course.root, tmp_path_factory.getbasetemp()):  # pytest makes them for its own user only
        folder.chmod(0o755)
    return course


@pytest.fixture(scope="module", params=_modes())
def at(request: pytest.FixtureRequest, course: "SmallCourse") -> Iterator[Attacked]:
    boundary = Boundary(str(course.root), request.param, _LIMITS)
    observer = Sandboxed(course.root / "tests_refsol/week_1/test_day_1.py", "tiny_llm", ["softmax"], boundary)
    yield Attacked(request.param, observer, course)
    observer.close()


@pytest.fixture(autouse=True)
def next_case_runs_as_ever(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "at" in request.fixturenames:
        started = time.monotonic()
        assert request.getfixturevalue("at").call("echo", {"x": [1, "é"]}) == {"x": [1, "é"]}
        assert time.monotonic() - started < 20


def test_every_mode_of_this_machine_is_attacked():
    assert set(_modes()) <= set(MODES)
    assert not [mode for mode in MODES if "could write" in (problem(mode) or "")]
    if wanted := os.environ.get("BOUNDARY_MODES"):
        assert {mode: problem(mode) for mode in wanted.split(",")} == dict.fromkeys(wanted.split(","))


def test_exit_is_no_pass(at: Attacked):
    assert at.fails("exits") == "your code ended its process: exit status 0"
    assert "sys.exit(0)" in at.fails("exits_at_exit")


def test_signals(at: Attacked):
    assert at.fails("kills_group") == "your code ended its process: signal SIGKILL"
    assert "no result within 1 s" in at.fails("stops_itself", timeout=1.0)


@pytest.mark.parametrize("attack", ["kills_parent", "stops_parent"])
def test_signals_to_what_starts_cases(at: Attacked, attack: str):
    pid = at.observer._zygote.pid if at.observer._zygote else None
    try:
        said = at.call(attack)
    except (Stopped, Raised) as error:
        said = str(error)
    assert at.promises("limits") or said == "went on" or "Operation not permitted" in said
    at.observer.begin()
    if pid and not at.promises("limits"):
        assert at.observer._zygote.pid == pid


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="has no signals of real time")
def test_signal_without_a_name(at: Attacked):
    assert at.fails("ends_by_signal", 40) == "your code ended its process: signal 40"


def test_nobody_stops_what_kills(at: Attacked):
    if at.promises("limits"):
        pytest.skip("not promised, and it would stop all that the grader's user runs")
    with suppress(Stopped):  # it may have stopped itself
        at.call("stops_all_others", 20.0, timeout=1.0)
    started = time.monotonic()
    pid = at.observer._zygote.pid
    at.observer.begin()
    assert at.observer._zygote.pid == pid
    assert time.monotonic() - started < 4


@pytest.mark.parametrize("attack", ["loops", "loops_in_c", "loops_in_libc"])
def test_endless_loops(at: Attacked, attack: str):
    started = time.monotonic()
    assert "no result within 1 s" in at.fails(attack, timeout=1.0)
    assert time.monotonic() - started < 20


def test_thread_left_behind_keeps_nobody_waiting(at: Attacked):
    started = time.monotonic()
    assert at.call("leaves_thread") == 1
    at.observer.close()
    assert time.monotonic() - started < 20


def _alive(argument: str) -> bool:
    found = []
    for process in psutil.process_iter():
        try:
            found.append(argument in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            continue
    return any(found)


def test_daemon_ends_with_its_case(at: Attacked):
    argument = f"30.{os.getpid()}{at.mode.encode().hex()[:6].translate({ord(c): '7' for c in 'abcdef'})}"
    assert at.call("leaves_daemon", argument) == 1
    assert _alive(argument)
    pid = at.observer._zygote.pid
    at.observer.begin()
    assert at.observer._zygote.pid == pid  # it alone was ended, not all
    assert not _alive(argument)


def test_bounded_fork_bomb(at: Attacked):
    said = at.fails("forks", 150)
    assert "more than 60 processes" in said or "BlockingIOError" in said
    at.observer.begin()
    left = psutil.Process(at.observer._zygote.pid).children(recursive=True) if at.observer._zygote else []
    assert len(left) <= 1


def test_memory_of_one_process(at: Attacked):
    said = at.fails("takes_memory", 900)
    assert "MemoryError" in said or "more than 600 MB of memory" in said


def test_memory_of_many_processes(at: Attacked):
    assert "your code used more than 600 MB of memory" in at.fails("takes_memory_in_many", [5, 200])


def test_disk_bomb(at: Attacked):
    said = at.fails("fills_disk", 20)
    assert "No space left on device" in said or "wrote more than 48 MB" in said


def test_cache_counts_as_files_and_is_not_left_full(at: Attacked):
    said = at.fails("writes_into_cache", 80)
    assert "No space left on device" in said or "wrote more than 48 MB" in said
    if not at.promises("namespaces"):  # where it has a size of its own
        assert at.call("writes_into_cache", 8) == 8


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which files a process has open")
@pytest.mark.parametrize("attack", ["writes_nameless_files", "writes_memory_files"])
def test_files_without_a_name(at: Attacked, attack: str):
    said = at.fails(attack, 80)
    assert "No space left on device" in said or "wrote more than 48 MB" in said


@pytest.mark.skipif(sys.platform != "linux", reason="not promised")
def test_shared_memory_is_limited_and_ends_with_its_case(at: Attacked):
    if at.promises("limits"):
        pytest.skip("not promised")
    assert at.call("takes_shared_memory", 2) == 2
    assert at.call("finds_shared_memory", 2) == 0
    if at.promises("user"):
        assert "wrote more than 48 MB" in at.fails("takes_shared_memory", 10)
    else:  # some kernels let only root set the limit
        assert at.call("takes_shared_memory", 10) in ([6] if os.geteuid() == 0 else [6, 10])
    assert at.call("finds_shared_memory", 10) == 0


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="calls have other numbers")
def test_keys_end_with_their_case(at: Attacked):
    if at.promises("limits") or os.geteuid() != 0 or not at.call("leaves_key"):
        pytest.skip("not promised, or there are none")
    assert not at.call("finds_key")


def test_files_in_shared_places_end_with_their_case(at: Attacked):
    if not at.promises("user"):
        pytest.skip("not promised, or there are none")
    places = [f"{place}/tiny-llm-left-{os.getpid()}" for place in ("/tmp", "/dev/shm", "/run/lock")]
    written = at.call("writes_shared", places)
    assert written
    assert at.call("reads", written) == []
    assert not any(map(os.path.exists, places))


def test_empty_files(at: Attacked):
    if at.promises("user limits"):
        assert "wrote more than 48 MB" in at.fails("writes_empty_files", 14_000, timeout=40.0)


def test_deeply_nested_folders_are_removed(at: Attacked):
    with suppress(Stopped):  # it may be found while it nests them
        at.call("nests_folders", [3000, 0.0])
    places = at.observer._zygote.places
    assert at.call("lists_home") == [[], []]
    at.observer.close()
    assert not any(place.exists() for place in places)


def test_deeply_nested_folders_hide_nothing(at: Attacked):
    if at.promises("user limits"):
        assert "nested folders too deeply" in at.fails("nests_folders", [3000, 1.0])


def test_large_file(at: Attacked):
    assert "File too large" in at.fails("writes_large_file", 20, Raised)


def test_what_is_printed_is_passed_on(at: Attacked, capsys: pytest.CaptureFixture[str]):
    at.call("prints")
    assert capsys.readouterr().out == "hello\nworld\n"


def test_printing_without_end_is_cut(at: Attacked, capsys: pytest.CaptureFixture[str]):
    assert at.call("prints_much", 60) == 60
    printed = capsys.readouterr().out
    assert len(printed) < 70_000
    assert "left out here" in printed


def test_result_that_is_too_large(at: Attacked):
    assert "a result of 20 MB is larger than 16 MB" in at.fails("returns_much", 20)


def test_files_end_with_their_case(at: Attacked, tmp_path: Path):
    (tmp_path / "victim").write_text("mine")
    assert at.call("leaves_file", str(tmp_path)) == 1
    assert at.call("lists_home") == [[], []]
    assert (tmp_path / "victim").read_text() == "mine"


def test_forged_answer_is_refused(at: Attacked):
    assert "what nobody had asked for" in at.fails("forges_an_answer")


def test_flood_of_answers_fails_the_case(at: Attacked):
    assert "cannot be read" in at.fails("floods_answers")


def test_late_answer_is_not_taken_for_the_next(at: Attacked):
    assert "ValueError: no" in at.fails("raises_then_answers_late", None, Raised)
    time.sleep(0.4)
    with pytest.raises(Stopped, match="what nobody had asked for"):
        at.observer.observe(Calls, ("echo", 5), {})


def test_patched_modules_end_with_their_case(at: Attacked):
    assert at.call("patches_all") == []  # the value that its own `json` wants to return
    assert at.call("starts_python") == "1\n"


def test_closed_descriptors(at: Attacked):
    assert "ended its process" in at.fails("closes_everything")


def test_parent_keeps_its_memory_to_itself(at: Attacked):
    if at.promises("limits") and os.geteuid() == 0:
        pytest.skip("root may look into everything")
    assert at.call("looks_into_parent") == []


def test_files_of_the_course_stay_as_they_are(at: Attacked):
    if at.promises("limits"):
        pytest.skip("not promised")
    tests = at.course.root / "tests_refsol/week_1/test_day_1.py"
    places = [str(place) for place in (tests, tests.parent, at.course.root, at.course.root / "tiny_llm")]
    inside = ["/submission", "/submission/tiny_llm/model/basics.py", sys.prefix, "/usr/bin", "/etc/passwd"]
    course = [str(place) for place in (ROOT, ROOT / "src/course", ROOT / "tests_refsol", ROOT / "curriculum")]
    assert at.call("writes", [*places, *inside, *course]) == []
    assert tests.read_text() == _TESTS


def test_reference_is_not_there(at: Attacked):
    if not at.promises("namespaces"):
        pytest.skip("not promised")
    week = ROOT / "tests_refsol/week_1"
    places = [REFERENCE, ROOT / "src/extensions_ref", week, ROOT / ".course", ROOT / ".git", Path.home() / ".ssh"]
    others = [at.course.root / "tiny_llm", "/home", "/autograder", "/etc/shadow", "/root/.bashrc", "/proc/1/root"]
    assert at.call("reads", [str(place) for place in (*places, *others)]) == []
    assert "cannot import tiny_llm_ref" in at.fails("imports_reference", None, Stopped)


def test_other_processes_are_not_there(at: Attacked):
    if not at.promises("namespaces"):
        pytest.skip("not promised")
    assert len(at.call("sees_processes")) == 2  # what starts cases, and this case


def test_network(at: Attacked):
    assert at.call("serves_itself")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        said = at.call("connects", server.getsockname()[1])
    assert at.promises("user limits") or said == "ConnectionRefusedError"


def test_process_that_dies_before_learner_code_runs_is_not_the_learners_fault(at: Attacked):
    tests = at.course.root / "tests_refsol/week_1/test_day_1.py"
    observer = Sandboxed(tests, "unknown", [], Boundary(str(at.course.root), at.mode))
    with pytest.raises(Stopped, match="the grader cannot start what runs your code: KeyError: 'unknown'") as caught:
        observer.observe(Calls, ("echo", 1), {})
    assert caught.value.failure.kind == "boundary"
    observer.close()


def test_where_nothing_can_be_forked_each_case_gets_a_fresh_process(at: Attacked):
    threaded = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    tests = at.course.write("tests_refsol/week_1/threaded.py", threaded + _TESTS)
    single = Attacked(at.mode, Sandboxed(tests, "tiny_llm", [], Boundary(str(at.course.root), at.mode)), at.course)
    assert single.call("counts") == 1
    assert single.observer.observe(Calls, ("counts", None), {}) == 2
    assert single.call("counts") == 1
    assert single.fails("exits") == "your code ended its process: exit status 0"
    assert "no result within 1 s" in single.fails("loops_in_c", timeout=1.0)
    assert single.call("echo", 7) == 7
    single.observer.close()


def test_environment_is_a_short_list(at: Attacked, monkeypatch: pytest.MonkeyPatch):
    at.observer.close()
    monkeypatch.setenv("COURSE_SEEDS", "hunter2")
    found = at.call("environment")
    assert "hunter2" not in found.values()
    assert {"HOME", "TMPDIR", "PATH", "XDG_CACHE_HOME"} <= found.keys()
    assert str(Path.home()) not in found["HOME"]
