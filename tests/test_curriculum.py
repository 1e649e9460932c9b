"""The registry loads into objects that know their place, and each mistake in it is named with file, key and fix."""

import re
from pathlib import Path

import pytest

from course.curriculum import Curriculum, load
from course.errors import CourseError
from course.paths import TESTS

WEEK = """\
week = 1
title = "From matmul to text"
forbidden = ["softmax", "nn"]

[[day]]
day = 1
title = "Attention"
chapter = "week1-01-attention.md"
hours = 3.0
needs = []
[day.given]
"model/basics.py" = ["LARGE"]
[[day.task]]
title = "A stable softmax"
points = 10
hints = ["a nudge", "an invariant", "nearly code"]
[day.task.symbols]
"model/basics.py" = ["softmax"]
[[day.task]]
title = "Attention"
points = 15
hints = ["first", "second", "third"]
[day.task.symbols]
"model/attention.py" = ["attend", "Heads.__call__"]

[[day]]
day = 2
title = "Positions"
chapter = "week1-02-positions.md"
hours = 2
needs = ["1.1"]
forbidden = ["fast.rope", "nn"]
[[day.task]]
title = "Rotation"
points = 5
hints = ["a", "b", "c"]
[day.task.symbols]
"model/basics.py" = ["rotate"]
"""


def read(folder: Path, **weeks: str) -> Curriculum:
    for name, text in weeks.items():
        (folder / f"{name}.toml").write_text(text)
    return load(folder)


@pytest.fixture
def curriculum(tmp_path: Path) -> Curriculum:
    return read(tmp_path, week1=WEEK)


def test_a_task_knows_its_place(curriculum: Curriculum):
    task = curriculum.task(1, 1, 2)
    assert (task.week, task.day, task.number, task.title, task.points) == (1, 1, 2, "Attention", 15)
    assert task.hints == ("first", "second", "third")
    assert task.label == "Week 1 Day 1 Task 2"
    assert task.anchor == "book/src/week1-01-attention.md#task-2"
    assert task.stub("attend") == "Week 1 Day 1 Task 2: attend - see book/src/week1-01-attention.md#task-2"


def test_a_day_knows_its_files_and_all_forbidden_names(curriculum: Curriculum):
    day = curriculum.day(1, 2)
    assert day.tests == TESTS / "week_1" / "test_day_2.py"
    assert day.mutants == TESTS / "week_1" / "mutants" / "day_2.py"
    assert day.alternatives == tuple(TESTS / "week_1" / "alternatives" / f"day_2_{x}.py" for x in "ab")
    assert day.forbidden == ("softmax", "nn", "fast.rope")
    assert day.needs == ("1.1",)


def test_a_file_may_hold_symbols_of_several_days(curriculum: Curriculum):
    tasks, given = curriculum.files["model/basics.py"]
    assert {name: task.label for name, task in tasks.items()} == {
        "softmax": "Week 1 Day 1 Task 1",
        "rotate": "Week 1 Day 2 Task 1",
    }
    assert given == {"LARGE"}


def test_weeks_come_in_order_of_their_numbers(tmp_path: Path):
    later = WEEK.replace("week1-", "week2-").replace("week = 1", "week = 2").replace("model/", "text/")
    curriculum = read(tmp_path, week2=later, week1=WEEK)
    assert [week.week for week in curriculum.weeks] == [1, 2]
    assert [day.label for day in curriculum.days] == [f"Week {w} Day {d}" for w in (1, 2) for d in (1, 2)]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((2, 1, 1), "week 2 does not exist: choose from 1"),
        ((1, 3, 1), "week 1 has no day 3: choose from 1, 2"),
        ((1, 1, 0), "week 1 day 1 has no task 0: choose from 1, 2"),
    ],
)
def test_an_unknown_place_says_what_exists(curriculum: Curriculum, place: tuple[int, int, int], message: str):
    with pytest.raises(CourseError, match=f"^{re.escape(message)}$"):
        curriculum.task(*place)


