"""What a comparison found, as `--json` prints it. Knows no way to measure and no layout."""

from math import log
from typing import Literal

import msgspec

from course.compared.agreement import Agreement
from course.timing import Spread as Readings

State = Literal["passes", "fails", "to do", "stops"]


class Spread(msgspec.Struct, frozen=True):
    """The middle and the ends of some readings."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, readings: list[float]) -> "Spread":
        """Of at least one reading."""
        found = Readings.of(readings)
        return cls(found.median, found.least, found.most)


class Measured(msgspec.Struct, frozen=True):
    """One package on one set of inputs. Bytes are the most held at once beside the inputs; counters are by kernel."""

    seconds: Spread
    mlx_bytes: int
    python_bytes: int
    calls: dict[str, int] = {}
    counters: dict[str, dict[str, int]] = {}

    @property
    def bytes(self) -> int:
        """By MLX's arrays where there are any, else by Python and NumPy."""
        return self.mlx_bytes or self.python_bytes

    def moved(self, kernel: str) -> int:
        """Bytes that a Metal kernel moved from and to device memory."""
        counters = self.counters.get(kernel, {})
        return counters.get("device_read_bytes", 0) + counters.get("device_write_bytes", 0)


class CaseComparison(msgspec.Struct, frozen=True):
    """One graded case. `passed` of `inputs` sets of inputs pass; `problem` is the first thing said against one.

    `measured_on` is the index of the inputs with which both were measured: the largest ones. `ratio`: learner's time by
    the reference's, from readings taken in turn; `quickest`: of the quickest readings, the least disturbed ones.
    """

    name: str
    property: str
    state: State
    passed: int
    inputs: int
    problem: str = ""
    agreement: Agreement | None = None
    measured_on: int | None = None
    learner: Measured | None = None
    reference: Measured | None = None
    ratio: Spread | None = None
    quickest: float | None = None

    @property
    def slower(self) -> float:
        """How many times slower the learner's code is, as far as both ratios say so; 1 where they contradict."""
        if self.ratio is None or self.quickest is None or (self.ratio.median > 1) != (self.quickest > 1):
            return 1.0
        return min(self.ratio.median, self.quickest, key=lambda factor: abs(log(factor)))


class Comparison(msgspec.Struct, frozen=True):
    """A task. `summary`: sentences for the learner; `emulated`: Metal kernels ran on the emulator."""

    task: str
    title: str
    learner: str
    reference: str
    state: State
    summary: tuple[str, ...]
    cases: tuple[CaseComparison, ...]
    emulated: bool
    machine: dict[str, str | int | float | None]
