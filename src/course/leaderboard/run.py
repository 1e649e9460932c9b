"""Runs the workloads that are wanted, one after another: what one submission does wrong ends that workload alone."""

from collections.abc import Callable

import course.route  # noqa: F401 - before anything imports mlx.core
from course.boundary.settings import Boundary
from course.curriculum import Curriculum
from course.errors import CourseError
from course.leaderboard import NAMES
from course.leaderboard.entry import Entry, Measured, Skipped
from course.leaderboard.kernels import entries, kernels
from course.leaderboard.place import NoEntry, Place
from course.leaderboard.speed import DECODE, PREFILL, fastest

SPEEDS = {workload.name: workload for workload in (DECODE, PREFILL)}


def run(boundary: Boundary | None, curriculum: Curriculum, wanted: tuple[str, ...], package: str) -> Measured:
    """All entries, and why others are missing."""
    place = Place(boundary, curriculum, package)
    found: list[Entry] = []
    skipped: list[Skipped] = []
    for name in wanted:
        if name in SPEEDS:
            _try(name, lambda name=name: [fastest(place, SPEEDS[name])], found, skipped)
        elif name in NAMES:
            for task, names in kernels(place):
                _try(f"{', '.join(names)} kernel", lambda t=task, n=names: entries(place, t, n), found, skipped)
        else:
            skipped.append(Skipped(name, f"no such workload: choose from {', '.join(NAMES)}"))
    return Measured(tuple(found), tuple(skipped))


def _try(name: str, work: Callable[[], list[Entry]], found: list[Entry], skipped: list[Skipped]) -> None:
    try:
        found += work()
    except NoEntry as reason:
        skipped.append(Skipped(name, str(reason)))
    except (CourseError, ValueError, TypeError, KeyError) as error:  # a judge that meets values it does not expect
        skipped.append(
            Skipped(name, f"it cannot be judged: {str(error).splitlines()[0] if str(error) else 'no reason'}")
        )
