"""`compare` of the reference with itself, for one task of each kind that the registry has."""

import shutil

import pytest

from course.compared.compare import compare
from course.curriculum import Task, load

CURRICULUM = load()


def first(suffix: str) -> Task:
    """The first task that is all in files of this kind."""
    return next(task for task in CURRICULUM.tasks if all(file.endswith(suffix) for file in task.symbols))


def first_of(week: int) -> str:
    """The first task of the week that is all Python."""
    tasks = (task for task in CURRICULUM.tasks if task.week == week and all(f.endswith(".py") for f in task.symbols))
    task = next(tasks)
    return f"{task.week}.{task.day}.{task.number}"


@pytest.mark.parametrize("name", [first_of(week.week) for week in CURRICULUM.weeks])
def test_python_of_each_week(name: str) -> None:
    found = compare(CURRICULUM, CURRICULUM.task(*map(int, name.split("."))), 1, learner="tiny_llm_ref")
    assert found.state == "passes", [case.problem for case in found.cases if case.problem]
    different = [case.name for case in found.cases if case.agreement.kind == "different"]
    assert len(different) <= 1, found.summary  # a case that measures memory may meet a moment unlike the other two
    assert all(case.learner and case.reference and case.ratio for case in found.cases)
    assert not found.emulated


def test_metal_kernels_have_counters() -> None:
    found = compare(CURRICULUM, first(".metal"), 1, learner="tiny_llm_ref")
    assert found.state == "passes"
    assert found.emulated
    counted = [case for case in found.cases if case.reference.counters]
    assert counted
    for case in counted:
        assert case.learner.counters == case.reference.counters, "counters do not depend on the machine or the moment"
    assert any(line.startswith("kernel ") and "as many bytes" in line for line in found.summary)


@pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler")
def test_cpp_kernels_have_calls() -> None:
    task = first(".cpp")
    from course.compared.compare import _cases

    case = _cases(CURRICULUM.day(task.week, task.day), task, None)[0].name
    found = compare(CURRICULUM, task, 1, case, learner="tiny_llm_ref")
    assert found.state == "passes"
    assert any(case.learner.calls == case.reference.calls != {} for case in found.cases)
