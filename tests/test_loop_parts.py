"""The parts of watch: which saves matter, which task is current, keys, and how a hint is chosen."""

import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import watchfiles
from conftest import SmallCourse

from course.curriculum import Curriculum, load
from course.loop import progress as module
from course.loop.choice import Choice
from course.loop.keyboard import Keyboard
from course.loop.progress import assess
from course.loop.saves import Saves, Tree
from course.loop.sources import Sources
from course.loop.table import state_text
from course.solution import Solution
from course.state import update_state

BASICS = """\
def first(x):
    return x


def linear(x):
    return x


def second(x):
    return x
"""


@pytest.fixture
def curriculum(small_course: SmallCourse) -> Curriculum:
    return load(small_course.root / "curriculum")


@pytest.fixture
def package(small_course: SmallCourse) -> Path:
    return small_course.package("tiny_llm", basics=BASICS, more="def third(x):\n    return x\n")


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        ("tiny_llm/model/basics.py", True),
        ("tiny_llm/new/module.py", True),
        ("extensions/src/qmv.cpp", True),
        ("extensions/metal/add.metal", True),
        ("extensions/CMakeLists.txt", True),
        ("tiny_llm/model", True),
        ("tiny_llm", True),
        ("tiny_llm/model/__pycache__/basics.cpython-311.pyc", False),
        ("tiny_llm/model/.#basics.py", False),
        ("tiny_llm/model/.basics.py.swp", False),
        ("tiny_llm/model/basics.py~", False),
        ("tiny_llm/model/#basics.py#", False),
        ("tiny_llm/model/4913", False),
        ("tiny_llm/_ext.cpython-311-x86_64-linux-gnu.so", False),
        ("tiny_llm/.new-x/_ext.so", False),
        ("extensions/build/CMakeFiles/a.cpp", False),
        ("tiny_llm_ref/model/basics.py", False),
    ],
)
def test_what_a_save_is(curriculum: Curriculum, package: Path, name: str, matters: bool):
    assert Tree(curriculum, package).holds(package.parent / name) == matters


def heard(saves: Saves, file: Path | None = None) -> set[str]:
    """What is heard; `file` is saved again and again, because hearing begins a moment after the start."""
    for number in range(20):
        if file:
            file.write_text(f"# {number}\n")
        if select.select([saves], [], [], 1.1)[0]:  # polling tells whole seconds apart
            return {path.name for path in saves.take()}
    raise AssertionError("no save was heard")


@pytest.mark.parametrize("problem", [None, OSError(28, "inotify watch limit reached")], ids=["events", "polling"])
def test_saves_are_heard_also_where_the_system_has_no_watches_left(
    curriculum: Curriculum, package: Path, monkeypatch: pytest.MonkeyPatch, problem: OSError | None
):
    real, polled = watchfiles.watch, []

    def watch(*places: Path, force_polling: bool | None, **options: object) -> Iterator[set]:
        polled.append(force_polling)
        if problem and not force_polling:
            raise problem
        return real(*places, force_polling=force_polling, poll_delay_ms=50, **options)

    monkeypatch.setattr("watchfiles.watch", watch)
    with Saves(Tree(curriculum, package)) as saves:
        assert heard(saves, package / "model" / "basics.py") == {"basics.py"}
    assert polled == [None, True] if problem else [None]


def test_where_no_save_can_be_heard_the_session_is_told(
    curriculum: Curriculum, package: Path, monkeypatch: pytest.MonkeyPatch
):
    def watch(*places: Path, **options: object) -> Iterator[set]:
        raise OSError(13, "not allowed")

    monkeypatch.setattr("watchfiles.watch", watch)
    with Saves(Tree(curriculum, package)) as saves:
        assert heard(saves) == set()
        assert "not allowed" in saves.problem


