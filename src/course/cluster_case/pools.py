"""Pools of workers that take their time to start and to drain, for planners: no requests, only counts.

Knows the public names of the package's `observation`, and that decisions have `targets`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType

SECOND = 10**9
TICK = 5 * SECOND

Engine = dict[str, object]
"""What one engine shows, by the fields of an `EngineLoad`."""


@dataclass
class Group:
    """One pool. ages: of those that serve, in ns. starting, draining: how long each still takes."""

    wanted: int
    ages: list[int] = field(default_factory=list)
    starting: list[int] = field(default_factory=list)
    draining: list[int] = field(default_factory=list)

    @property
    def held(self) -> int:
        """Workers that hold GPUs."""
        return len(self.ages) + len(self.starting) + len(self.draining)

    def scale(self, wanted: int, start: int, drain: int) -> None:
        """Have another number of workers: the newest go first."""
        self.wanted = wanted
        while len(self.ages) + len(self.starting) < wanted:
            self.starting.append(start)
        while len(self.ages) + len(self.starting) > wanted:
            if self.starting:
                self.starting.pop()
            else:
                self.ages.pop()
                self.draining.append(drain)

    def pass_time(self, time: int) -> None:
        """Let all of them get on."""
        self.ages = [age + time for age in self.ages] + [0 for left in self.starting if left <= time]
        self.starting = [left - time for left in self.starting if left > time]
        self.draining = [left - time for left in self.draining if left > time]


class Pools:
    """Pools by name. start, drain: ns that one worker takes. age: of those that are there, in ns."""

    def __init__(
        self, counts: Mapping[str, int], start: int = 30 * SECOND, drain: int = 20 * SECOND, age: int = 3600 * SECOND
    ):
        self.groups = {name: Group(count, [age] * count) for name, count in counts.items()}
        self.start, self.drain, self.now = start, drain, 0

    def scale(self, targets: Mapping[str, int]) -> None:
        """Do as a decision says, or a hand."""
        for name, wanted in targets.items():
            self.groups[name].scale(wanted, self.start, self.drain)

    def pass_time(self, time: int = TICK) -> None:
        """A while later."""
        self.now += time
        for group in self.groups.values():
            group.pass_time(time)

    def seen(self, parts: ModuleType, engine: Callable[[str, int, int], Engine] | None = None) -> dict[str, object]:
        """What a planner sees of them. engine(pool, how many serve, age): what each engine shows."""
        return {
            name: parts.PoolLoad(
                group.wanted,
                len(group.starting),
                len(group.draining),
                tuple(
                    parts.EngineLoad(f"{name}-{i}", **(engine(name, len(group.ages), age) if engine else {}))
                    for i, age in enumerate(group.ages)
                ),
            )
            for name, group in self.groups.items()
        }
