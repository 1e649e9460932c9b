"""One run of a task's tests, in a process that has been started in advance, and what came of it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from course.curriculum import Curriculum, Task
from course.paths import ROOT
from course.pipe import Closed, send
from course.summary import Result, state_of, tail
from course.verdict import Notes, no_verdict

STALLED = 300.0
"""s: a case that takes longer than this is not going to end. What a case calls has shorter limits of its own."""
COMPILED = 1200.0
"""s: the same before the first case, when the C++ library may be compiled."""
_PATIENCE = 5.0
_OPTIONS = [
    "-qq",
    "--no-header",
    "--tb=no",
    "-rN",
    "--disable-warnings",
    "--import-mode=importlib",
    "-p",
    "no:cacheprovider",
]
_PLUGINS = ["-p", "course.plugin", "-p", "pytest_timeout"]


@dataclass(frozen=True)
class Outcome:
    """What a run said. problem: why there is no verdict, "" where there is one."""

    results: list[Result]
    problem: str
    seconds: float

    @property
    def state(self) -> str:
        """In the words of the summary, or "no verdict"."""
        return "no verdict" if self.problem else state_of(self.results)


class Run:
    """A process that gets ready, then runs one task's tests when told to. `fileno` is readable when that is over."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tiny-llm-", ignore_cleanup_errors=True)
        self._notes = Notes(Path(self._folder.name))
        self._said = Path(self._folder.name) / "output.txt"
        child_leash, self._leash = os.pipe()
        self._done, child_done = os.pipe()
        os.set_blocking(self._leash, False)
        try:
            with self._said.open("wb") as said:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "course.loop.worker", str(child_leash), str(child_done)],
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    env=_environment(),
                    pass_fds=(child_leash, child_done),
                    start_new_session=True,
                )
        finally:
            os.close(child_leash)
            os.close(child_done)
        self._began = self._moved = time.monotonic()
        self._at: str | None = None

    def fileno(self) -> int:
        return self._done

    def start(self, task: Task, curriculum: Curriculum, solution: str) -> None:
        """Begin. A process that could not start shows as an outcome without a verdict."""
        tests = curriculum.day(task.week, task.day).tests
        place = ["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), "--solution", solution]
        arguments = [*_OPTIONS, *_PLUGINS, *place, "--task", str(task.number), *self._notes.options, str(tests)]
        self._began = self._moved = time.monotonic()
        with contextlib.suppress(Closed, TimeoutError):
            send(self._leash, json.dumps(arguments).encode(), time.monotonic() + _PATIENCE)

    @property
    def alive(self) -> bool:
        """Whether its process is there."""
        return self._process.poll() is None

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    @property
    def where(self) -> str:
        """The case that runs now, or what is being built before the first."""
        verdict = self._notes.verdict()
        at = verdict.running if verdict else self._at  # it may be being written
        if at != self._at:
            self._at, self._moved = at, time.monotonic()
        return at or next(iter(tail(self._output())[-1:]), "")

    def over(self, readable: bool) -> bool:
        """Whether the session has ended, its process is gone, or it has come no further for too long."""
        if readable or not self.alive:
            return True
        place = self.where
        return time.monotonic() - self._moved > (STALLED if self._at and place else COMPILED)

    def outcome(self) -> Outcome:
        """What was said, once it is over."""
        results, verdict, seconds = self._notes.results(), self._notes.verdict(), self.seconds
        if verdict and verdict.status is not None and results:
            return Outcome(results, "", seconds)
        if verdict and verdict.status is None and self._ended() is None:
            return Outcome([], f"{self.where or 'the run'} did not end within {STALLED:g} s: it was stopped", seconds)
        if verdict and verdict.status is None:
            return Outcome([], no_verdict(self._process.returncode, verdict), seconds)
        said = "\n".join(tail(self._output())) or "they said nothing"
        return Outcome([], f"the tests cannot be used:\n{said}", seconds)

    def close(self) -> None:
        """End the process and all that it has started."""
        kill_tree(self._process)
        for fd in (self._leash, self._done):
            os.close(fd)
        self._folder.cleanup()

    def _ended(self) -> int | None:
        """The process's end, which may come a moment after its pipe's."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(0.5)
        return None

    def _output(self) -> str:
        with contextlib.suppress(OSError):
            return self._said.read_text(errors="replace")
        return ""


def kill_tree(process: subprocess.Popen) -> None:
    """Kill a process that leads a session, its group, and all that descends from it, whatever group that is in."""
    import psutil

    doomed: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        doomed = psutil.Process(process.pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in doomed:
        with contextlib.suppress(psutil.Error):
            child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)


def _environment() -> dict[str, str]:
    """Ours, without what would change or slow down pytest."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    places = os.pathsep.join(dict.fromkeys(filter(None, sys.path)))
    return kept | {"PYTHONPATH": places, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
