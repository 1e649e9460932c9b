"""Timing two ways to do the same work so that a busy machine disturbs both alike."""

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

    def per(self, amount: float) -> "Spread":
        """Speeds instead of times: `amount` of work divided by each."""
        return Spread(amount / self.median, amount / self.most, amount / self.least)

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


def alternate(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> Pair:
    """Run both once unmeasured, then in turn; who begins changes from round to round."""
    ours(), theirs()
    a, b = [], []
    for i in range(rounds):
        for work, readings in ((ours, a), (theirs, b))[:: 1 if i % 2 == 0 else -1]:
            readings.append(seconds(work))
    return Pair(Spread.of(a), Spread.of(b), Spread.of([y / x for x, y in zip(a, b, strict=True)]))
