"""One run of a day's tests on a tree: a pytest process of its own, watched from outside, read by its events.

What the run writes down itself, case by case, is what counts; a run that is cut off keeps the cases that it has told.
A secret seed reaches it through a pipe. Learner code runs in the boundary that the process sets up, never here."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil

from course.curriculum import Day
from course.grading.text import one_line
from course.paths import ROOT, SRC
from course.signals import signal_name
from course.summary import Result

_PYTEST = ("-m", "pytest", "-qq", "--tb=no", "-rN", "--no-header", "--import-mode=importlib", "--disable-warnings")
_PLUGINS = ("-p", "no:cacheprovider", "-p", "course.plugin", "-p", "pytest_timeout")
_MOST_EVENTS = 64 << 20
_ENDED = (0, 1)
"""Exit statuses of a run that came to its end: all passed, or not all."""


class Expected(msgspec.Struct, frozen=True):
    """A case that was collected: it must report, or it has not passed."""

    id: str
    task: int
    name: str
    property: str = ""


class Event(msgspec.Struct, frozen=True):
    """One line that a run has written."""

    collected: list[Expected] | None = None
    running: str | None = None
    id: str | None = None
    result: Result | None = None
    error: str | None = None
    end: int | None = None


@dataclass
class DayRun:
    """What is known of a run: the cases expected, their results by id, and why it did not come to its end."""

    day: Day
    expected: dict[str, Expected] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    end: int | None = None  # the exit status as the run itself tells it
    problem: str = ""
    seconds: float = 0.0

    def of(self, task: int) -> list[tuple[Expected, Result | None]]:
        """The cases of one task, each with its result."""
        return [(case, self.results.get(case.id)) for case in self.expected.values() if case.task == task]


class Stop(threading.Event):
    """Set to end all runs early; `reason` says why."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = "the grader was stopped"


@dataclass(frozen=True)
class Runner:
    """Runs days on one tree: `boundary` is the file that says where learner code may run.

    `folder` is for what the grader alone reads. `seconds` is the time for one run; `deadline` (of `time.monotonic`)
    ends all of them.
    """

    boundary: Path
    curriculum: Path
    tests: Path
    folder: Path
    seconds: float
    deadline: float
    stop: Stop

    def run(self, day: Day, seed: int | None = None, extra_seconds: float = 0.0) -> DayRun:
        """Run the day's tests, with the public seed or a secret one."""
        if self.stop.is_set():
            return DayRun(day, problem=self.stop.reason)
        started = time.monotonic()
        events = self.folder / f"{day.week}-{day.day}-{threading.get_ident()}.jsonl"
        events.unlink(missing_ok=True)
        printed = events.with_suffix(".txt")
        status, problem = self._finish(self._command(day, events), seed, self.seconds + extra_seconds, printed)
        run = read_events(day, events)
        run.problem = problem or run.problem
        check(run, status, _last_line(printed))
        run.seconds = time.monotonic() - started
        return run

    def _command(self, day: Day, events: Path) -> list[str]:
        command = [
            sys.executable,
            "-P",
            *_PYTEST,
            *_PLUGINS,
            "--rootdir",
            str(ROOT),
            "-c",
            str(ROOT / "pyproject.toml"),
        ]
        command += ["--solution", "tiny_llm", "--curriculum", str(self.curriculum)]
        tests = self.tests / day.tests.parent.name / day.tests.name
        return [*command, "--boundary", str(self.boundary), "--events", str(events), str(tests)]

    def _finish(self, command: list[str], seed: int | None, seconds: float, printed: Path) -> tuple[int | None, str]:
        """Wait for the process and all it has started: its exit status, and why it was ended."""
        with _seed_pipe(seed) as (fds, options), printed.open("wb") as output:
            process = subprocess.Popen(
                [*command, *options],
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=fds,
                start_new_session=True,
            )
        try:
            return self._wait(process, seconds)
        finally:
            kill(process)

    def _wait(self, process: subprocess.Popen, seconds: float) -> tuple[int | None, str]:
        end = time.monotonic() + seconds
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(0.1), ""
            if self.stop.is_set():
                return None, self.stop.reason
            if time.monotonic() > self.deadline:
                return None, "the time for the whole submission was used up"
            if time.monotonic() > end:
                return None, f"the tests of the day did not end within {seconds:g} s"


