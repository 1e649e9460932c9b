"""The pytest plugin: cases become test items, stubs become TODO or blocked, and a table per task ends the run.

It knows the registry and the test files' names; how code runs is `course.local` or `course.isolate`, what the end
of a run looks like is `course.summary`."""

import inspect
import json
import re
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path

import pytest

from course.case import Case
from course.curriculum import Curriculum, Day, load
from course.errors import CourseError
from course.failure import Stopped
from course.observer import Observer, make_observer
from course.paths import CURRICULUM
from course.summary import Result, Summary

_TEST_FILE = re.compile(r"week_(\d+)/test_day_(\d+)\.py$")
_CURRICULUM = pytest.StashKey[Curriculum]()
_SUMMARY = pytest.StashKey[Summary]()
_OBSERVERS = pytest.StashKey[dict[Path, Observer]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("course")
    group.addoption("--solution", default="tiny_llm", choices=["tiny_llm", "tiny_llm_ref"], help="package under test")
    group.addoption("--task", type=int, help="only this task's cases")
    group.addoption("--case", help="only the case of this name")
    group.addoption("--results", type=Path, help="write the results of all cases to this JSON file")
    group.addoption("--seed-base", type=int, default=0, help="seed of the inputs")
    group.addoption("--isolate", action="store_true", help="run the code under test in a process of its own")
    group.addoption("--curriculum", type=Path, default=CURRICULUM, help="folder of the registry")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_OBSERVERS] = {}
    config.stash[_SUMMARY] = Summary(config.getoption("solution"))
    config.pluginmanager.register(_Hooks(config.stash[_SUMMARY]), "course-summary")


def pytest_unconfigure(config: pytest.Config) -> None:
    for observer in config.stash.get(_OBSERVERS, {}).values():
        observer.close()


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> "list[CaseItem] | None":
    if not isinstance(obj, Case):
        return None
    day = _day_of(collector)
    if obj.task > len(day.tasks):
        raise pytest.Collector.CollectError(f"{name}: {day.label} has {len(day.tasks)} tasks, not {obj.task}")
    if obj.name != name:
        raise pytest.Collector.CollectError(f"{name} is the case {obj.name}: a case has one name")
    ids = [f"{name}[{index}]" for index in range(len(obj.params))]
    return [CaseItem.from_parent(collector, name=item, case=obj, index=i, day=day) for i, item in enumerate(ids)]


def _day_of(collector: pytest.Collector) -> Day:
    found = _TEST_FILE.search(collector.path.as_posix())
    if not found:
        raise pytest.Collector.CollectError("graded cases belong in week_N/test_day_D.py")
    stash = collector.config.stash
    try:
        if _CURRICULUM not in stash:
            stash[_CURRICULUM] = stash[_SUMMARY].curriculum = load(collector.config.getoption("curriculum"))
        return stash[_CURRICULUM].day(int(found[1]), int(found[2]))
    except CourseError as error:
        raise pytest.Collector.CollectError(str(error)) from None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Notes tasks of whole files that have no case at all, then keeps what was asked for."""
    task, name = config.getoption("task"), config.getoption("case")
    cases = [item for item in items if isinstance(item, CaseItem)]
    if name is None and not any("::" in arg for arg in config.args):
        graded = {item.task for item in cases}
        days = {item.day.label: item.day for item in cases}.values()
        tasks = [t for day in days for t in day.tasks if task in (None, t.number)]
        config.stash[_SUMMARY].ungraded = [t for t in tasks if t not in graded]
    if task is not None or name is not None:
        kept = [item for item in cases if task in (None, item.case.task) and name in (None, item.case.name)]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


class CaseItem(pytest.Item):
    """One case with one set of parameters."""

    def __init__(self, *, case: Case, index: int, day: Day, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.case, self.index, self.day = case, index, day
        self.task = day.tasks[case.task - 1]

    def runtest(self) -> None:
        observer = self._observer()
        observer.begin()

        def observe(inputs: object) -> object:
            return observer.observe(self.case, inputs, self.day.forbidden)

        inputs = self._inputs()
        if self.case.check:
            # A property that makes its own examples takes observe alone; with inputs it may take both.
            self.case.check(*[observe, inputs][: len(inspect.signature(self.case.check).parameters)])
        else:
            self.case.verify(inputs, observe(inputs))

    def _observer(self) -> Observer:
        """One for each test file, made when it is first needed."""
        observers = self.config.stash[_OBSERVERS]
        if self.path not in observers:
            for other in observers.values():
                other.close()
            observers.clear()
            names = sorted({name for day in self.config.stash[_CURRICULUM].days for name in day.forbidden})
            options = self.config.option
            observers[self.path] = make_observer(options.isolate, self.path, options.solution, names)
        return observers[self.path]

    def _inputs(self) -> object:
        if not self.case.inputs:
            return None
        import numpy as np

        seed = [self.config.getoption("seed_base"), self.index, *self.case.name.encode()]
        return self.case.inputs(np.random.default_rng(seed), **self.case.params[self.index])

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:
        from course.explain import explain

        return explain(self.task, self.case, self.index, excinfo.value, self.path)

    def result(self, report: pytest.TestReport, error: BaseException | None) -> Result:
        """What the summary keeps of a finished run."""
        stub = error.failure.stub if isinstance(error, Stopped) else None
        if stub and stub.label == self.task.label:
            kind = "todo"
        elif stub:
            kind = "blocked"
        else:
            kind = report.outcome
        output = "".join(text for name, text in report.sections if name.startswith("Captured"))
        place = (self.day.week, self.day.day, self.case.task)
        by = stub.label if kind == "blocked" else ""
        return Result(*place, self.name, kind, by, report.longreprtext, output)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if isinstance(item, CaseItem) and (report.when == "call" or report.outcome != "passed"):
        result = item.result(report, call.excinfo.value if call.excinfo else None)
        report.course = asdict(result)  # plain, so that it also travels between processes of pytest-xdist
    return report


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> tuple[str, str, str] | None:
    result = getattr(report, "course", None)
    if result and result["kind"] == "todo":
        return "todo", "T", "TODO"
    if result and result["kind"] == "blocked":
        return "blocked", "B", f"blocked by {result['by']}"
    return None


class _Hooks:
    """Hooks that need the summary of this run."""

    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if result := getattr(report, "course", None):
            self.summary.results.append(Result(**result))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if path := session.config.getoption("results"):
            path.write_text(json.dumps([asdict(result) for result in self.summary.results]))
        if session.exitstatus == pytest.ExitCode.OK and not self.summary.passed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        own_failures = config.option.tbstyle == "no"
        terminalreporter.write(self.summary.text(terminalreporter.hasmarkup, failures=own_failures))
