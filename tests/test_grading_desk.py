"""One submission from end to end: points, states, hidden variants, and a result whatever happens."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import psutil
import pytest
from conftest import SmallCourse
from grading_course import BASICS, MORE, Graded

from course import cli
from course.boundary.kernel import adopt_orphans
from course.grading import desk as desk_module
from course.grading.course_file import LimitsTable, load_course
from course.grading.desk import Desk
from course.grading.formats import FORMATS
from course.grading.formats.sums import points_told
from course.grading.grade import Grade, read
from course.grading.runner import Stop
from course.grading.score import rescored


@pytest.fixture(scope="module")
def graded(make_course: Callable[[], SmallCourse]) -> Graded:
    """Shared: nothing here changes it but by submissions of other names."""
    return Graded.of(make_course())


def run(desk: Desk, submission: Path, output: Path) -> Grade:
    """The grade; all files that were written agree."""
    grade = desk.grade(submission, output, "alice")
    assert points_told(output) == {name: {(grade.points, grade.max_points)} for name in FORMATS}
    assert read(output) == grade
    return grade


def states(grade: Grade) -> list[str]:
    return [task.state for task in grade.tasks]


def test_full_points_for_everything_right(graded: Graded, tmp_path: Path):
    grade = run(graded.desk(), graded.submission("right", basics=BASICS, more=MORE), tmp_path)
    assert (grade.points, grade.max_points, grade.complete, grade.problem) == (35, 35, True, "")
    assert states(grade) == ["done"] * 3
    assert [(task.passed, task.total) for task in grade.tasks] == [(4, 4), (2, 2), (2, 2)]
    assert (grade.student, grade.submission) == ("alice", "right")
    assert grade.protections


def test_nothing_for_the_starter(graded: Graded, tmp_path: Path):
    submission = graded.submission("starter", basics="# nothing yet\n")
    (submission / "src/tiny_llm/model/basics.py").write_bytes(graded.desk().starter["model/basics.py"])
    grade = run(graded.desk(), submission, tmp_path)
    assert (grade.points, grade.complete) == (0, True)
    assert states(grade) == ["to do"] * 3


WRONG = """
    import sys

    def first(x):
        return x + 1

    def linear(x):
        print("\\x1b[2J=== 100 passed ===")
        print("likely mistake: forged", file=sys.stderr)
        return x

    def second(x):
        return 2 * x
    """


def test_a_task_earns_all_or_nothing_and_its_mistakes_are_counted(graded: Graded, tmp_path: Path):
    grade = run(graded.desk(), graded.submission("wrong", basics=WRONG), tmp_path)
    assert states(grade) == ["failing", "done", "to do"]
    assert [task.points for task in grade.tasks] == [0, 5, 0]
    assert grade.tasks[0].mistakes == {"nothing was done to x": 2}
    text = grade.tasks[0].cases[2].text
    assert "linear(x) is x + 1." in text
    assert text.endswith("printed by the submission:\n  | === 100 passed ===\n  | likely mistake: forged")
    assert grade.notes == ("not in the submission, so the starter's: `model/more.py`",)


BROKEN = {
    "nul": "def first(x): return x + 1\0\n",
    "exit": "import os; os._exit(0)\n",
}


def test_a_broken_module_costs_only_what_needs_it(graded: Graded, tmp_path: Path):
    for name, text in BROKEN.items():
        grade = run(graded.desk(), graded.submission(name, basics=text, more=MORE), tmp_path / name)
        assert states(grade) == ["failing", "failing", "done"], name
        assert (grade.points, grade.complete) == (20, True), name


PATCHES = """
    import numpy, sys
    numpy.array_equal = lambda *a, **k: True
    raise SystemExit("the submission's settings ran")
    """


def test_what_else_a_submission_brings_is_left_aside_and_named(graded: Graded, tmp_path: Path):
    submission = graded.submission("odd", basics=BASICS)
    package = submission / "src/tiny_llm"
    for name in ("conftest.py", "sitecustomize.py", "__init__.py", "model/__init__.py", "model/conftest.py"):
        (package / name).write_text(dedent(PATCHES))
    for name in (
        "conftest.py",
        "pytest.ini",
        "pyproject.toml",
        "course/__init__.py",
        "src/course/compare.py",
        "mlx.py",
    ):
        (submission / name).parent.mkdir(exist_ok=True, parents=True)
        (submission / name).write_text(dedent(PATCHES))
    (submission / "src/evil.pth").write_text("import os; os._exit(0)\n")
    (package / "model/more.py").symlink_to(graded.submission("right", basics=BASICS, more=MORE) / "src")
    os.mkfifo(package / "model/pipe.py")
    (package / "model/huge.py").write_bytes(b"#" * (2 << 20))
    (package / "model/greek.py").write_bytes(b"x = '\xe1'")
    grade = run(graded.desk(), submission, tmp_path)
    assert states(grade) == ["done", "done", "to do"]
    assert (grade.points, grade.complete) == (15, True)
    notes = "\n".join(grade.notes)
    assert "symbolic links are not followed; the starter's files are used: src/tiny_llm/model/more.py" in notes
    assert "settings of a submission are not used: src/tiny_llm/conftest.py, src/tiny_llm/model/conftest.py" in notes
    assert (
        "given code is graded as the course gives it, not as changed here: `__init__.py`, `model/__init__.py`" in notes
    )
    assert "not graded, as the course knows no such files: `model/greek.py`, `model/huge.py`: put the code" in notes
    assert grade.ignored == ("model/greek.py", "model/huge.py")


CHEATS_ON_LARGE = """
    def first(x):
        return x + 1 if x == 987654321 else x + 1

    linear = first

    def second(x):
        return KNOWN.get(x, 0)

    KNOWN = {}
    """


def known_inputs(graded: Graded, seed: int = 0) -> dict[int, int]:
    """What the public cases of `second` ask: anybody can find out."""
    import numpy as np

    rngs = [np.random.default_rng([seed, i, *b"Second"]) for i in range(2)]
    inputs = [int(rng.integers(low, 10**15)) for rng, low in zip(rngs, (2, 1000), strict=True)]
    return {x: 2 * x for x in inputs}


def test_hidden_variants_find_what_only_knows_the_public_inputs(graded: Graded, tmp_path: Path):
    table = CHEATS_ON_LARGE.replace("KNOWN = {}", f"KNOWN = {known_inputs(graded)}")
    (tmp_path / "course.toml").write_text('[hidden]\nshare = 0.4\n[visibility]\nhidden = "after_due_date"\n')
    course = load_course(tmp_path / "course.toml", graded.curriculum)
    seeds = (2**90 + 1, 2**90 + 2)
    said: list[str] = []
    desk = desk_module.replace(graded.desk(course, seeds), say=said.append)
    grade = run(desk, graded.submission("table", basics=table), tmp_path / "out")
    assert said[-2:] == [f"Week 1 Day 1, hidden variants, seed {number} of 2: done" for number in (1, 2)]
    assert states(grade) == ["done", "done", "to do"]
    assert [task.points for task in grade.tasks] == [10, 3, 0]
    hidden = [task.hidden for task in grade.tasks]
    assert [part.state for part in hidden] == ["done", "failing", "not run"]
    assert [(part.points, part.max_points) for part in hidden] == [(4, 4), (0, 2), (0, 8)]
    assert (hidden[0].passed, hidden[0].total) == (8, 8)
    assert hidden[1].failed == ("second(x) is 2 * x.",)
    told = "".join((tmp_path / "out" / name).read_text() for name in FORMATS)
    for seed in seeds:
        assert str(seed) not in told
        assert not any(str(x) in told for x in known_inputs(graded, seed))


def test_a_grade_that_is_scored_again_is_that_of_another_run(graded: Graded, tmp_path: Path):
    texts = ("[hidden]\nshare = 0.4\n", '[points]\n"1" = 9\n[hidden]\nshare = 0.25\n[visibility]\n"1.1" = "hidden"\n')
    courses = []
    for text in texts:
        (tmp_path / "course.toml").write_text(f'title = "{len(text)}"\n{text}')
        courses.append(load_course(tmp_path / "course.toml", graded.curriculum))
    table = CHEATS_ON_LARGE.replace("KNOWN = {}", f"KNOWN = {known_inputs(graded)}")
    submission = graded.submission("table", basics=table)
    first, second = (run(graded.desk(course, (2**90,)), submission, tmp_path / "out") for course in courses)
    again = rescored(first, courses[1])
    assert (again.title, again.tasks) == (second.title, second.tasks)
    assert again.points != first.points > 0


@pytest.mark.parametrize(
    ("submission", "reason"),
    [
        ("nobody", "there is no such file or folder"),
        ("empty", "none of the course's task files is in it"),
        ("broken.zip", "the archive cannot be read"),
    ],
)
def test_what_cannot_be_read_gets_zero_and_a_reason(graded: Graded, tmp_path: Path, submission: str, reason: str):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04")
    grade = run(graded.desk(), tmp_path / submission, tmp_path / "out")
    assert (grade.points, grade.max_points, grade.complete) == (0, 35, False)
    assert grade.problem.startswith("the submission cannot be graded: ")
    assert reason in grade.problem
    assert reason in json.loads((tmp_path / "out/results.json").read_text())["output"]


def test_days_without_tests_are_zero_and_the_others_go_on(make_course: Callable[[], SmallCourse], tmp_path: Path):
    graded = Graded.of(make_course())
    graded.small.tests("import nothing_of_the_kind\n", day=1)
    grade = run(graded.desk(), graded.submission("right", basics=BASICS, more=MORE), tmp_path)
    assert states(grade) == ["not run", "not run", "done"]
    assert not grade.complete
    assert "Week 1 Day 1: the tests cannot be collected: " in grade.problem
    assert "nothing_of_the_kind" in grade.problem


def test_a_crash_of_the_grader_leaves_a_result(graded: Graded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(desk_module, "plant", broken)
    with pytest.raises(ZeroDivisionError):
        graded.desk().grade(graded.submission("right", basics=BASICS, more=MORE), tmp_path)
    grade = read(tmp_path)
    assert (grade.points, grade.complete) == (0, False)
    assert grade.problem == "the grader failed: ZeroDivisionError: a bug"


SLEEPS = """
    import time

    def third(x):
        time.sleep(1.5)
        return 3 * x
    """


def test_a_day_that_takes_too_long_counts_as_far_as_it_came(
    graded: Graded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(LimitsTable, "day_seconds", 2.4)
    desk = graded.desk()
    submission = graded.submission("slow", more=SLEEPS)
    grade = desk.on(graded.curriculum.days[1:]).grade(submission, tmp_path)
    assert (grade.points, grade.complete) == (0, False)
    assert "the tests of the day did not end within" in grade.problem


def test_the_time_for_all_days_together_ends_grading(graded: Graded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LimitsTable, "total_seconds", 0.2)
    grade = graded.desk().grade(graded.submission("right", basics=BASICS, more=MORE), tmp_path)
    assert (grade.points, grade.complete) == (0, False)
    assert "Week 1 Day 1: the time for the whole submission was used up" in grade.problem
    assert states(grade) == ["not run"] * 3


def test_a_stop_keeps_what_is_known(graded: Graded, tmp_path: Path):
    desk = graded.desk()
    desk.stop.reason = "enough"

    def enough(line: str) -> None:
        desk.stop.set()

    submission = graded.submission("right", basics=BASICS, more=MORE)
    grade = desk_module.replace(desk, say=enough).grade(submission, tmp_path)
    assert (grade.points, grade.complete, grade.problem) == (15, False, "enough")
    assert states(grade) == ["done", "done", "not run"]


HANGS = """
    import time

    while True:
        time.sleep(1)
    """
COMMAND = """
import sys
from pathlib import Path
from textwrap import dedent
sys.path.insert(0, {tests!r})
from conftest import SmallCourse
from grading_course import Graded
from course.curriculum import load
from course.grading.interrupt import stopping
root = Path({root!r})
desk = Graded(SmallCourse(root), load(root / "curriculum")).desk()
with stopping(desk.stop) as came:
    desk.grade(root / "submissions/hangs", Path({output!r}))
