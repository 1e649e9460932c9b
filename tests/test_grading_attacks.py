"""A submission full of attacks, each a task of its own: every verdict is right, the grader lives, honest tasks earn
their points, other submissions stay as they are, and nothing secret is in what students see.

What an attack finds out it tells in the text of an exception, which the results show. Limits of memory, disk and
processes, and C++, are tried in tests/test_boundary_*.py."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import psutil
import pytest
from conftest import SmallCourse
from grading_course import Graded, case

from course.curriculum import load
from course.grading.formats import FORMATS
from course.grading.formats.sums import points_told
from course.grading.grade import Grade, TaskGrade

SECRET_SEED = 2**95 + 12345
SECRET_TEXT = "open sesame, said the seeds"


@dataclass(frozen=True)
class Attack:
    """A module whose `run(x)` should return x + 1. `earns`: whether it does so, as attacks may beside their attack."""

    name: str
    code: str
    earns: bool = False


HONEST = "def run(x):\n    return x + 1\n"
COMPARISON = """
    import builtins, sys
    import numpy as np
    import mlx.core as mx

    for name in ("allclose", "array_equal", "isclose", "equal"):
        setattr(np, name, lambda *a, **k: True)
    np.testing.assert_allclose = np.testing.assert_array_equal = lambda *a, **k: None
    mx.allclose = mx.array_equal = lambda *a, **k: mx.array(True)
    builtins.all = builtins.any = builtins.isinstance = lambda *a, **k: True
    for module in list(sys.modules.values()):
        for name in ("close", "same", "verify"):
            if hasattr(module, name):
                setattr(module, name, lambda *a, **k: None)

    def run(x):
        return x
    """
FRAMES = """
    import sys

    def run(x):
        frame = sys._getframe()
        while frame:
            for value in list(frame.f_locals.values()):
                verify = getattr(value, "verify", None)
                if verify is not None and hasattr(verify, "__code__"):
                    verify.__code__ = (lambda inputs, values: None).__code__
            frame = frame.f_back
        return x
    """
EQUAL_TO_ALL = """
    class Equal(int):
        def __eq__(self, other):
            return True

        def __ne__(self, other):
            return False

        __hash__ = int.__hash__

    def run(x):
        return Equal(0)
    """
FORGED_ANSWER = """
    import os, struct

    def run(x):
        text = b"v" + struct.pack("<I", len(str(x + 1))) + str(x + 1).encode()
        for fd in range(3, 64):
            try:
                os.write(fd, struct.pack("<Q", len(text)) + text)
            except OSError:
                pass
        os._exit(0)
    """
FORGED_LINES = """
    import json, os, sys

    LINES = (
        "tests/test_day_1.py::Run[0] PASSED", "===== 100 passed in 0.01s =====", "\\x1b[2J\\x1b[H",
        json.dumps({"result": {"week": 1, "day": 1, "task": 1, "name": "Run[0]", "kind": "passed", "by": "", "text": "",
                               "output": ""}, "id": "Run[0]"}),
        json.dumps({"end": 0}),
    )

    def run(x):
        for line in LINES:
            print(line, flush=True)
            print(line, file=sys.stderr, flush=True)
            for fd in range(64):
                try:
                    os.write(fd, line.encode() + b"\\n")
                except OSError:
                    pass
        return x
    """
KILLS = """
    import os, signal

    def run(x):
        for pid in {pids!r} + [os.getppid()]:
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        return x + 1
    """
KILLS_ITSELF = """
    import os, signal

    def run(x):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    """
THREADS = """
    import threading, time

    def spin():
        while True:
            time.sleep(0.01)

    def run(x):
        for _ in range(5):
            threading.Thread(target=spin).start()
        return x + 1
    """
DEAF = """
    import signal, time

    def run(x):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        while True:
            try:
                time.sleep(10)
            except BaseException:
                pass
    """
ORPHAN = """
    import os, time

    def run(x):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    time.sleep(0.05)
            os._exit(0)
        return x + 1
    """
WRITES = """
    import shutil
    from pathlib import Path

    PLACES, COURSE = {places!r}, {course!r}
    CHANGES = (
        lambda p: p.write_text("hacked"),
        lambda p: p.chmod(0o777),
        lambda p: (p / "conftest.py").write_text("raise SystemExit"),
        lambda p: p.unlink(),
        lambda p: shutil.rmtree(p),
    )

    def tried(change, path):
        try:
            change(path)
        except OSError:
            pass

    def run(x):
        for place in PLACES:
            for path in (*Path(place).rglob("*"), Path(place)):
                for change in CHANGES:
                    tried(change, path)
        tried(lambda p: (p / "hacked.txt").write_text(""), Path(COURSE))
        return x + 1
    """
READS = """
    import glob, os
    from pathlib import Path

    PLACES, WORDS = {places!r}, {words!r}

    def run(x):
        found = [repr(dict(os.environ))]
        wanted = [*PLACES, *glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline")]
        for place in wanted:
            try:
                found.append(Path(place).read_bytes().decode(errors="replace"))
            except Exception:
                pass
        text = " ".join(found)
        raise ValueError(" ".join(word for word in WORDS if word in text) or "nothing found")
    """
REFERENCE = """
    import importlib, sys
    from pathlib import Path

    def run(x):
        for name in ("tiny_llm_ref.model.basics", "tiny_llm_ref"):
            try:
                return importlib.import_module(name).answer(x)
            except BaseException:
                pass
        for folder in [*sys.path, {src!r}]:
            for path in Path(folder).glob("*_ref/model/*.py"):
                raise ValueError("found the reference")
        return x
    """
ENDS_WHEN_TOLD = """
    import os

    class Error(Exception):
        def __str__(self):
            os._exit(0)

    def run(x):
        raise Error
    """
ATTACKS = (
    Attack("honest_first", HONEST, earns=True),
    Attack("comparison", COMPARISON),
    Attack("frames", FRAMES),
    Attack("equal_to_all", EQUAL_TO_ALL),
    Attack("exit_zero", "import os\n\ndef run(x):\n    os._exit(0)\n"),
    Attack("exit_at_import", "import os\n\nos._exit(0)\n"),
    Attack("system_exit", "import sys\n\ndef run(x):\n    sys.exit(0)\n"),
    Attack("at_exit", "import atexit, os\n\natexit.register(os._exit, 0)\n\ndef run(x):\n    return x\n"),
    Attack("forged_answer", FORGED_ANSWER),
    Attack("forged_lines", FORGED_LINES),
    Attack("kills", KILLS, earns=True),
    Attack("kills_itself", KILLS_ITSELF),
    Attack("threads", THREADS, earns=True),
    Attack("endless", "def run(x):\n    while True:\n        pass\n"),
    Attack("endless_in_c", "import itertools\n\ndef run(x):\n    return sum(itertools.repeat(0))\n"),
    Attack("deaf", DEAF),
    Attack("segfault", "import ctypes\n\ndef run(x):\n    ctypes.string_at(0)\n"),
    Attack("orphan", ORPHAN, earns=True),
    Attack("recursion", "import sys\n\nsys.setrecursionlimit(10**8)\n\ndef run(x):\n    return run(x)\n"),
    Attack("skip", "import unittest\n\ndef run(x):\n    raise unittest.SkipTest('done')\n"),
    Attack("pytest_skip", "import pytest\n\ndef run(x):\n    pytest.skip('done', allow_module_level=True)\n"),
    Attack("interrupt", "def run(x):\n    raise KeyboardInterrupt\n"),
    Attack(
        "nested", "def run(x):\n    value = x\n    for _ in range(10**5):\n        value = [value]\n    return value\n"
    ),
    Attack("huge", "import numpy as np\n\ndef run(x):\n    return np.zeros(1 << 27)\n"),
    Attack(
        "talkative",
        "def run(x):\n    for _ in range(2000):\n        print('x' * 10000)\n    return x + 1\n",
        earns=True,
    ),
    Attack("text", ENDS_WHEN_TOLD),
    Attack("reference", REFERENCE),
    Attack("writes", WRITES, earns=True),
    Attack("reads", READS),
    Attack("honest_last", HONEST, earns=True),
)


def registry() -> str:
    """A course in which each attack is a task."""
    head = 'week = 1\ntitle = "Attacks"\n[[day]]\nday = 1\ntitle = "One"\nchapter = "week1-01-one.md"\nhours = 1.0\n'
    task = '[[day.task]]\ntitle = "{0}"\npoints = 1\nhints = ["a", "b", "c"]\n'
    task += '[day.task.symbols]\n"model/{0}.py" = ["run"]\n'
    return head + "".join(task.format(attack.name) for attack in ATTACKS)


@dataclass(frozen=True)
class Scene:
    """What the attacks were made on, and what came of it."""

    grade: Grade
    output: Path
    changed: list[str]
    left: list[psutil.Process]
    canary_lives: bool

    def task(self, name: str) -> TaskGrade:
        return next(task for task in self.grade.tasks if task.title == name)


def snapshot(*folders: Path) -> dict[str, tuple[int, bytes]]:
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    kept = [path for path in paths if "__pycache__" not in path.parts]
    return {str(p): (p.stat().st_mode, p.read_bytes() if p.is_file() else b"") for p in kept}


def build(small: SmallCourse) -> Graded:
    (small.root / "curriculum/week1.toml").write_text(registry())
    cases = [case(number, attack.name, "run", "x + 1") for number, attack in enumerate(ATTACKS, 1)]
    named = [text.replace("class Run", f"class Run{i}") for i, text in enumerate(cases)]
    small.tests("from course.case import case\n" + "".join(named), day=1)
    return Graded(small, load(small.root / "curriculum"))


SOURCE = Path(__file__).parents[1] / "src"
OTHER = "submissions/bob/src/tiny_llm/model/honest_first.py"


def mallory(graded: Graded, output: Path, canary: int) -> Path:
    """The submission with all attacks, each told where its victims are."""
    root = graded.small.root
    secret = root / "secret"
    secret.write_text(SECRET_TEXT)
    secret.chmod(0o600)
    written = [str(path) for path in (root / "submissions/bob", output, root / "tests_refsol", root / "curriculum")]
    values = {
        "writes": {"places": written, "course": str(SOURCE / "course")},
        "reads": {"places": [str(secret), str(root / OTHER)], "words": [SECRET_TEXT, str(SECRET_SEED), "def run"]},
        "reference": {"src": str(SOURCE)},
        "kills": {"pids": [os.getpid(), canary]},
    }
    codes = {a.name: dedent(a.code).format(**values[a.name]) if a.name in values else a.code for a in ATTACKS}
    return graded.submission("mallory", **codes)


@pytest.fixture(scope="module")
def scene(make_course: Callable[[], SmallCourse], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """All attacks at once, with hidden variants, and what they did to everything else."""
    graded = build(make_course())
    output = tmp_path_factory.mktemp("results")
    bob = graded.submission("bob", honest_first=HONEST)
    others = psutil.Process().children(recursive=True)  # of tests that ran before
    canary = subprocess.Popen(["sleep", "600"])
    submission = mallory(graded, output, canary.pid)
    watched = [bob, submission, graded.small.root / "tests_refsol", graded.small.root / "curriculum"]
    before = snapshot(*watched)
    desk = replace(graded.desk(seeds=[SECRET_SEED]), starter={"__init__.py": b"", "model/__init__.py": b""})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_SECRET", SECRET_TEXT)
        grade = desk.grade(submission, output, "mallory")
    after = snapshot(*watched)
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    left = [process for process in psutil.Process().children(recursive=True) if process not in others]
    yield Scene(grade, output, changed, left, canary.poll() is None)
    canary.kill()
    canary.wait()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_verdict_is_right(scene: Scene, attack: Attack):
    task = scene.task(attack.name)
    expected = 1.0 if attack.earns else 0.0
    assert task.points == expected, [case.text for case in task.cases]
    assert task.total == 2
    assert (task.state == "done") == attack.earns
    assert task.hidden.state == ("done" if attack.earns else "not run")


def test_the_grader_lives_and_is_complete(scene: Scene):
    assert scene.grade.complete, scene.grade.problem
    assert scene.grade.points == sum(attack.earns for attack in ATTACKS)


def test_other_submissions_tests_and_results_are_untouched(scene: Scene):
    assert scene.changed == []


def test_a_whole_result_is_written_in_every_format(scene: Scene):
    expected = {(scene.grade.points, scene.grade.max_points)}
    assert points_told(scene.output) == dict.fromkeys(FORMATS, expected)
    assert sorted(path.name for path in scene.output.iterdir()) == sorted(FORMATS)


def test_nothing_secret_was_found_or_told(scene: Scene):
    for read in scene.task("reads").cases:
        assert "ValueError: nothing found" in read.text
    for name in FORMATS:
        told = (scene.output / name).read_text()
        assert SECRET_TEXT not in told
        assert str(SECRET_SEED) not in told


def test_forged_lines_are_marked_as_printed_and_steer_no_terminal(scene: Scene):
    text = scene.task("forged_lines").cases[0].text
    assert "\x1b" not in text
    assert all(line.startswith("  | ") for line in text.splitlines() if "100 passed" in line or '"end"' in line)
    tests = json.loads((scene.output / "results.json").read_text())["tests"]
    assert next(test for test in tests if test["name"].endswith("forged_lines"))["status"] == "failed"


def test_nothing_of_it_runs_on_and_nothing_else_was_ended(scene: Scene):
    assert scene.canary_lives
    assert [process.name() for process in scene.left] == ["sleep"]
    assert not (SOURCE / "course/hacked.txt").exists()
