"""All result files of a grade tell the same points, hold nothing that a program chokes on, and are always whole."""

import csv
import io
import json
import os
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.errors import CourseError
from course.grading.formats import FORMATS, write
from course.grading.formats.gradescope import encode as gradescope
from course.grading.formats.sums import points_told
from course.grading.grade import CaseGrade, Grade, HiddenGrade, LeaderboardEntry, TaskGrade, read
from course.grading.text import clean, code

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "gradescope-results.json").read_text())
NASTY = "]]>&<b>```\n# 9 of 9 points\n| total | | | 9/9 |\n=cmd()"


def task(number: int, points: float, most: float, hidden: HiddenGrade | None = None, **fields: object) -> TaskGrade:
    state = "done" if points else "failing"
    cases = (CaseGrade("A[0]", "It adds.", "passed" if points else "failed", "", "" if points else NASTY),)
    first = {"week": 1, "day": 2, "task": number, "title": "Sums | *and* more"}
    shown = {"visibility": "visible", "hidden_visibility": "after_published"}
    counts = {"state": state, "passed": int(bool(points)), "total": 1}
    values = first | shown | counts | {"points": points, "max_points": most, "hidden": hidden, "cases": cases} | fields
    return TaskGrade(**values)


def grade(*tasks: TaskGrade, **fields: object) -> Grade:
    values: dict[str, object] = {
        "title": "Course",
        "student": "=alice",
        "submission": "work.zip",
        "course": "0.1.0",
        "started": datetime(2027, 1, 1, tzinfo=UTC),
        "seconds": 1.5,
        "complete": True,
        "tasks": tasks,
    }
    return Grade(**values | fields)


HALF = HiddenGrade(0.0, 3.0, "failing", 1, 2, ("It adds.",))
FULL = HiddenGrade(3.0, 3.0, "done", 2, 2)
UNRUN = HiddenGrade(0.0, 3.0, "not run", 0, 0)
GRADES = {
    "plain": grade(task(1, 10, 10), task(2, 0, 5)),
    "fractions": grade(task(1, 0.1, 0.1), task(2, 0.2, 0.2), task(3, 28.57, 28.57)),
    "hidden": grade(task(1, 10, 10, FULL), task(2, 7, 10, HALF), task(3, 0, 10, UNRUN)),
    "nothing ran": grade(task(1, 0, 10, state="not run", cases=()), problem="it broke", complete=False),
    "no tasks": grade(),
    "measured": grade(task(1, 1, 1), leaderboard=(LeaderboardEntry("decode", 12.5, "desc", "tokens/s", "emulator"),)),
}


@pytest.mark.parametrize("name", GRADES)
def test_all_files_tell_the_same_points(tmp_path: Path, name: str):
    write(GRADES[name], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FORMATS)
    expected = {(GRADES[name].points, GRADES[name].max_points)}
    assert points_told(tmp_path) == dict.fromkeys(FORMATS, expected)


@pytest.mark.parametrize("name", GRADES)
def test_gradescope_gets_what_it_documents(name: str):
    result = json.loads(gradescope(GRADES[name]))
    jsonschema.validate(result, SCHEMA)


def test_the_schema_notices_what_gradescope_would_refuse():
    good = json.loads(gradescope(GRADES["measured"]))
    for path, value in (("score", "1"), ("visibility", "open"), ("tests", None), ("extra", 1), ("output", "\x1b[31m")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(good | {path: value}, SCHEMA)


def test_hidden_parts_are_tests_of_their_own_with_a_verdict_and_no_message():
    tests = {test["number"]: test for test in json.loads(gradescope(GRADES["hidden"]))["tests"]}
    assert list(tests) == ["1.2.1", "1.2.1h", "1.2.2", "1.2.2h", "1.2.3", "1.2.3h"]
    assert [tests[n]["score"] for n in tests] == [7, 3, 7, 0, 0, 0]
    assert [tests[n]["max_score"] for n in tests] == [7, 3] * 3
    assert tests["1.2.2h"]["output"] == "not all properties hold for other inputs:\n- It adds."
    assert tests["1.2.3h"]["output"] == "not run: the visible tests of the task must pass first"
    assert {test["visibility"] for number, test in tests.items() if number.endswith("h")} == {"after_published"}


def test_the_report_says_what_the_column_hidden_means():
    about = "The points of hidden variants, in the column hidden, are a part of the points."
    assert f"\n\n{about}\n" in FORMATS["report.md"](GRADES["hidden"]).decode()
    assert about not in FORMATS["report.md"](GRADES["plain"]).decode()


def test_junit_counts_what_it_holds():
    root = ET.fromstring(FORMATS["junit.xml"](GRADES["hidden"]))
    for key, path in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(root.get(key)) == len(list(root.iter(path)))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("6", "2", "1")


def test_no_cell_is_a_formula():
    rows = list(csv.reader(io.StringIO(FORMATS["result.csv"](GRADES["plain"]).decode())))
    assert {row[0] for row in rows[1:]} == {"'=alice"}


def test_a_failure_cannot_leave_its_fence():
    text = FORMATS["report.md"](GRADES["plain"]).decode()
    fence = re.search(r"^(`{3,})text$", text, re.MULTILINE)[1]
    assert len(fence) == 4
    assert text.count(f"\n{fence}") == 2


def test_names_of_files_in_notes_are_code_and_all_else_stands_for_itself():
    text = FORMATS["report.md"](grade(notes=("not `my_file.py`, *but* `<b>_x", "a\n`b"))).decode()
    assert "- not `my_file.py`, \\*but\\* \\`\\<b\\>\\_x\n- a \\`b\n" in text
    assert code("my_`x\n.py") == "`my_'x .py`"


@settings(max_examples=60, deadline=None)
@given(st.text(), st.lists(st.tuples(st.integers(0, 9999), st.booleans()), max_size=6))
def test_any_text_and_any_points_give_files_that_agree(tmp_path_factory: pytest.TempPathFactory, text, points):
    tasks = [
        task(
            number,
            cents / 100 if done else 0,
            cents / 100,
            state="done" if done else "failing",
            title=clean(text) or "x",
            cases=(CaseGrade("A[0]", clean(text), "failed", text=clean(text)),),
        )
        for number, (cents, done) in enumerate(points)
    ]
    made = grade(*tasks, student=clean(text), notes=(clean(text),), problem=clean(text))
    folder = tmp_path_factory.mktemp("results")
    write(made, folder)
    assert set().union(*points_told(folder).values()) == {(made.points, made.max_points)}
    jsonschema.validate(json.loads((folder / "results.json").read_text()), SCHEMA)
    assert read(folder) == made


def test_a_result_is_read_back_and_a_damaged_one_told(tmp_path: Path):
    write(GRADES["hidden"], tmp_path)
    assert read(tmp_path) == read(tmp_path / "result.json") == GRADES["hidden"]
    assert read(tmp_path).tasks[0].mistakes == {}
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(CourseError, match=r"result.json is not a result of `grade` .*: grade the submission again"):
        read(tmp_path)
    (tmp_path / "result.json").write_bytes(msgspec.json.encode(grade(format=99)))
    with pytest.raises(CourseError, match="has format 99, this course reads 1: grade the submission again"):
        read(tmp_path)
    with pytest.raises(CourseError, match="cannot be read"):
        read(tmp_path / "nobody")


def test_an_old_result_stays_whole_until_the_new_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(GRADES["plain"], tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CourseError, match=r"cannot write results to .* \(No space left on device\): choose another"):
        write(GRADES["hidden"], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
