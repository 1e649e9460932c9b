"""What a run of a day's tests wrote down is read with suspicion: only what was expected counts, and all of it must."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from conftest import SmallCourse

from course.curriculum import Day, load
from course.grading.course_file import Course, HiddenTable
from course.grading.grade import TaskGrade
from course.grading.runner import DayRun, check, environment, read_events
from course.grading.score import IN_FULL, LEAST_TEXT, MOST_TEXT, score_day
from course.summary import Result


@pytest.fixture
def course(small_course: SmallCourse) -> Course:
    curriculum = load(small_course.root / "curriculum")
    return Course(curriculum, days=curriculum.days)


@pytest.fixture
def day(course: Course) -> Day:
    return course.days[0]


def result(name: str, kind: str = "passed", task: int = 1, **fields: object) -> Result:
    return Result(
        **{"week": 1, "day": 1, "task": task, "name": name, "kind": kind, "by": "", "text": "", "output": ""} | fields
    )


def expected(*names: str, task: int = 1) -> list[dict[str, object]]:
    return [{"id": f"t::{name}", "task": task, "name": name, "property": f"{name} holds."} for name in names]


def told(*results: Result) -> list[dict[str, object]]:
    return [{"result": asdict(one), "id": f"t::{one.name}", "seconds": 0.1} for one in results]


def written(tmp_path: Path, *events: object, end: bytes = b"") -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(json.dumps(event).encode() + b"\n" for event in events) + end)
    return path


def run_of(day: Day, path: Path, status: int | None = 0, said: str = "") -> DayRun:
    run = read_events(day, path)
    check(run, status, said)
    return run


def test_a_whole_run_counts(day: Day, tmp_path: Path):
    events = {"collected": expected("A[0]", "A[1]")}, *told(result("A[0]"), result("A[1]")), {"end": 0}
    run = run_of(day, written(tmp_path, *events))
    assert (run.problem, len(run.results)) == ("", 2)


def test_lines_that_are_no_events_and_cases_that_nobody_expects_do_not_count(day: Day, tmp_path: Path):
    other = [result("B[0]"), result("A[0]", week=2), result("A[0]", task=2)]
    events = {"collected": expected("A[0]")}, *told(*other), 3, [], {"result": 1}, {"unknown": 1}
    run = run_of(day, written(tmp_path, *events, end=b'{"end": \xff\n{"result": {"week"'))
    assert run.results == {}
    assert run.problem == "the test run broke off: 1 of 1 cases did not report"


def test_a_failure_is_never_taken_back(day: Day, tmp_path: Path):
    for kinds in (("failed", "passed"), ("passed", "failed")):
        events = {"collected": expected("A[0]")}, *told(*(result("A[0]", kind) for kind in kinds)), {"end": 1}
        assert run_of(day, written(tmp_path, *events), 1).results["t::A[0]"].kind == "failed"


@pytest.mark.parametrize(
    ("kind", "end", "status"), [("failed", 0, 0), ("todo", 0, 0), ("passed", 0, 1), ("passed", 1, 0), ("failed", 1, 0)]
)
def test_a_run_that_contradicts_itself_loses_all(day: Day, tmp_path: Path, kind: str, end: int, status: int):
    events = {"collected": expected("A[0]")}, *told(result("A[0]", kind)), {"end": end}
    run = run_of(day, written(tmp_path, *events), status)
    assert run.results == {}
    assert "contradicts what it wrote down: none of it counts" in run.problem


@pytest.mark.parametrize(
    ("events", "status", "problem"),
    [
        ([], 0, "the tests of the day hold no case"),
        ([{"collected": []}, {"end": 5}], 5, "the test run ended with exit status 5: the last line"),
        ([{"collected": expected("A[0]")}, *told(result("A[0]"))], 0, "broke off: 0 of 1 cases did not report"),
        ([{"collected": expected("A[0]")}], -9, "the test run ended with signal SIGKILL: the last line"),
        ([{"error": "no module"}, {"end": 2}], 2, "the tests cannot be collected: no module"),
        (
            [{"collected": expected("A[0]")}, *told(result("A[0]", "boundary", text="a\nno namespace")), {"end": 1}],
            1,
            "1 cases could not be graded: no namespace",
        ),
    ],
)
def test_why_a_run_is_not_whole_is_told(day: Day, tmp_path: Path, events: list[object], status: int, problem: str):
    assert problem in run_of(day, written(tmp_path, *events), status, "the last line").problem


def test_a_run_without_a_file_has_no_cases(day: Day, tmp_path: Path):
    assert run_of(day, tmp_path / "nothing", None).expected == {}


def scored(
    course: Course, day: Day, tmp_path: Path, *results: Result, names: tuple[str, ...] = ("A[0]", "A[1]")
) -> TaskGrade:
    events = {"collected": [*expected(*names), *expected("B[0]", task=2)]}, *told(*results), {"end": 1}
    return score_day(course, day, read_events(day, written(tmp_path, *events)), [], None)[0]


@pytest.mark.parametrize(
    ("kinds", "state", "passed"),
    [
        (("passed", "passed"), "done", 2),
        (("passed",), "not run", 1),
        ((), "not run", 0),
        (("passed", "failed"), "failing", 1),
        (("failed",), "failing", 0),
        (("todo", "passed"), "to do", 1),
        (("passed", "not run"), "not run", 1),
        (("passed", "skipped"), "skipped", 1),
        (("passed", "boundary"), "not graded", 1),
    ],
)
def test_only_all_cases_passed_is_done(
    course: Course, day: Day, tmp_path: Path, kinds: tuple[str, ...], state: str, passed: int
):
    task = scored(course, day, tmp_path, *(result(f"A[{i}]", kind) for i, kind in enumerate(kinds)))
    assert (task.state, task.passed, task.total) == (state, passed, 2)
    assert task.points == (10 if state == "done" else 0)


def test_a_task_without_cases_earns_nothing(course: Course, day: Day, tmp_path: Path):
    events = {"collected": expected("A[0]")}, *told(result("A[0]")), {"end": 1}
    tasks = score_day(course, day, read_events(day, written(tmp_path, *events)), [], None)
    assert [(task.state, task.points) for task in tasks] == [("done", 10), ("no graded checks", 0)]
    assert [task.state for task in score_day(course, day, None, [], None)] == ["not run", "not run"]


def test_hidden_parts_need_every_seed(course: Course, day: Day, tmp_path: Path):
    events = {"collected": expected("A[0]")}, *told(result("A[0]")), {"end": 0}
    run, table = read_events(day, written(tmp_path, *events)), HiddenTable(seeds=2, share=0.5)
    for runs, points, state in (([run, run], 10, "done"), ([run], 5, "not run"), ([], 5, "not run")):
        task = score_day(course, day, run, runs, table)[0]
        assert (task.points, task.hidden.state) == (points, state)
    cut = DayRun(day, run.expected, {}, problem="killed")
    task = score_day(course, day, run, [run, cut], table)[0]
    assert (task.points, task.hidden.state) == (5, "failing")
    assert score_day(course, day, cut, [run, run], table)[0].points == 0


def test_many_long_failures_are_cut(course: Course, day: Day, tmp_path: Path):
    names = tuple(f"A[{i}]" for i in range(IN_FULL + 2))
    failures = (result(name, "failed", text="x" * 10_000, output="y\n" * 100) for name in names)
    lengths = [len(case.text) for case in scored(course, day, tmp_path, *failures, names=names).cases]
    assert max(lengths) < MOST_TEXT + 300
    assert lengths[IN_FULL] < LEAST_TEXT + 20


def test_the_grader_passes_no_settings_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.setenv("PYTHONSTARTUP", "/tmp/evil.py")
    assert not {"PYTEST_ADDOPTS", "PYTHONSTARTUP"} & environment().keys()
    assert environment()["PATH"] == os.environ["PATH"]
