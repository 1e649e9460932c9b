"""Mutants and alternatives are judged rightly, and mistakes in them are told."""

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from course import curriculum as registry
from course.alternatives import problem_of, run_alternative, sections_of
from course.alternatives import verdict as alternative_verdict
from course.commands import mutants as command
from course.curriculum import Day
from course.errors import CourseError
from course.gates import starter_problems
from course.mutants import Mutant, load_mutants, problems_of, run_mutant, verdict
from course.mutation_score import changes_of, score_day
from course.scratch import grade, scratch
from course.warm import TIMED_OUT

if TYPE_CHECKING:
    from conftest import SmallCourse

_PACKAGE = '''
SCALE = 1

def first(x):
    """Twice x."""
    if x is None:
        raise ValueError("no x")
    return _twice(x) * 1

def _twice(x):
    return 2 * x

def linear(x):
    return x + 1

def second(x):
    return max(x, 3)
'''

_TESTS = '''
from course.case import case

@case(task=1, params=[dict(x=x) for x in (0, 5)])
class FirstDoubles:
    """Twice x."""
    def inputs(rng, x): return x
    def observe(solution, x): return solution.module("model.basics").first(x)
    def verify(x, value): assert value == 2 * x, "it was not doubled" if value == x else "wrong"

@case(task=1)
class LinearAdds:
    """One more."""
    def inputs(rng): return 5
    def observe(solution, x): return solution.module("model.basics").linear(x)
    def verify(x, value): assert value == 6, "nothing was added"

@case(task=2)
class SecondIsLarge:
    """At least three."""
    def inputs(rng): return 1
    def observe(solution, x): return solution.module("model.basics").second(x)
    def verify(x, value): assert value == 3, "too small"
'''


class Project:
    """A reference with its day's tests."""

    def __init__(self, course: "SmallCourse", day: Day) -> None:
        self.course, self.day = course, day
        self.reference = course.package("tiny_llm_ref", basics=_PACKAGE)
        course.tests(_TESTS)

    def mutant(self, **changes: object) -> Mutant:
        fields = {
            "name": "not-doubled", "task": 1, "file": "model/basics.py", "old": "return 2 * x", "new": "return x",
            "message": "it was not doubled", "killer": "FirstDoubles",
        }  # fmt: skip
        return Mutant(**fields | changes)

    def judge(self, **changes: object) -> str | None:
        mutant = self.mutant(**changes)
        return verdict(
            mutant,
            run_mutant(self.day, mutant, "--case", mutant.killer, *self.course.options, reference=self.reference),
        )


@pytest.fixture
def project(small_course: "SmallCourse", monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(registry, "TESTS", small_course.root / "tests_refsol")
    return Project(small_course, registry.load(small_course.root / "curriculum").day(1, 1))


def test_mutant_dies_with_its_message(project: Project):
    assert project.judge() is None


def test_the_reference_stays_as_it_is(project: Project):
    before = (project.reference / "model/basics.py").read_text()
    project.judge()
    assert (project.reference / "model/basics.py").read_text() == before


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"new": "return x + x"}, "survived FirstDoubles"),
        ({"message": "it was tripled"}, "FirstDoubles fails without saying 'it was tripled'"),
        ({"killer": "First"}, "the killer First is no case of that day"),
        ({"new": "return ("}, "FirstDoubles fails without saying"),
        ({"new": "__import__('os')._exit(0)"}, "the killer FirstDoubles did not run to its end"),
    ],
)
def test_other_ends_are_problems(project: Project, changes: dict[str, object], problem: str):
    assert problem in project.judge(**changes)


def test_mistakes_in_mutants_are_told(project: Project):
    mutants = [
        project.mutant(),
        project.mutant(),
        project.mutant(name="twice", old="return"),
        project.mutant(name="never", old="nowhere"),
        project.mutant(name="no-file", file="model/none.py"),
        project.mutant(name="same", new="return 2 * x"),
        project.mutant(name="no-task", task=3),
        project.mutant(name="mute", message=""),
    ]
    problems = "\n".join(problems_of(project.day, mutants, project.reference))
    assert "two mutants are called not-doubled" in problems
    assert "twice: its text occurs 4 times in model/basics.py, not once" in problems
    assert "never: its text occurs 0 times" in problems
    assert "no-file: the reference has no file model/none.py" in problems
    assert "same: old and new are the same text" in problems
    assert "no-task: Week 1 Day 1 has no task 3" in problems
    assert "mute: needs a message" in problems
    assert "Week 1 Day 1 Task 2 has 0 mutants: it needs at least 3" in problems


def test_mutants_are_loaded_from_beside_the_tests(project: Project):
    path = project.course.write("mutants.py", f"from course.mutants import Mutant\nMUTANTS = [{project.mutant()!r}]\n")
    assert load_mutants(path) == [project.mutant()]
    with pytest.raises(CourseError, match="does not exist"):
        load_mutants(path.with_name("none.py"))


