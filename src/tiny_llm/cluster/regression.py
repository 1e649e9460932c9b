# This file is yours to edit. Read book/src/week4-07-planner.md.
"""A straight line through samples of which some are wrong."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from .window import SECOND


# ANCHOR: line
class Line(NamedTuple):
    """base + slope * load, in ns."""

    base: float
    slope: float

    def at(self, load: float) -> float:
        """Ns at this load."""
        return self.base + self.slope * load
        # ANCHOR_END: line


def fit(points: Sequence[tuple[float, float]]) -> Line | None:
    """The line of (load, ns) whose slope is the median of the slopes of all pairs (Theil, 1950; Sen, 1968).

    Its base is the median of what the slope leaves over. More load never takes less time: a slope below 0 counts as 0.
    Up to 29 % of the points may be anywhere. Where all have one load, as full batches have, it is the line through the
    origin: more than that load is then rather over- than underestimated. None without points.
    """
    raise NotImplementedError("Week 4 Day 7 Task 2: fit - see book/src/week4-07-planner.md#task-2")


class Regression:
    """The line through the newest samples of a pool.

    warm_up: ns in which a new engine is slower than it will be (it loads, compiles, captures, finds no prefix cached):
    its samples are not taken. window: samples kept. least: with fewer there is no line.
    """

    def __init__(self, warm_up: int = 30 * SECOND, window: int = 32, least: int = 8):
        self.warm_up, self.least = warm_up, least
        self.points: deque[tuple[float, float]] = deque(maxlen=window)

    def add(self, age: int, load: float, duration: float) -> None:
        """A step of an engine that has served for `age` ns."""
        raise NotImplementedError("Week 4 Day 7 Task 2: Regression.add - see book/src/week4-07-planner.md#task-2")

    def line(self) -> Line | None:
        """Through the newest samples; None while there are too few."""
        return fit(list(self.points)) if len(self.points) >= self.least else None
