"""Where a submission's code runs: behind a boundary, or in a plain child. Says what a call gave, or why nothing."""

import contextlib
import io
import time
from dataclasses import replace
from pathlib import Path

from course.boundary.sandboxed import Sandboxed
from course.boundary.settings import Boundary
from course.case import Case
from course.curriculum import Curriculum
from course.failure import Raised, Stopped
from course.guard import ForbiddenNames
from course.isolate import Isolated
from course.leaderboard.workloads import Ready
from course.library import build
from course.observer import Observer
from course.paths import package_folder

WORKLOADS = Path(__file__).with_name("workloads.py")


class NoEntry(Exception):
    """A workload has no entry; the text is the reason."""


class Place:
    """A package of one submission, and where it runs."""

    def __init__(self, boundary: Boundary | None, curriculum: Curriculum, package: str) -> None:
        self.boundary, self.curriculum, self.package = boundary, curriculum, package

    def observer(self, tests: Path) -> Observer:
        """For the cases of one file."""
        names = sorted({name for day in self.curriculum.days for name in day.forbidden})
        if self.boundary is None:
            return Isolated(tests, self.package, names)
        return Sandboxed(tests, self.package, names, self.boundary)

    def build(self, part: str) -> None:
        """Bring "library" or "emulator" up to date. Raises NoEntry."""
        folder = Path(self.boundary.tree, self.package) if self.boundary else package_folder(self.package)
        if problems := build([part], folder, lambda line: None, self.boundary):
            raise NoEntry(problems[part].splitlines()[0])

    def timed(self, case: Case, inputs: object, seconds: float) -> tuple[object, float]:
        """What a workload gave in a process of its own, and how long the grader waited. Raises NoEntry."""
        observer = self.observer(WORKLOADS)
        try:
            observer.begin()
            ask(observer, Ready, None, seconds, {})
            start = time.perf_counter()
            values = ask(observer, case, inputs, seconds, self.forbidden())
            return values, time.perf_counter() - start
        finally:
            observer.close()

    def forbidden(self) -> ForbiddenNames:
        """Every name that some day forbids, each with the files whose days never do: for programs of all days."""
        days = self.curriculum.days
        listing = {file: [day for day in days if day.lists(file)] for file in self.curriculum.files}
        return {
            name: [file for file, listed in listing.items() if not all(name in day.forbidden for day in listed)]
            for name in {name for day in days for name in day.forbidden}
        }


def ask(observer: Observer, case: Case, inputs: object, seconds: float, forbidden: ForbiddenNames) -> object:
    """What a case observes within so many seconds. Raises NoEntry, in one line."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # what the submission prints
            return observer.observe(replace(case, timeout=seconds), inputs, forbidden)
    except (Raised, Stopped) as error:
        raise NoEntry(str(error).splitlines()[0]) from None
