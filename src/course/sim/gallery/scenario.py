"""What a scenario of the gallery is, and where they are: one file each, with `SCENARIO`."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from course.errors import CourseError

NOT_SCENARIOS = ("__init__", "scenario", "picture", "runs")


@dataclass(frozen=True)
class Outcome:
    """What one run of a scenario shows. numbers: by name with unit. lines: (x, y) by name, for the plot."""

    numbers: Mapping[str, float]
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """A complaint.

    title: of few words. complaint: what users saw, and where (an issue of a project). broken, repaired: what each
    policy does. play(module, repaired) -> what happens; module gives a module of the package's `cluster`.
    check(broken, repaired): raises AssertionError unless the repair helps. x, y: labels of the plot's axes. kind: how
    its lines are drawn, "line", "steps" or "bars".
    """

    title: str
    complaint: str
    broken: str
    repaired: str
    play: Callable[[Callable[[str], ModuleType], bool], Outcome]
    check: Callable[[Mapping[str, float], Mapping[str, float]], None]
    x: str = "seconds"
    y: str = ""
    kind: str = "line"


def names() -> list[str]:
    """All scenarios, as their files are called."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [file.stem.replace("_", "-") for file in files if file.stem not in NOT_SCENARIOS]


def find(name: str) -> Scenario:
    """A scenario by its name. Raises CourseError."""
    if name not in names():
        raise CourseError(f"no scenario {name!r}: choose from {', '.join(names())}")
    return importlib.import_module(f"course.sim.gallery.{name.replace('-', '_')}").SCENARIO