def alternative(project: Project, text: str) -> Path:
    return project.course.write("day_1_a.py", text)


def test_alternative_replaces_definitions(project: Project):
    path = alternative(project, '"""Other ways."""\n# file: model/basics.py\ndef first(x):\n    return x + x\n')
    assert problem_of(path, project.reference) is None
    report = run_alternative(project.day, path, *project.course.options, reference=project.reference)
    assert alternative_verdict(report) is None
    assert len(report.results) == 4


def test_wrong_alternative_is_told(project: Project):
    path = alternative(project, "# file: model/basics.py\ndef first(x):\n    return x\n")
    report = run_alternative(project.day, path, *project.course.options, reference=project.reference)
    assert "it was not doubled" in alternative_verdict(report)


def test_sections():
    text = "doc\n# file: a.py\nx = 1\n# file: b.py\ny = 2\n# file: a.py\nz = 3\n"
    assert sections_of(text) == {"a.py": "\nx = 1\n\nz = 3\n", "b.py": "\ny = 2\n"}


@pytest.mark.parametrize(
    ("text", "problem"), [("x = 1\n", "has no section"), ("# file: model/none.py\nx = 1\n", "no file model/none.py")]
)
def test_mistakes_in_alternatives_are_told(project: Project, text: str, problem: str):
    assert problem in problem_of(alternative(project, text), project.reference)
    assert "does not exist" in problem_of(project.course.root / "none.py", project.reference)


def test_run_that_hangs_is_cut_off(project: Project):
    project.course.tests("import time\ntime.sleep(60)\n")
    with scratch(project.reference) as package:
        report = grade(package, [project.day.tests], *project.course.options, timeout=2.0)
    assert (report.status, report.results) == (TIMED_OUT, [])


def test_changes_are_inside_the_days_functions_only(project: Project):
    changes = [str(change) for change in changes_of(project.day, project.reference)]
    assert "model/basics.py:8: _twice(x) * 1  ->  (_twice(x) / 1)" in changes
    assert "model/basics.py:8: 1  ->  (2)" in changes
    assert "model/basics.py:6: x is None  ->  (x is not None)" in changes
    assert "model/basics.py:11: 2 * x  ->  (2 / x)" in changes
    assert not [change for change in changes if ":2:" in change or ":7:" in change or "Twice" in change]


def test_every_change_is_still_a_program(project: Project):
    for change in changes_of(project.day, project.reference):
        with scratch(project.reference) as package:
            change.apply(package)
            compile((package / change.file).read_bytes(), change.file, "exec")


def test_score_counts_what_survives(project: Project, monkeypatch: pytest.MonkeyPatch):
    kept = [c for c in changes_of(project.day, project.reference) if c.line in (8, 14)]
    kept = [c for c in kept if "*" in c.before or "+" in c.before]
    monkeypatch.setattr("course.mutation_score.changes_of", lambda day, reference: kept)
    text = score_day(project.day, 0, 0, 1, *project.course.options, reference=project.reference)
    assert text.splitlines() == [
        "Week 1 Day 1: 1 of 2 killed (50 %)",
        "  model/basics.py:8: _twice(x) * 1  ->  (_twice(x) / 1)",
    ]


def test_score_samples_with_a_seed(project: Project):
    changes = changes_of(project.day, project.reference)
    assert random.Random(0).sample(changes, 3) == random.Random(0).sample(changes, 3)


def test_untouched_starter_must_not_earn_anything(project: Project, monkeypatch: pytest.MonkeyPatch):
    stub = '    raise NotImplementedError("Week 1 Day 1 Task 1: f - see book/src/week1-01-one.md#task-1")\n'

    def generate(curriculum: object, reference: Path, target: Path) -> None:
        text = "".join(f"def {name}(x):\n{stub}" for name in ("first", "linear")) + "def second(x):\n    return 3\n"
        project.course.package("starter/tiny_llm", basics=text).rename(target)

    def graded(package: Path, tests: list[Path], **options: object) -> object:
        return grade(package, tests, *project.course.options, **options)

    monkeypatch.setattr("course.gates.generate", generate)
    monkeypatch.setattr("course.gates.grade", graded)
    curriculum = registry.load(project.course.root / "curriculum")
    folder = project.course.root / "out"
    folder.mkdir()
    problems = starter_problems(curriculum, folder)
    assert len(problems) == 2
    assert "test_day_2.py does not exist: Week 1 Day 2 is not graded" in problems[0]
    assert "Week 1 Day 1 Task 2: SecondIsLarge[0] is passed on the untouched starter" in problems[1]


def test_results_file_is_json(project: Project):
    path = project.course.root / "results.json"
    grade(project.reference, [project.day.tests], *project.course.options)
    assert {row["kind"] for row in json.loads(path.read_text())} == {"passed"}


def test_command_needs_a_week_for_a_day():
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(CourseError, match="--day 2 needs --week"):
        command.run(parser.parse_args(["--day", "2"]))
