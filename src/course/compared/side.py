"""One of the two packages in a process of its own: it is asked for values, times, memory and kernels, case by case."""

import contextlib
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from course.case import Case
from course.compared.probes import Probe
from course.curriculum import Curriculum, Day
from course.failure import Failure, Raised, Stopped
from course.isolate import Isolated

COMPILING = 20.0  # s: more time where a Metal kernel may have to be compiled on a busy machine
_PROBES = Path(__file__).with_name("probes.py")
_ENDLESS = 2  # time-outs of a package, after which it is asked no more


class Failed(Exception):
    """The package did not return what it should."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Side:
    """A package, as the cases of one day see it. unbuilt: why it cannot be run at all."""

    def __init__(self, package: str, curriculum: Curriculum, day: Day, unbuilt: Failure | None = None) -> None:
        self._unbuilt = unbuilt
        self._tests = str(day.tests)
        self._forbidden = curriculum.forbidden_on(day)
        self._compiling = COMPILING if "emulator" in curriculum.built_for(day) else 0.0
        self._observer = Isolated(_PROBES, package, _forbiddable(curriculum))
        self._endless = 0

    def values(self, case: Case, inputs: object) -> tuple[object, float]:
        """What the case observes, and the seconds that took."""
        answer = self._ask(case, inputs, "values")
        return answer["values"], answer["seconds"]

    def seconds(self, case: Case, inputs: object, calls: int) -> float:
        """Seconds of one call, the mean of `calls`."""
        return self._ask(case, inputs, "seconds", calls)

    def memory(self, case: Case, inputs: object) -> dict[str, int]:
        """Bytes at most held, by "mlx" and by "python"."""
        return self._ask(case, inputs, "memory")

    def kernels(self, case: Case, inputs: object) -> dict[str, dict]:
        """`calls` of each kernel, and `counters` of Metal kernels."""
        return self._ask(case, inputs, "kernels")

    def close(self) -> None:
        """End its process."""
        self._observer.close()

    def _ask(self, case: Case, inputs: object, what: str, calls: int = 1) -> object:
        if self._unbuilt:
            raise Failed(self._unbuilt)
        if self._endless >= _ENDLESS:
            raise Failed(
                Failure("not run", f"not run, because {_ENDLESS} cases have exceeded their time limit already")
            )
        request = {"tests": self._tests, "case": case.name, "inputs": inputs, "what": what, "calls": calls}
        probe = replace(Probe, timeout=case.timeout * calls + self._compiling)
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # what the code under test prints
                self._observer.begin()
                return self._observer.observe(probe, request, self._forbidden)
        except (Raised, Stopped) as error:
            self._endless += error.failure.kind == "timeout"
            raise Failed(error.failure) from None


def _forbiddable(curriculum: Curriculum) -> Sequence[str]:
    return sorted({name for day in curriculum.days for name in day.forbidden})
