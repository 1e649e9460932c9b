"""What is remembered of runs: whole tasks only, with the code that was tested, and nothing is lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SmallCourse

from course.curriculum import Curriculum, Task, load
from course.loop import progress as module
from course.loop.progress import Progress, assess, mark_given, next_task, record
from course.loop.sources import Sources
from course.state import read_state, update_state
from course.summary import Result

STUB = 'raise NotImplementedError("Week 1 Day {day} Task {task}: {name} - see book/src/week1-01-one.md#task-{task}")'
BASICS = f"""\
import mlx.core as mx


def first(x):
    {STUB.format(day=1, task=1, name="first")}


def linear(x):
    {STUB.format(day=1, task=1, name="linear")}


def second(x):
    {STUB.format(day=1, task=2, name="second")}
"""
MORE = f"def third(x):\n    {STUB.format(day=2, task=1, name='third')}\n"


class Learner:
    """A learner's package, the curriculum, and the state file."""

    def __init__(self, course: SmallCourse) -> None:
        self.curriculum: Curriculum = load(course.root / "curriculum")
        self.package = course.package("tiny_llm", basics=BASICS, more=MORE)
        self.state = course.root / ".course" / "state.json"
        self.first, self.second, self.third = self.curriculum.tasks

    def replace(self, old: str, new: str, name: str = "basics") -> None:
        path = self.package / "model" / f"{name}.py"
        assert path.read_text().count(old) == 1
        path.write_text(path.read_text().replace(old, new))

    def write(self, task: int, name: str, body: str = "return x", file: str = "basics", day: int = 1) -> None:
        self.replace(STUB.format(day=day, task=task, name=name), body, file)

    def write_first(self) -> None:
        self.write(1, "first")
        self.write(1, "linear")

    def sources(self) -> Sources:
        return Sources(self.curriculum, self.package)

    def record(self, task: Task, *kinds: str, of: int | None = None, by: str = "", ran_on: str = "") -> None:
        place = (task.week, task.day, task.number)
        whole = len(kinds) if of is None else of
        record([Result(*place, "Case[0]", k, by, "", "", whole, ran_on) for k in kinds], self.sources(), self.state)

    def found(self) -> Progress:
        return assess(self.sources(), self.state)

    def states(self) -> list[str]:
        return [seen.state for seen in self.found().values()]


@pytest.fixture
def learner(small_course: SmallCourse, monkeypatch: pytest.MonkeyPatch) -> Learner:
    monkeypatch.setattr(module, "SRC", small_course.root)
    return Learner(small_course)


def test_stubs_are_to_do_and_written_code_waits_for_a_run(learner: Learner):
    assert learner.states() == ["to do", "to do", "to do"]
    assert [seen.left for seen in learner.found().values()] == [2, 1, 1]
    learner.write(1, "first")
    assert learner.states()[0] == "to do"
    learner.write(1, "linear")
    assert learner.states() == ["not run", "to do", "to do"]


def test_a_whole_run_is_kept_with_what_it_ran_on(learner: Learner):
    learner.write_first()
    learner.record(learner.first, "passed", "passed", ran_on="emulator")
    seen = learner.found()[learner.first]
    assert (seen.state, seen.passed, seen.cases, seen.passed_cases, seen.ran_on) == ("done", True, 2, 2, "emulator")
    assert seen.when.endswith("+00:00")
    assert next_task(learner.found()) is learner.second


def test_a_part_of_a_task_is_never_done_but_may_fail(learner: Learner):
    learner.write_first()
    learner.record(learner.first, "passed", of=2)
    assert learner.states()[0] == "not run"
    learner.record(learner.first, "failed", of=2)
    assert learner.states()[0] == "failing"
    learner.record(learner.first, "passed", of=2)
    assert learner.states()[0] == "failing"


def test_a_change_to_a_tasks_own_code_or_to_shared_code_shows_and_one_to_another_task_does_not(learner: Learner):
    learner.write_first()
    learner.record(learner.first, "passed")
    learner.write(2, "second")
    assert learner.states()[0] == "done"
    learner.replace("def first(x):\n    return x", "def first(x):\n    return -x")
    assert learner.states()[0] == "changed"
    assert learner.found()[learner.first].passed
    assert next_task(learner.found()) is learner.second
    learner.record(learner.first, "failed")
    assert learner.states()[0] == "failing"
    learner.replace("import mlx.core as mx\n", "import mlx.core as mx\n\nONE = 1\n")
    assert learner.states()[0] == "changed"
    assert not learner.found()[learner.first].passed


def test_a_broken_file_changes_all_its_tasks_and_its_repair_changes_them_back(learner: Learner):
    learner.write_first()
    learner.record(learner.first, "passed")
    learner.replace("def second(x):", "def second(x:")
    assert learner.states()[0] == "changed"
    learner.replace("def second(x:", "def second(x):")
    assert learner.states()[0] == "done"


def test_a_stub_that_is_back_takes_the_points_away(learner: Learner):
    learner.write_first()
    learner.record(learner.first, "passed")
    learner.replace("def first(x):\n    return x", f"def first(x):\n    {STUB.format(day=1, task=1, name='first')}")
    seen = learner.found()[learner.first]
    assert (seen.state, seen.passed) == ("to do", False)


