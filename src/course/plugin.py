"""The pytest plugin: cases become test items, stubs become TODO or blocked, and a table per task ends the run.

It knows the registry and the test files' names; how a case runs is `course.item`, what the end of a run looks like
is `course.summary`."""

import json
import re
from collections import Counter
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path

import pytest

import course.route  # noqa: F401 - before anything imports mlx.core
from course.boundary.secret import close_memory, read_seed
from course.boundary.settings import Boundary
from course.case import Case
from course.curriculum import Day, load
from course.errors import CourseError
from course.events import Events
from course.item import BOUNDARY, CURRICULUM, OBSERVERS, SEED, TIMEOUTS, UNBUILT, WHOLE, CaseItem, package_of
from course.library import build
from course.paths import CURRICULUM as REGISTRY
from course.summary import Result, Summary
from course.verdict import Verdict

_WEEK = re.compile(r"week_\d+")
_TEST_FILE = re.compile(r"week_(\d+)/test_day_(\d+)\.py$")
_MOST_LINES = 20
_SUMMARY = pytest.StashKey[Summary]()
_EVENTS = pytest.StashKey[Events]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("course")
    group.addoption("--solution", default="tiny_llm", choices=["tiny_llm", "tiny_llm_ref"], help="package under test")
    group.addoption("--task", type=int, help="only this task's cases")
    group.addoption("--case", help="only the case of this name")
    group.addoption("--results", type=Path, help="write the results of all cases to this JSON file")
    group.addoption("--verdict", type=Path, help="note how far the run has come in this file (see course.verdict)")
    group.addoption("--seed-base", type=int, default=0, help="seed of the inputs")
    group.addoption("--isolate", action="store_true", help="run the code under test in a process of its own")
    group.addoption("--boundary", type=Path, help="run the code under test behind the boundary in this file")
    group.addoption("--seed-fd", type=int, help="read a secret seed from this pipe, instead of --seed-base")
    group.addoption("--events", type=Path, help="write a line of JSON to this file for each thing that happens")
    group.addoption("--curriculum", type=Path, default=REGISTRY, help="folder of the registry")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[OBSERVERS], config.stash[TIMEOUTS], config.stash[UNBUILT] = {}, Counter(), {}
    config.stash[WHOLE] = Counter()
    _take_secrets(config)
    config.stash[_EVENTS] = Events(config.getoption("events"))
    config.stash[_SUMMARY] = Summary(config.getoption("solution"))
    config.pluginmanager.register(_Hooks(config.stash[_SUMMARY], config), "course-summary")


def _take_secrets(config: pytest.Config) -> None:
    """What a boundary and its grader share, and what only the grader may know."""
    boundary, seed = config.getoption("boundary"), config.getoption("seed_fd")
    try:
        config.stash[BOUNDARY] = Boundary.read(boundary) if boundary else None
        config.stash[SEED] = config.getoption("seed_base") if seed is None else read_seed(seed)
    except CourseError as error:
        raise pytest.UsageError(str(error)) from None
    if boundary or seed is not None:
        close_memory()


def pytest_unconfigure(config: pytest.Config) -> None:
    for observer in config.stash.get(OBSERVERS, {}).values():
        observer.close()
    if events := config.stash.get(_EVENTS, None):
        events.close()


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> list[CaseItem] | None:
    if not isinstance(obj, Case) or not _WEEK.fullmatch(collector.path.parent.name):
        return None  # a case elsewhere is an example in a test of the course's own tools
    day = _day_of(collector)
    if not 1 <= obj.task <= len(day.tasks):
        raise pytest.Collector.CollectError(f"{name}: {day.label} has {len(day.tasks)} tasks, not {obj.task}")
    if obj.name != name:
        raise pytest.Collector.CollectError(f"{name} is the case {obj.name}: a case has one name")
    ids = [f"{name}[{index}]" for index in range(len(obj.params))]
    collector.config.stash[WHOLE][day.tasks[obj.task - 1]] += len(ids)
    return [CaseItem.from_parent(collector, name=item, case=obj, index=i, day=day) for i, item in enumerate(ids)]


