"""`grade --self-check` grades what must earn known points, and notices a grader that gives others."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from course import cli
from course.boundary import choose
from course.curriculum import Curriculum, Day, load
from course.grading import copies as copies_module
from course.grading import self_check as self_check_module
from course.grading.copies import Copy, copies
from course.grading.course_file import Course
from course.grading.desk import Desk
from course.grading.draft import Draft
from course.grading.formats import write
from course.grading.grade import Grade
from course.grading.intake import collect, task_files
from course.grading.self_check import Outcome, check_copy
from course.work.pristine import pristine


@pytest.fixture(scope="module")
def curriculum() -> Curriculum:
    return load()


@pytest.fixture(scope="module")
def day(curriculum: Curriculum) -> Day:
    """One with few cases."""
    return curriculum.day(1, 4)


@pytest.fixture(scope="module")
def desk(curriculum: Curriculum, day: Day) -> Desk:
    return Desk(Course(curriculum, days=(day,)), (day,), choose(), pristine(curriculum), seeds=(2**70,))


@pytest.fixture(scope="module")
def outcomes(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    found = copies(desk.course.curriculum, desk.days)
    return [check_copy(desk.on(copy.days), copy, tmp_path_factory.mktemp("copy")) for copy in found]


def test_full_none_half_and_mistaken_copies_earn_what_they_should(outcomes: list[Outcome], day: Day):
    points = [task.points for task in day.tasks]
    expected = [0, sum(points), points[0], sum(points[:-1])]
    assert [outcome.grade.points for outcome in outcomes] == expected, [o.problems for o in outcomes]
    assert all(not outcome.problems for outcome in outcomes)
    assert [outcome.copy.name.split(" ")[0] for outcome in outcomes] == ["the", "the", "everything", "Week"]


def test_the_reference_leaves_nothing_to_note(outcomes: list[Outcome]):
    assert outcomes[1].grade.notes == ()


def test_other_points_are_noticed_everywhere(
    desk: Desk, outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    copy, generous = outcomes[0].copy, outcomes[1].grade

    def grade(self: Desk, submission: Path, output: Path, student: str) -> Grade:
        write(generous, output)
        return generous

    monkeypatch.setattr(Desk, "grade", grade)
    problems = check_copy(desk, copy, tmp_path).problems
    assert "Week 1 Day 4 Task 1 earns 10, not 0 (done)" in problems
    assert "results.json says 25/25, not 0/25" in problems
    assert len(problems) == len(copy.days[0].tasks) + 5


@pytest.mark.parametrize("hand_in", [copies_module.as_folder, copies_module.as_zip, copies_module.as_tar])
def test_copies_are_handed_in_whole(desk: Desk, tmp_path: Path, hand_in: Callable[..., Path]):
    taken = collect(hand_in(desk.starter, tmp_path / "work"), desk.course.curriculum)
    assert taken.files == {name: desk.starter[name] for name in task_files(desk.course.curriculum)}
    assert not taken.notes


def test_without_a_reference_only_the_starter_is_graded(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(copies_module, "has_reference", lambda: False)
    (copy,) = copies(desk.course.curriculum, desk.days)
    monkeypatch.setattr(self_check_module, "check_copy", lambda desk, copy, folder: Outcome(copy, _empty(desk), 0, ()))
    assert self_check_module.self_check(desk) == 0
    assert "has no reference solution: only the untouched starter was graded" in capsys.readouterr().out
    assert copy.earning == frozenset()


def test_a_difference_is_exit_status_1(desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def wrong(desk: Desk, copy: Copy, folder: Path) -> Outcome:
        return Outcome(copy, _empty(desk), 3, ("something differs",))

    monkeypatch.setattr(self_check_module, "check_copy", wrong)
    assert cli.main(["grade", "--self-check", "--week", "1", "--day", "4"]) == 1
    out = capsys.readouterr().out
    assert "something differs" in out
    assert "boundary: " in out


def _empty(desk: Desk) -> Grade:
    return replace(Draft(desk.course, desk.days, "", "x"), problem="").grade()