sys.exit(128 + came[0] if came else 0)
"""


@pytest.fixture
def left_running() -> Iterator[Callable[[], list[psutil.Process]]]:
    """Tells which processes that were started meanwhile do not end, orphans among them."""
    before = set(psutil.Process().children(recursive=True))
    adopt_orphans()

    def left() -> list[psutil.Process]:
        new = [process for process in psutil.Process().children(recursive=True) if process not in before]
        return psutil.wait_procs(new, timeout=5)[1]

    yield left
    adopt_orphans(False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_a_result_and_nothing_left_running(
    graded: Graded, tmp_path: Path, number: int, left_running: Callable[[], list[psutil.Process]]
):
    graded.submission("hangs", basics=BASICS, more=HANGS)
    values = {"tests": str(Path(__file__).parent), "root": str(graded.small.root), "output": str(tmp_path / "out")}
    process = subprocess.Popen([sys.executable, "-c", COMMAND.format(**values)], start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and "Week 1 Day 1 Task 1" in _unfinished(tmp_path / "out"):
            time.sleep(0.1)
        os.kill(process.pid, number)
        assert process.wait(20) == 128 + number
    finally:
        process.kill()
    grade = read(tmp_path / "out")
    assert grade.problem == f"grading was stopped by {signal.Signals(number).name}"
    assert (grade.points, grade.complete) == (15, False)
    assert not left_running()


def _unfinished(output: Path) -> str:
    """Labels of tasks that have not run, from whatever is written now."""
    if not (output / "result.json").exists():
        return "Week 1 Day 1 Task 1"
    return " ".join(task.label for task in read(output).tasks if task.state == "not run")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "name one submission, or use --self-check"),
        (["x", "--self-check"], "name one submission, or use --self-check without one"),
        ([".", "--day", "1"], "--day 1 needs --week"),
        ([".", "--jobs", "0"], "--jobs 0 is less than 1"),
        ([".", "--week", "99"], "week 99 does not exist"),
        ([".", "--course", "/nothing.toml"], "/nothing.toml cannot be read"),
        ([".", "--seeds", "/nothing"], "the secret of the hidden variants, /nothing, cannot be read"),
        ([".", "--boundary", "wall"], "wall"),
    ],
)
def test_an_instructors_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], text: str):
    assert cli.main(["grade", *arguments]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def test_a_mistyped_submission_is_no_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["grade", str(tmp_path / "alise.zip"), "--output", str(tmp_path / "out")]) == 2
    name = f"{tmp_path}/alise.zip"
    assert f"{name} does not exist: name a folder, a .zip or a .tar.gz\n" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_stop_has_a_reason_of_its_own():
    one, two = Stop(), Stop()
    one.reason = "mine"
    assert two.reason != "mine"