def _day_of(collector: pytest.Collector) -> Day:
    found = _TEST_FILE.search(collector.path.as_posix())
    if not found:
        raise pytest.Collector.CollectError(f"{collector.path.name}: graded cases belong in week_N/test_day_D.py")
    stash = collector.config.stash
    try:
        if CURRICULUM not in stash:
            stash[CURRICULUM] = stash[_SUMMARY].curriculum = load(collector.config.getoption("curriculum"))
        return stash[CURRICULUM].day(int(found[1]), int(found[2]))
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


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compiles what cases need: before the first case, so that no time limit counts the wait."""
    config = session.config
    config.stash[_EVENTS].tell(collected=[item.expected() for item in session.items if isinstance(item, CaseItem)])
    parts = set().union(*(item.built_parts for item in session.items if isinstance(item, CaseItem)))
    if parts and not config.option.collectonly:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        problems = build(sorted(parts), package_of(config), reporter.write_line, config.stash[BOUNDARY])
        for problem in problems.values():
            reporter.write_line(problem)  # at once: where all cases are TODO no failure would tell it
        config.stash[UNBUILT] = problems


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if isinstance(item, CaseItem) and (report.when == "call" or report.outcome != "passed"):
        result = item.result(report, call.excinfo.value if call.excinfo else None)
        report.course = asdict(result)  # plain, so that it also travels between processes of pytest-xdist
        item.config.stash[_EVENTS].tell(result=report.course, id=item.nodeid, seconds=report.duration)
    return report


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> tuple[str, str, str] | None:
    result = getattr(report, "course", None)
    if not result:
        return None
    shown = {
        "todo": ("T", "TODO"),
        "blocked": ("B", f"blocked by {result['by']}"),
        "not run": ("N", "NOT RUN"),
        "boundary": ("G", "NOT GRADED"),
    }.get(result["kind"])
    if config.get_verbosity() < -1:
        shown = "", ""  # the summary has a line for each task; letters would be noise
    return (result["kind"], *shown) if shown else None


class _Hooks:
    """Hooks that need the summary of this run."""

    def __init__(self, summary: Summary, config: pytest.Config) -> None:
        self.summary, self.config = summary, config

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._note(session.config, Verdict())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Says which case is running: to the process that waits, and on a quiet terminal which task, in one line."""
        if isinstance(item, CaseItem):
            self._note(item.config, Verdict(f"{item.name} of {item.task.label}"))
            item.config.stash[_EVENTS].tell(running=item.nodeid)
        reporter = item.config.pluginmanager.get_plugin("terminalreporter")
        if isinstance(item, CaseItem) and reporter and reporter.isatty and reporter.verbosity < -1:
            reporter.rewrite(f"{item.task.label}: {item.task.title}", erase=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if result := getattr(report, "course", None):
            self.summary.results.append(Result(**result))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.config.stash[_EVENTS].tell(error="\n".join(report.longreprtext.splitlines()[-_MOST_LINES:]))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if path := session.config.getoption("results"):
            path.write_text(json.dumps([asdict(result) for result in self.summary.results]))
        if session.exitstatus == pytest.ExitCode.OK and not self.summary.passed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._note(session.config, Verdict(status=int(session.exitstatus), cases=len(self.summary.results)))
        session.config.stash[_EVENTS].tell(end=int(session.exitstatus))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        own_failures = config.option.tbstyle == "no"
        if terminalreporter.isatty and terminalreporter.verbosity < -1:
            terminalreporter.rewrite("", erase=True)
        terminalreporter.ensure_newline()
        if own_failures:
            for report in terminalreporter.stats.get("error", []):
                lines = report.longreprtext.splitlines()[-_MOST_LINES:]
                terminalreporter.write("\n".join([f"{report.nodeid} cannot be used:", *lines, ""]))
        terminalreporter.write(self.summary.text(terminalreporter.hasmarkup, failures=own_failures))

    def _note(self, config: pytest.Config, verdict: Verdict) -> None:
        if path := config.getoption("verdict"):
            verdict.write(path)
