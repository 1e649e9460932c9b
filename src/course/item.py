"""A graded case as a pytest item: it runs the experiment, judges it, and explains a failure."""

import inspect
from collections import Counter
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from course.boundary.settings import Boundary
from course.case import Case
from course.curriculum import Curriculum, Day, Task
from course.explain import explain
from course.failure import Failure, Stopped
from course.library import without_library
from course.observer import Observer, make_observer
from course.paths import is_extension, package_folder
from course.summary import Result
from course.suspects import mistakes_in

CURRICULUM = pytest.StashKey[Curriculum]()
OBSERVERS = pytest.StashKey[dict[Path, Observer]]()
TIMEOUTS = pytest.StashKey[Counter[Task]]()
WHOLE = pytest.StashKey[Counter[Task]]()  # cases that each task has in its file
BOUNDARY = pytest.StashKey[Boundary | None]()
SEED = pytest.StashKey[int]()
UNBUILT = pytest.StashKey[dict[str, str]]()  # what could not be built, and why
MOST_TIMEOUTS = 2  # of a task: an endless loop would else cost the time limit of every case, minutes in all
_MOST_OUTPUT = 10_000
_COMPILING = 20.0  # s: more time for an `observe` that may compile a Metal kernel on a busy machine


def package_of(config: pytest.Config) -> Path:
    """The folder of the package under test."""
    boundary = config.stash[BOUNDARY]
    return Path(boundary.tree, config.option.solution) if boundary else package_folder(config.option.solution)


class CaseItem(pytest.Item):
    """One case with one set of parameters."""

    def __init__(self, *, case: Case, index: int, day: Day, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.case, self.index, self.day = case, index, day
        self.task = day.tasks[case.task - 1]

    def runtest(self) -> None:
        if self.config.stash[TIMEOUTS][self.task] >= MOST_TIMEOUTS:
            message = f"not run, because {MOST_TIMEOUTS} cases of this task have exceeded their time limit already"
            raise Stopped(Failure("not run", message))
        if missing := self.built_parts & self.config.stash[UNBUILT].keys():
            raise Stopped(without_library(self.task, package_of(self.config), self.config.stash[UNBUILT][min(missing)]))
        observer = self._observer()
        observer.begin()
        compiles = _COMPILING if "emulator" in self.built_parts else 0.0
        case = replace(self.case, timeout=self.case.timeout + compiles)

        def observe(inputs: object) -> object:
            try:
                return observer.observe(case, inputs, forbidden)
            except Stopped as stop:
                self.config.stash[TIMEOUTS][self.task] += stop.failure.kind == "timeout"
                raise

        inputs, forbidden = self._inputs(), self.config.stash[CURRICULUM].forbidden_on(self.day)
        if self.case.check:
            # A property that makes its own examples takes observe alone; with inputs it may take both.
            self.case.check(*[observe, inputs][: len(inspect.signature(self.case.check).parameters)])
        else:
            self.case.verify(inputs, observe(inputs))

    @property
    def built_parts(self) -> set[str]:
        """What must be compiled for it."""
        return self.config.stash[CURRICULUM].built_for(self.day)

    def _observer(self) -> Observer:
        """One for each test file, made when it is first needed."""
        observers = self.config.stash[OBSERVERS]
        if self.path not in observers:
            for other in observers.values():
                other.close()
            observers.clear()
            names = sorted({name for day in self.config.stash[CURRICULUM].days for name in day.forbidden})
            options = self.config.option
            isolate = options.isolate or bool(self.built_parts)  # kernels crash, Python does not
            observers[self.path] = make_observer(
                self.path, options.solution, names, isolate, self.config.stash[BOUNDARY]
            )
        return observers[self.path]

    def _inputs(self) -> object:
        if not self.case.inputs:
            return None
        seed = [self.config.stash[SEED], self.index, *self.case.name.encode()]
        return self.case.inputs(np.random.default_rng(seed), **self.case.params[self.index])

    def expected(self) -> dict[str, object]:
        """What is known of it before it runs, for who waits for its result."""
        return {"id": self.nodeid, "task": self.task.number, "name": self.name, "property": self.case.property}

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:
        return explain(self.task, self.case, self.index, excinfo.value, self.path)

    def result(self, report: pytest.TestReport, error: BaseException | None) -> Result:
        """What the summary keeps of a finished run."""
        failure = error.failure if isinstance(error, Stopped) else None
        stub = failure.stub if failure else None
        if failure and failure.kind in ("not run", "boundary"):
            kind = failure.kind
        elif stub and stub.label == self.task.label:
            kind = "todo"
        elif stub:
            kind = "blocked"
        else:
            kind = report.outcome
        output = "".join(text for name, text in report.sections if name.startswith("Captured"))
        place = (self.day.week, self.day.day, self.case.task)
        by = stub.label if kind == "blocked" else ""
        told = report.longreprtext, output[-_MOST_OUTPUT:]
        ran_on = kernels_of(self.task, mx.metal.is_available()) if kind == "passed" else ""
        of = self.config.stash[WHOLE][self.task]
        return Result(*place, self.name, kind, by, *told, of=of, ran_on=ran_on, mistakes=_mistakes(error))


def kernels_of(task: Task, gpu: bool) -> str:
    """What runs the kernels that a task asks for; "" for a task that is none. Its cases prove that they ran."""
    suffixes = {Path(file).suffix for file in task.symbols if is_extension(file)}
    parts = ["C++ library"] if suffixes - {".metal"} else []
    if ".metal" in suffixes:
        parts += ["Metal GPU", "emulator"] if gpu else ["emulator"]
    return ", ".join(parts)


def _mistakes(error: BaseException | None) -> tuple[str, ...]:
    """What the judgement takes for likely; nothing that the code under test says of itself."""
    if isinstance(error, BaseExceptionGroup):
        return _mistakes(error.exceptions[0])
    return mistakes_in(str(error)) if isinstance(error, AssertionError) else ()
