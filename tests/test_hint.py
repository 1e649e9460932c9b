"""`pdm run hint`: levels come one at a time, and a lost or damaged memory does no harm."""

from pathlib import Path

import pytest

from course import cli, hints
from course.curriculum import Task
from course.hints import next_level, remember

REGISTRY = """\
week = 1
title = "T"
[[day]]
day = 1
title = "T"
chapter = "week1-01-topic.md"
hours = 1
[[day.task]]
title = "A task [of] note"
points = 1
hints = ["What is first?", "Rows of mx.array[..., None] sum to one.", "x = y[0]\\n\\nthen return x"]
[day.task.symbols]
"model/basics.py" = ["softmax"]
"""
HINTS = ["What is first?", "Rows of mx.array[..., None] sum to one.", "x = y[0]"]
TASK = Task(
    title="T", points=1, hints=("a", "b", "c"), symbols={}, week=1, day=2, number=3, chapter="week1-02-topic.md"
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / ".course" / "state.json"


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from course.curriculum import load

    (tmp_path / "week1.toml").write_text(REGISTRY)
    monkeypatch.setattr("course.curriculum.load", lambda: load(tmp_path))
    monkeypatch.setattr("course.commands.hint.next_level", lambda task: next_level(task, state))
    monkeypatch.setattr("course.commands.hint.remember", lambda task, level: remember(task, level, state))
    monkeypatch.setenv("COLUMNS", "80")


def show(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    assert cli.main(["hint", "--week", "1", "--day", "1", "--task", "1", *arguments]) == 0
    return capsys.readouterr().out


def test_each_run_shows_the_next_hint(capsys: pytest.CaptureFixture):
    outputs = [show(capsys) for _ in range(4)]
    for output, level in zip(outputs, [1, 2, 3, 3], strict=True):
        assert [hint in output for hint in HINTS] == [n == level for n in (1, 2, 3)]
        assert f"hint {level} of 3" in output
        assert "Week 1 Day 1 Task 1: A task [of] note" in output
        assert "book/src/week1-01-topic.md#task-1" in output
        assert ("Next hint: pdm run hint --week 1 --day 1 --task 1\n" in output) == (level < 3)
        assert ("last hint" in output) == (level == 3)


def test_a_level_can_be_asked_for(capsys: pytest.CaptureFixture):
    output = show(capsys, "--level", "2")
    assert HINTS[1] in output
    assert "--task 1 --level 3" in output
    assert HINTS[2] in show(capsys)
    assert HINTS[0] in show(capsys, "--level", "1")
    assert HINTS[2] in show(capsys)


def test_the_output_is_plain_and_80_columns_wide(capsys: pytest.CaptureFixture):
    output = show(capsys, "--level", "2")
    assert "\x1b" not in output
    assert all(len(line) <= 80 for line in output.splitlines())


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("2", "1", "1"), "error: week 2 does not exist: choose from 1\n"),
        (("1", "4", "1"), "error: week 1 has no day 4: choose from 1\n"),
        (("1", "1", "9"), "error: week 1 day 1 has no task 9: choose from 1\n"),
    ],
)
def test_an_unknown_place_gives_one_line(place: tuple[str, str, str], message: str, capsys: pytest.CaptureFixture):
    week, day, task = place
    assert cli.main(["hint", "--week", week, "--day", day, "--task", task]) == 2
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[1]",
        '{"hints": 3}',
        '{"hints": {"1.1.1": "2"}}',
        '{"hints": {"1.1.1": 99}}',
        '{"hints": {"1.1.1": [1]}}',
    ],
)
def test_a_damaged_memory_starts_anew(state: Path, damage: str, capsys: pytest.CaptureFixture):
    state.parent.mkdir()
    state.write_text(damage)
    assert HINTS[0] in show(capsys)
    assert HINTS[1] in show(capsys)


@pytest.mark.parametrize("damage", ["", "{", "[1]", "[" * 100_000])
def test_a_damaged_memory_is_kept_and_told_once(state: Path, damage: str, capsys: pytest.CaptureFixture):
    state.parent.mkdir()
    state.write_text(damage)
    assert (hints.read_state(state), hints.read_state(state)) == ({}, {})
    told = capsys.readouterr()
    line = ".course/state.json was damaged, and progress begins anew: it is kept as state.damaged.json\n"
    assert (told.out, told.err) == ("", line)
    assert (state.parent / "state.damaged.json").read_text() == damage


def test_a_deleted_memory_starts_anew(state: Path, capsys: pytest.CaptureFixture):
    show(capsys)
    state.unlink()
    assert HINTS[0] in show(capsys)


def test_tasks_are_remembered_apart_and_other_values_kept(state: Path):
    state.parent.mkdir()
    state.write_text('{"other": 1, "hints": {"1.1.1": 2}}')
    remember(TASK, 1, state)
    assert next_level(TASK, state) == 2
    assert hints.read_state(state) == {"other": 1, "hints": {"1.1.1": 2, "1.2.3": 1}}
    assert [path.name for path in state.parent.iterdir()] == ["state.json"]


def test_hints_work_where_nothing_can_be_written(tmp_path: Path):
    blocked = tmp_path / "file" / "state.json"
    blocked.parent.write_text("no folder")
    remember(TASK, 2, blocked)
    assert next_level(TASK, blocked) == 1