@pytest.mark.parametrize(
    ("old", "new", "key", "reason"),
    [
        ('title = "Rotation"', 'tilte = "Rotation"', "$.day[1].task[0]", "tilte"),
        ('title = "Rotation"\n', "", "$.day[1].task[0]", "title"),
        ("points = 5", "points = 0", "$.day[1].task[0].points", ">= 1"),
        ("points = 5", 'points = "5"', "$.day[1].task[0].points", "int"),
        ("hours = 2", "hours = 0", "$.day[1].hours", "> 0"),
        ('["a", "b", "c"]', '["a", "b"]', "$.day[1].task[0].hints", "length 3"),
        ('["a", "b", "c"]', '["a", " ", "c"]', "$.day[1].task[0].hints[1]", "empty"),
        ('title = "Rotation"', 'title = ""', "$.day[1].task[0].title", "empty"),
        ('title = "Positions"', 'title = ""', "$.day[1].title", "empty"),
        ("day = 2", "day = 3", "$.day[1].day", "expected 2"),
        ("week = 1\n", "week = 2\n", "$.week", "weeks count"),
        ('needs = ["1.1"]', 'needs = ["1.2"]', "$.day[1].needs", "no earlier day"),
        ('needs = ["1.1"]', 'needs = ["day 1"]', "$.day[1].needs", "no earlier day"),
        ('chapter = "week1-02-positions.md"\n', "", "$.day[1]", "chapter"),
        ('"week1-02-positions.md"', '"week1-03-positions.md"', "$.day[1].chapter", "week1-02-topic.md"),
        ('= ["rotate"]', '= ["softmax"]', '$.day[1].task[0].symbols."model/basics.py"', "listed already"),
        ('= ["rotate"]', '= ["LARGE"]', '$.day[1].task[0].symbols."model/basics.py"', "listed already"),
        ('= ["rotate"]', '= ["rotate()"]', '$.day[1].task[0].symbols."model/basics.py"', "no symbol"),
        ('= ["rotate"]', "= []", "$.day[1].task[0].symbols", "empty"),
        (
            '"model/attention.py"',
            '"../attention.py"',
            '$.day[0].task[1].symbols."../attention.py"',
            "inside the package",
        ),
        ('"model/attention.py"', '"model/__init__.py"', '$.day[0].task[1].symbols."model/__init__.py"', "__init__"),
        ('["fast.rope", "nn"]', '["fast rope"]', "$.day[1].forbidden", "dotted name"),
    ],
)
def test_a_mistake_is_named_with_file_and_key(tmp_path: Path, old: str, new: str, key: str, reason: str):
    assert WEEK.count(old) == 1
    with pytest.raises(CourseError) as error:
        read(tmp_path, week1=WEEK.replace(old, new))
    text = str(error.value)
    assert "week1.toml: " in text
    assert key in text
    assert reason in text
    assert "\n" not in text


def test_a_gap_between_weeks_is_an_error(tmp_path: Path):
    with pytest.raises(CourseError, match=r"week3\.toml: \$\.week"):
        read(tmp_path, week1=WEEK, week3=WEEK.replace("week = 1", "week = 3").replace("week1-", "week3-"))


def test_a_damaged_file_is_named_with_the_line(tmp_path: Path):
    with pytest.raises(CourseError, match=r"week1\.toml: .*line 2"):
        read(tmp_path, week1="week = 1\ntitle =\n")


def test_an_empty_folder_is_an_error(tmp_path: Path):
    with pytest.raises(CourseError, match=r"holds no weekN\.toml"):
        load(tmp_path)


def test_the_course_itself_loads():
    assert [day.day for day in load().weeks[0].days] == [1, 2, 3, 4, 5, 6, 7]


def test_a_forbidden_name_stays_allowed_to_files_of_days_that_teach_other_things(tmp_path: Path):
    text = WEEK.replace('"model/basics.py" = ["rotate"]', '"model/rope.py" = ["rotate"]')
    curriculum = read(tmp_path, week1=text.replace('forbidden = ["fast.rope", "nn"]', 'forbidden = ["exp", "nn"]'))
    rules = curriculum.forbidden_on(curriculum.day(1, 2))
    assert rules == {"softmax": [], "nn": [], "exp": ["model/basics.py", "model/attention.py"]}
    assert curriculum.forbidden_on(curriculum.day(1, 1)) == {"softmax": [], "nn": []}


@pytest.mark.parametrize("file", ["extensions/src/a.py", "model/a.cpp", "extensions/CMakeLists.txt", "model/a"])
def test_files_of_other_kinds_hold_no_tasks(tmp_path: Path, file: str):
    with pytest.raises(CourseError, match=r"a task's file ends in"):
        read(tmp_path, week1=WEEK.replace('"model/attention.py"', f'"{file}"'))


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('"extensions/metal/a.metal" = ["a"]', "emulator"),
        ('"extensions/src/a.cpp" = ["Class.eval_cpu"]', "library"),
    ],
)
def test_what_is_built_for_a_day_and_those_that_need_it(tmp_path: Path, line: str, part: str):
    curriculum = read(tmp_path, week1=WEEK.replace('"model/basics.py" = ["softmax"]', line))
    assert [curriculum.built_for(day) for day in curriculum.days] == [{part}, {part}]
    later = read(tmp_path, week1=WEEK.replace('"model/basics.py" = ["rotate"]', line))
    assert [later.built_for(day) for day in later.days] == [set(), {part}]


def test_nothing_is_built_for_a_day_in_python(curriculum: Curriculum):
    assert [curriculum.built_for(day) for day in curriculum.days] == [set(), set()]
