"""`course.toml`: points, visibility, what counts; each mistake in one line with file, key, limit and fix. Secrets."""

from pathlib import Path

import pytest
from conftest import SmallCourse

from course.curriculum import Curriculum, load
from course.errors import CourseError
from course.grading.course_file import Course, load_course
from course.grading.seeds import load_seeds
from course.paths import ROOT

SECRET = "correct horse battery staple"


@pytest.fixture
def curriculum(small_course: SmallCourse) -> Curriculum:
    return load(small_course.root / "curriculum")


def read(tmp_path: Path, curriculum: Curriculum, text: str) -> Course:
    path = tmp_path / "course.toml"
    path.write_text(text)
    return load_course(path, curriculum)


def points(course: Course) -> list[float]:
    return [course.points_of(task) for task in course.curriculum.tasks]


def test_without_a_file_the_curriculum_counts(curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("course.grading.course_file.ROOT", tmp_path)
    course = load_course(None, curriculum)
    assert points(course) == [10, 5, 20]
    assert course.days == curriculum.days
    assert (course.hidden, course.late, course.path) == (None, None, None)
    (tmp_path / "course.toml").write_text("[points]\n'1' = 70\n")
    assert points(load_course(None, curriculum)) == [20, 10, 40]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('"1.1.1" = 7.5', [7.5, 5, 20]),
        ('"1.1" = 30', [20, 10, 20]),
        ('"1.1" = 1', [0.67, 0.33, 20]),
        ('"1" = 100', [28.57, 14.29, 57.14]),
        ('"1.1" = 30\n"1.2.1" = 0', [20, 10, 0]),
    ],
)
def test_points_are_set_by_task_day_or_week(tmp_path: Path, curriculum: Curriculum, table: str, expected: list[float]):
    assert points(read(tmp_path, curriculum, f"[points]\n{table}\n")) == expected


def test_the_nearest_visibility_counts_and_hidden_parts_are_never_more_open(tmp_path: Path, curriculum: Curriculum):
    text = '[visibility]\ndefault = "after_due_date"\n"1.1" = "visible"\n"1.1.2" = "hidden"\nhidden = "visible"\n'
    course = read(tmp_path, curriculum, text)
    assert [course.visibility_of(task) for task in course.tasks] == ["visible", "hidden", "after_due_date"]
    assert [course.visibility_of(task, hidden=True) for task in course.tasks] == ["visible", "hidden", "after_due_date"]
    assert load_course(None, curriculum).visibility_of(course.tasks[0], hidden=True) == "after_published"
    course = read(tmp_path, curriculum, '[hidden]\nshow = "nothing"\n')
    assert course.visibility_of(course.tasks[0], hidden=True) == "hidden"


def test_points_of_days_that_are_not_graded_are_noted(tmp_path: Path, curriculum: Curriculum):
    text = '[graded]\ndays = ["1.1"]\n[points]\n'
    assert read(tmp_path, curriculum, f'{text}"1.1" = 5\n').notes == ()
    note = "[points] names days that are not graded: Week 1 Day 2"
    assert read(tmp_path, curriculum, f'{text}"1.2.1" = 5\n').notes == (note,)


def test_graded_days_are_weeks_and_days(tmp_path: Path, curriculum: Curriculum):
    assert [day.day for day in read(tmp_path, curriculum, '[graded]\ndays = ["1.2"]\n').days] == [2]
    assert [day.day for day in read(tmp_path, curriculum, '[graded]\nweeks = [1]\ndays = ["1.2"]\n').days] == [1, 2]


