"""Many runs: a point for each combination of some values. Knows points and results; not where they run."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from course.errors import CourseError
from course.sim.choose import merged
from course.sim.config import OPTIONS, Config
from course.sim.option import Value
from course.sim.report import Json

MOST = 10_000
"""Points of a sweep: more are a mistake."""


@dataclass(frozen=True)
class Point:
    """One run of a sweep. swept: its own values, by key. chosen: all. folder: in which relative paths are meant."""

    swept: Mapping[str, Value]
    chosen: Mapping[str, Value]
    solution: str
    folder: str

    def __str__(self) -> str:
        return ", ".join(f"{key} {text(value)}" for key, value in self.swept.items())


def points(base: Mapping[str, Value], sweeps: Sequence[str], solution: str) -> list[Point]:
    """All combinations, the last sweep fastest. Raises CourseError."""
    axes = [axis(sweep) for sweep in sweeps]
    keys = [key for one in axes for key in one[0]]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise CourseError(f"--sweep {twice} comes twice: put all its values into one")
    if (runs := math.prod(map(len, axes))) > MOST:
        raise CourseError(f"{runs:,} runs are more than {MOST:,}: sweep fewer values")
    found = []
    for places in product(*axes):
        swept = {key: value for place in places for key, value in place.items()}
        chosen = merged(base, swept, "the configuration", "--sweep")
        found.append(Point(swept, chosen, solution, os.getcwd()))
    return found


def axis(sweep: str) -> list[dict[str, Value]]:
    """The places on one axis: of `rate=4,8`, or of options that go together, `prefill-workers+decode-workers=1+3,2+2`.

    Raises CourseError.
    """
    names, sign, values = sweep.partition("=")
    keys = names.split("+")
    if not sign or not values:
        raise CourseError(f"--sweep {sweep!r} is not OPTION=VALUE,VALUE: try rate=4,8,12")
    if unknown := next((key for key in keys if key not in OPTIONS), None):
        raise CourseError(f"--sweep {sweep!r}: no option {unknown!r}: `sim run --help` lists them")
    places = []
    for place in values.split(","):
        parts = place.split("+") if len(keys) > 1 else [place]
        if len(parts) != len(keys):
            raise CourseError(
                f"--sweep {sweep!r}: {place!r} is {len(parts)} values for {len(keys)} options: join with +"
            )
        places.append({key: OPTIONS[key].read(part, f"--sweep {key}") for key, part in zip(keys, parts, strict=True)})
    return places


def measure(point: Point) -> Json:
    """The report of a point. Runs anywhere. Raises CourseError, which names the point."""
    from course.learner import explained
    from course.sim.execute import execute
    from course.sim.package import Package
    from course.sim.report import report

    if os.getcwd() != point.folder:
        os.chdir(point.folder)
    config, package = Config.of(point.chosen), Package(point.solution)
    try:
        with explained(point.solution):
            return report(config, package, execute(config, package))
    except CourseError as error:
        raise CourseError(f"{point}: {error}" if point.swept else str(error)) from None


def text(value: Value) -> str:
    """A swept value, as in a table."""
    if isinstance(value, tuple):
        return " ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
