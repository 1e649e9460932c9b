"""One submission being graded in a process of its own: start it, look after it, take what it leaves."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from course.classroom.record import Outcome, Record, discard, keep, load, unfinished
from course.errors import CourseError
from course.grading.grade import read
from course.grading.text import one_line

PATIENCE = 15.0
"""s: that a grader has to write its result down after it was told to stop."""
_LOG = "messages.txt"


@dataclass(frozen=True)
class Work:
    """What a job needs: the command line without its output folder, where the result belongs, what it depends on.

    `scoring` is what its points depend on besides.
    """

    command: tuple[str, ...]
    folder: Path
    fingerprint: str
    limit: float
    scoring: str = ""


class Job:
    """A running grader. `poll` until it gives an outcome."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._partial = unfinished(work.folder)
        self._started = time.monotonic()
        self._told_to_stop: float | None = None
        self._log = (self._partial / _LOG).open("wb")
        self._process = subprocess.Popen(
            [*work.command, "--output", str(self._partial)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C at the terminal is ours to pass on
        )

    def last_words(self) -> str:
        """The last line that the grader has said; "" for none."""
        lines = (self._partial / _LOG).read_bytes()[-4000:].decode(errors="replace").split("\n")
        return one_line(next((line for line in reversed(lines) if line.strip()), ""))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def poll(self) -> Outcome | None:
        """The outcome, in its place on disk, once the process has ended. Stops one that has run out of time."""
        if self._process.poll() is not None:
            return self._finish()
        if self._told_to_stop is None and self.seconds > self.work.limit:
            self.stop()
        if self._told_to_stop is not None and time.monotonic() > self._told_to_stop + PATIENCE:
            kill_tree(self._process.pid)
        return None

    def stop(self) -> None:
        """Ask it to write down what it has, and end."""
        if self._told_to_stop is None:
            self._told_to_stop = time.monotonic()
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    def abandon(self, patience: float) -> None:
        """End it within `patience` seconds, and remove what it has written."""
        self.stop()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._clean_up()
        discard(self._partial)

    def _finish(self) -> Outcome:
        self._clean_up()
        ended, problem = self._how_it_ended()
        record = Record(
            fingerprint=self.work.fingerprint,
            ended=ended,
            problem=problem,
            limit=self.work.limit,
            seconds=round(self.seconds, 1),
            scoring=self.work.scoring,
        )
        log = self._partial / _LOG
        if not log.stat().st_size:
            log.unlink()
        keep(self._partial, self.work.folder, record)
        return load(self.work.folder) or Outcome(record, None)

    def _how_it_ended(self) -> tuple[str, str]:
        status = self._process.returncode
        if self._told_to_stop is not None:
            return "time limit", f"stopped after {self.work.limit:g} s: raise --limit, or look at it by hand"
        if status == 0:
            try:
                read(self._partial)
                return "graded", ""
            except CourseError as error:
                return "failed", str(error)
        how = f"status {status}" if status >= 0 else f"signal {-status}"
        return "failed", f"the grader ended with {how}: {self.last_words() or f'see {_LOG}'}"

    def _clean_up(self) -> None:
        """Nothing of the grader's session outlives it."""
        kill_tree(self._process.pid)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        self._log.close()


def kill_tree(pid: int) -> None:
    """Kill a session's first process, all of its group, and everything that descends from it."""
    import psutil

    family: Sequence[psutil.Process] = []
    with suppress(psutil.Error):
        family = psutil.Process(pid).children(recursive=True)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for process in family:
        with suppress(psutil.Error):
            process.kill()
