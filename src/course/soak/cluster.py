"""Random schedules of faults over the distributed parts of a package, world by world.

Everything follows from a seed: a failure is replayed by its number.
"""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from course.cluster_case.connector_world import World as ConnectorWorld
from course.cluster_case.world import World as DiscoveryWorld
from course.failure import TimedOut
from course.limit import TimeLimit
from course.soak.schedules import ScheduleError, told
from course.solution import Solution
from course.stub import stub_of

SECONDS = 30.0
"""For one schedule, which takes some 30 milliseconds."""


class World(Protocol):
    """One random schedule. violations: of what must hold at any moment, in words. counts: of what it ran."""

    violations: list[str]
    counts: Counter[str]

    def run(self) -> object:
        """Run it to its end."""
        ...


WORLDS: dict[str, Callable[[Solution, int], World]] = {"discovery": DiscoveryWorld, "connector": ConnectorWorld}
"""How to make the world of a seed, by name."""


def run_worlds(package: str, name: str, seeds: range, done: Callable[[], None] = lambda: None) -> Counter[str]:
    """Run the schedules of all seeds in one world, calling `done` after each. Returns what was run: counts by name.

    Raises ScheduleError for the first that fails.
    """
    solution = Solution(package)
    counts: Counter[str] = Counter()
    for seed in seeds:
        try:
            with TimeLimit(SECONDS):
                world = WORLDS[name](solution, seed)
                world.run()
            if world.violations:
                raise AssertionError("\n  ".join(world.violations[:5]))
        except (Exception, TimedOut) as error:
            if stub_of(error):
                raise
            replay = f"cluster --world {name} --solution {package} --seed {seed}"
            raise ScheduleError(told(f"{name}, seed {seed}", replay, error, package)) from error
        counts += world.counts
        done()
    return counts
