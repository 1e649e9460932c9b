"""Timing several ways to do the same work so that a busy machine disturbs all of them alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """The middle and the ends of a few readings."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, readings: list[float]) -> "Spread":
        """Of at least one reading."""
        return cls(statistics.median(readings), min(readings), max(readings))

    @classmethod
    def again(cls, plain: dict[str, float]) -> "Spread":
        """From what `plain` gave."""
        return cls(plain["median"], plain["min"], plain["max"])

    def per(self, amount: float) -> "Spread":
        """Speeds instead of times: `amount` of work divided by each."""
        return Spread(amount / self.median, amount / self.most, amount / self.least)

    def scaled(self, unit: float) -> "Spread":
        """The same readings in units of `unit`."""
        return Spread(self.median / unit, self.least / unit, self.most / unit)

    def plain(self) -> dict[str, float]:
        """For JSON."""
        return {"median": self.median, "min": self.least, "max": self.most}

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.least:.3g} .. {self.most:.3g})"


@dataclass(frozen=True)
class Pair:
    """Seconds of both sides, and how many times faster the first one is, from neighbouring readings."""

    ours: Spread
    theirs: Spread
    ratio: Spread


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes; `work` must wait for its own result."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turn(readers: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Ask each reader once to warm up, then in turn; who begins changes from round to round. All their readings."""
    for read in readers.values():
        read()
    readings: dict[str, list[float]] = {name: [] for name in readers}
    names = list(readers)
    for i in range(rounds):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            readings[name].append(readers[name]())
    return readings


def ratio(ours: list[float], theirs: list[float]) -> Spread:
    """`theirs` divided by `ours`, reading by reading: neighbours in time, whatever the machine did then."""
    return Spread.of([b / a for a, b in zip(ours, theirs, strict=True)])


def alternate(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> Pair:
    """The times of two works, read in turn."""
    found = in_turn({"ours": lambda: seconds(ours), "theirs": lambda: seconds(theirs)}, rounds)
    return Pair(Spread.of(found["ours"]), Spread.of(found["theirs"]), ratio(found["ours"], found["theirs"]))