def environment() -> dict[str, str]:
    """For the process that runs the tests: nothing of the instructor's other projects."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PYTHON"))}
    settings = {"PYTHONPATH": str(SRC), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return kept | settings | {"PYTHONHASHSEED": "0"}


def read_events(day: Day, path: Path) -> DayRun:
    """What a run has written so far; a line cut off in the middle ends it."""
    run = DayRun(day)
    if not path.exists():
        return run
    with path.open("rb") as file:
        for line in file.read(_MOST_EVENTS).splitlines():
            with suppress(msgspec.DecodeError):
                _take(run, msgspec.json.decode(line, type=Event))
    return run


def _take(run: DayRun, event: Event) -> None:
    if event.collected is not None:
        run.expected = {case.id: case for case in event.collected}
    if event.result is not None and event.id in run.expected and _fits(event.result, run.expected[event.id], run.day):
        earlier = run.results.get(event.id)
        if earlier is None or earlier.kind == "passed":  # a failure is never taken back
            run.results[event.id] = event.result
    if event.error is not None:
        run.problem = f"the tests cannot be collected: {event.error}"
    if event.end is not None:
        run.end = event.end


def _fits(result: Result, case: Expected, day: Day) -> bool:
    return (result.week, result.day, result.task, result.name) == (day.week, day.day, case.task, case.name)


def check(run: DayRun, status: int | None, said: str = "") -> None:
    """Says why not all that was expected has run. A run whose end contradicts its cases loses them all.

    status, said: how its process ended, None where it was ended, and its last words.
    """
    missing = run.expected.keys() - run.results.keys()
    ungraded = [result for result in run.results.values() if result.kind == "boundary"]
    if status is not None and status not in _ENDED and not run.problem:
        run.problem = f"the test run ended with {_status(status)}" + (f": {said}" if said else "")
    if run.problem:
        return
    if not run.expected:
        run.problem = "the tests of the day hold no case"
    elif ungraded:
        why = one_line(ungraded[0].text.splitlines()[-1]) if ungraded[0].text else "no reason is known"
        run.problem = f"{len(ungraded)} cases could not be graded: {why}"
    elif missing or run.end is None:
        run.problem = f"the test run broke off: {len(missing)} of {len(run.expected)} cases did not report"
    elif status != run.end or (status == 0 and any(result.kind != "passed" for result in run.results.values())):
        run.problem = f"exit status {status} of the test run contradicts what it wrote down: none of it counts"
        run.results.clear()


@contextmanager
def _seed_pipe(seed: int | None) -> Iterator[tuple[tuple[int, ...], list[str]]]:
    """Descriptors to pass on and the option that names them; a seed fits into a pipe, so nobody waits."""
    if seed is None:
        yield (), []
        return
    reader, writer = os.pipe()
    try:
        os.write(writer, str(seed).encode())
        os.close(writer)
        yield (reader,), ["--seed-fd", str(reader)]
    finally:
        os.close(reader)


def kill(process: subprocess.Popen) -> None:
    """End a process with its group and its descendants, also those that made a group of their own."""
    family: list[psutil.Process] = []
    with suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in family:
        with suppress(psutil.Error):
            child.kill()
    process.wait()


def _last_line(path: Path) -> str:
    lines = path.read_bytes()[-2000:].decode(errors="replace").strip().splitlines() if path.exists() else []
    return one_line(lines[-1]) if lines else ""


def _status(status: int) -> str:
    return f"exit status {status}" if status >= 0 else f"signal {signal_name(-status)}"