def test_a_missing_file_is_told(learner: Learner):
    learner.write_first()
    learner.record(learner.first, "passed")
    (learner.package / "model" / "basics.py").unlink()
    assert learner.states() == ["missing", "missing", "to do"]
    assert not learner.found()[learner.first].passed


def test_a_blocked_task_waits_for_a_run_once_its_blocker_is_done(learner: Learner):
    learner.write(1, "third", file="more", day=2)
    learner.record(learner.third, "blocked", by=learner.first.label)
    seen = learner.found()[learner.third]
    assert (seen.state, seen.by) == ("blocked", learner.first.label)
    learner.write_first()
    learner.record(learner.first, "passed")
    assert learner.states()[2] == "not run"


def test_what_came_from_the_reference_is_nothing_to_do_and_worth_nothing(learner: Learner):
    learner.write_first()
    mark_given([learner.first], learner.sources(), learner.state)
    seen = learner.found()[learner.first]
    assert (seen.state, seen.passed) == ("given", False)
    assert next_task(learner.found()) is learner.second
    learner.replace("def first(x):\n    return x", "def first(x):\n    return -x")
    assert learner.states()[0] == "changed"
    assert next_task(learner.found()) is learner.first


def test_a_run_of_what_came_from_the_reference_earns_nothing_until_it_is_changed(learner: Learner):
    learner.write_first()
    mark_given([learner.first], learner.sources(), learner.state)
    learner.write(2, "second")
    learner.replace("import mlx.core as mx\n", "import mlx.core as mx\n\nONE = 1\n")  # for the other task
    learner.record(learner.first, "passed")
    learner.record(learner.second, "passed")
    assert learner.states()[:2] == ["given", "done"]
    assert not learner.found()[learner.first].passed
    learner.replace("def first(x):\n    return x", "def first(x):\n    return -x")
    learner.record(learner.first, "passed")
    assert learner.found()[learner.first].passed
    learner.replace("def first(x):\n    return -x", "def first(x):\n    return x")
    learner.record(learner.first, "passed")
    assert (learner.states()[0], learner.found()[learner.first].passed) == ("given", False)


def test_code_is_kept_as_it_was_before_the_run(learner: Learner):
    learner.write_first()
    before = learner.sources()
    learner.replace("def first(x):\n    return x", "def first(x):\n    return -x")
    record([Result(1, 1, 1, "Case[0]", "passed", "", "", "", 1)], before, learner.state)
    assert learner.states()[0] == "changed"


def test_a_copy_that_pythonpath_puts_first_is_not_remembered(learner: Learner, tmp_path: Path):
    other = tmp_path / "other" / "tiny_llm"
    other.mkdir(parents=True)
    record([Result(1, 1, 1, "Case[0]", "passed", "", "", "", 1)], Sources(learner.curriculum, other), learner.state)
    assert not learner.state.exists()


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[" * 100_000,
        '{"progress": 3}',
        '{"progress": {"tiny_llm": []}}',
        '{"progress": {"tiny_llm": {"1.1.1": 1, "1.1.2": {"state": 1}, "x": {"state": "done", "source": ""}}}}',
    ],
)
def test_a_damaged_memory_starts_anew(learner: Learner, damage: str):
    learner.state.parent.mkdir()
    learner.state.write_text(damage)
    learner.write_first()
    assert learner.states()[0] == "not run"
    learner.record(learner.first, "passed")
    assert learner.states()[0] == "done"


def test_nothing_to_write_to_is_no_error(learner: Learner):
    learner.state.parent.write_text("a file where the folder should be")
    learner.record(learner.first, "passed")
    assert learner.states()[0] == "to do"
    result = Result(1, 1, 1, "Case[0]", "passed", "", "", "", 1)
    problem = record([result], learner.sources(), learner.state)
    assert problem.startswith(f"your progress cannot be saved in {learner.state.parent}: ")
    assert "\n" not in problem


def test_two_packages_are_remembered_apart_and_other_tools_values_stay(learner: Learner):
    update_state(lambda state: state | {"hints": {"1.1.1": 2}}, learner.state)
    learner.write_first()
    learner.record(learner.first, "passed")
    state = read_state(learner.state)
    assert state["hints"] == {"1.1.1": 2}
    assert list(state["progress"]) == ["tiny_llm"]
    reference = learner.package.rename(learner.package.with_name("tiny_llm_ref"))
    assert assess(Sources(learner.curriculum, reference), learner.state)[learner.first].state == "not run"


def test_programs_that_write_at_once_lose_nothing(tmp_path: Path):
    path = tmp_path / ".course" / "state.json"
    count = (
        "import sys; from pathlib import Path; from course.state import update_state\n"
        "for n in range(60): update_state(lambda s: s | {sys.argv[2]: s.get(sys.argv[2], 0) + 1}, Path(sys.argv[1]))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", count, str(path), name]) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert json.loads(path.read_text()) == {"a": 60, "b": 60, "c": 60}
    assert [p.name for p in path.parent.iterdir()] == ["state.json"]