MISTAKES = {
    "title = 3": 'title = 3 is not a text: try title = "Serving LLMs, spring"',
    "titel = 'x'": "titel is no key of a course file: did you mean title? choose from title, extra_files; "
    "the tables are [graded], [points],",
    "[grade]\nx = 1": "[grade] is no table of a course file: did you mean graded? choose from graded, points,",
    "points = 3": "points is a table: write [points] on a line of its own",
    "[graded]\nweeks = [7]": '"7" in [graded.weeks]: week 7 does not exist: choose from 1',
    "[graded]\nweeks = []": "weeks = [] in [graded] is not a list of numbers of weeks, each once: try weeks = [1, 2]",
    "[graded]\nweeks = [1, 1]": "is not a list of numbers of weeks, each once",
    '[graded]\ndays = ["1"]': 'is not a list of days as texts, each once: try days = ["3.1"]',
    '[points]\n"1.1.9" = 3': '"1.1.9" in [points]: week 1 day 1 has no task 9: choose from 1, 2',
    '[points]\n"1.1" = -3': '"1.1" = -3 in [points] is not a number from 0 to 10000: try "1.1" = 20',
    '[points]\n"1.1" = true': '"1.1" = true in [points] is not a number',
    '[points]\n"1.1" = inf': "= inf in [points] is not a number",
    '[points]\n"1.1" = 3\n"1.1.2" = 4': 'points "1.1.2" and "1.1" both set Week 1 Day 1 Task 2: keep one of them',
    "[points]\nfirst = 3": 'points.first is no key of a course file: choose from "week.day.task", "week.day"',
    "[points]\n1.1.3 = 20": '1.1.3 in [points] is read as tables: write "1.1.3" = 20, with quotes',
    "[points.1]\n1 = 7.5": '1.1 in [points] is read as tables: write "1.1" = 7.5, with quotes',
    '[visibility]\n1.1 = "hidden"': 'write "1.1" = "hidden", with quotes',
    '[visibility]\ndefault = "open"': "is not one of visible, after_due_date, after_published, hidden",
    '[visibility]\n"1.9" = "hidden"': '"1.9" in [visibility]: week 1 has no day 9: choose from 1, 2',
    "[hidden]\nseeds = 0": "seeds = 0 in [hidden] is not a whole number from 1 to 20: try seeds = 2",
    "[hidden]\nshare = 1.5": "share = 1.5 in [hidden] is not a number from 0.01 to 1: try share = 0.3",
    "[hidden]\nsecret = 'x'": "hidden.secret is no key of a course file",
    "[hidden]\nfile = 'x'\nvariable = 'X'": "[hidden] has both file and variable: keep the one that holds",
    "[late]\ndeadline = 2027-01-31": "deadline = 2027-01-31 in [late] is not a date with time and offset",
    "[late]\ndeadline = 2027-01-31T10:00:00": "date with time and offset: try deadline = 2027-01-31T23:59:00+01:00",
    "[limits]\nday_seconds = 1": "day_seconds = 1 in [limits] is not a whole number from 10 to 3600",
    'extra_files = ["../x.py"]': "is not a list of files of the package or extension, each once",
    'extra_files = ["conftest.py"]': "is not a list of files of the package or extension, each once",
    'extra_files = ["model/basics.py"]': '"model/basics.py" in extra_files is a file of the course already',
    "x = ": "is no TOML: ",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_each_mistake_is_one_line(tmp_path: Path, curriculum: Curriculum, text: str):
    with pytest.raises(CourseError) as caught:
        read(tmp_path, curriculum, text)
    message = str(caught.value)
    assert message.startswith("course.toml: ")
    assert MISTAKES[text] in message
    assert "\n" not in message


def test_a_missing_or_unreadable_file_is_told(tmp_path: Path, curriculum: Curriculum):
    with pytest.raises(CourseError, match=r"nothing.toml cannot be read \(No such file"):
        load_course(tmp_path / "nothing.toml", curriculum)
    (tmp_path / "course.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(CourseError, match="is not UTF-8 text at byte 9"):
        load_course(tmp_path / "course.toml", curriculum)


def test_the_example_says_what_holds_without_it_or_more():
    course = load_course(ROOT / "course.example.toml", load())
    assert course.hidden
    assert course.late
    assert {day.week for day in course.days} == {1, 2, 3}


def secret_file(tmp_path: Path, text: str = SECRET) -> Path:
    path = tmp_path / "seeds"
    path.write_text(f"{text}\n")
    path.chmod(0o600)
    return path


def test_seeds_come_from_a_file_a_variable_or_the_command_line(
    tmp_path: Path, curriculum: Curriculum, monkeypatch: pytest.MonkeyPatch
):
    path = secret_file(tmp_path)
    by_file = load_seeds(read(tmp_path, curriculum, '[hidden]\nseeds = 3\nfile = "seeds"\n'))
    assert len(set(by_file)) == 3
    assert min(by_file) > 1 << 64
    assert load_seeds(Course(curriculum), path) == by_file[:2]
    monkeypatch.setenv("MY_SEEDS", SECRET)
    course = read(tmp_path, curriculum, '[hidden]\nseeds = 3\nvariable = "MY_SEEDS"\n')
    assert load_seeds(course) == by_file
    with pytest.raises(CourseError, match="need the environment variable MY_SEEDS: set it, or use --seeds FILE"):
        load_seeds(course)  # the first call took it out of the environment
    assert load_seeds(course, secret_file(tmp_path, SECRET + "!")) != by_file
    assert load_seeds(Course(curriculum)) == ()


def test_a_secret_that_is_none_is_told(tmp_path: Path, curriculum: Curriculum, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(CourseError, match="has 5 characters, fewer than 16: make one with python3"):
        load_seeds(Course(curriculum), secret_file(tmp_path, "12345"))
    with pytest.raises(CourseError, match=r"nothing, cannot be read \(No such file or directory\): make it with"):
        load_seeds(Course(curriculum), tmp_path / "nothing")
    with pytest.raises(CourseError, match=r"\[hidden\] names no secret"):
        load_seeds(read(tmp_path, curriculum, "[hidden]\nseeds = 3\n"))
    assert not capsys.readouterr().err
    path = secret_file(tmp_path)
    path.chmod(0o644)
    load_seeds(Course(curriculum), path)
    assert f"warning: others can read {path}" in capsys.readouterr().err