def test_a_package_behind_a_link_is_heard(curriculum: Curriculum, package: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    real = package.rename(elsewhere / "mine")
    package.symlink_to(real, target_is_directory=True)
    with Saves(Tree(curriculum, package)) as saves:
        assert heard(saves, real / "model" / "basics.py") == {"basics.py"}


class TestChoice:
    """Tasks 1.1.1 (done), 1.1.2 and 1.2.1 (written, not run)."""

    @pytest.fixture
    def sources(self, curriculum: Curriculum, package: Path, monkeypatch: pytest.MonkeyPatch) -> Sources:
        monkeypatch.setattr(module, "SRC", package.parent)
        return Sources(curriculum, package)

    @pytest.fixture
    def choice(self, sources: Sources, tmp_path: Path) -> Choice:
        self.tasks = sources.curriculum.tasks
        entry = {"state": "done", "source": sources.of(self.tasks[0]).whole}
        self.state = tmp_path / "state.json"
        update_state(lambda state: {"progress": {"tiny_llm": {"1.1.1": entry}}}, self.state)
        self.found = assess(sources, self.state)
        return Choice(self.tasks, self.found)

    def save(self, sources: Sources, old: str, new: str, name: str = "basics") -> Sources:
        path = sources.package / "model" / f"{name}.py"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        return Sources(sources.curriculum, sources.package, sources)

    def test_it_begins_with_the_first_task_that_is_not_done_and_goes_round(self, choice: Choice):
        first, second, third = self.tasks
        assert choice.current is second
        assert choice.following(self.found) is third
        choice.current = third
        assert choice.following(self.found) is second
        assert (choice.back(), choice.back(), choice.back()) == (True, True, False)
        assert choice.current is first

    def test_with_nothing_left_it_stays_at_the_last_task(self, sources: Sources, choice: Choice):
        first = self.tasks[0]
        assert Choice([first], self.found).current is first
        assert Choice([first], self.found).following(self.found) is None

    def test_it_follows_changes_to_the_code_of_another_task(self, sources: Sources, choice: Choice):
        now = self.save(sources, "def third(x):\n    return x", "def third(x):\n    return -x", "more")
        choice.follow(sources, now)
        assert choice.current is self.tasks[2]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("def second(x):\n    return x", "def second(x):\n    return -x"),
            ("return x", "return -x"),
            ("def first", "HELPER = 1\n\n\ndef first"),
            ("def second(x):", "def second(x:"),
        ],
        ids=["its own code", "the code of all", "the code of none", "a broken file"],
    )
    def test_it_stays_for_other_changes(self, sources: Sources, choice: Choice, old: str, new: str):
        choice.follow(sources, self.save(sources, old, new))
        assert choice.current is self.tasks[1]

    def test_it_stays_while_a_file_of_another_task_is_broken(self, sources: Sources, choice: Choice):
        choice.follow(sources, self.save(sources, "def third(x):", "def third(x:", "more"))
        assert choice.current is self.tasks[1]


def test_two_saves_of_one_size_in_one_second_are_told_apart(package: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = package / "model" / "basics.py"
    found = []
    for number in (1, 2):
        file.write_text(f"NUMBER = {number}\n")
        os.utime(file, (1e9, 1e9))
        found.append(Solution("tiny_llm").module("model.basics").NUMBER)
    assert found == [1, 2]


def test_states_are_told_in_words():
    def told(**values: object) -> str:
        seen = {"state": "done", "passed": False, "left": 0, "cases": 9, "passed_cases": 7, "when": "", "ran_on": ""}
        return state_text(module.TaskProgress(**seen | {"by": ""} | values))

    assert told(state="failing") == "failing, 7/9 cases"
    assert told(state="to do", left=3) == "to do, 3 stubs"
    assert told(state="changed", passed=True) == "done, then changed"
    assert told(state="changed") == "changed, not run"
    assert told(state="blocked", by="Week 1 Day 2 Task 3") == "blocked by 1.2.3"
    assert told(state="given") == "from the reference"


def test_no_keys_without_a_terminal(monkeypatch: pytest.MonkeyPatch):
    with open(os.devnull) as nothing:
        for stdin in (nothing, None):
            monkeypatch.setattr("sys.stdin", stdin)
            with Keyboard() as keyboard:
                assert not keyboard.there
