# This file is yours to edit. Read book/src/week4-02-workloads-and-slos.md.
"""The part of a run that is measured: without the time in which queues fill, or drain."""

from collections.abc import Sequence
from typing import NamedTuple

from .record import Record

SECOND = 1_000_000_000


class Window(NamedTuple):
    """The part of a run that is measured, start <= time < end, in ns."""

    start: int
    end: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.start) / SECOND


def whole_run(records: Sequence[Record]) -> Window:
    """From the first arrival to just after the last end: what vLLM's benchmark divides by."""
    ends = [record.done for record in records if record.done is not None]
    if not ends:
        raise ValueError(f"none of {len(records)} requests has ended: there is nothing to measure")
    return Window(min(record.arrival for record in records), max(ends) + 1)


def steady_state(records: Sequence[Record], warm_up: int) -> Window:
    """The same without its first `warm_up` ns, while queues fill, and without the drain: it ends at the last arrival.

    Raises ValueError where nothing is left.
    """
    raise NotImplementedError("Week 4 Day 2 Task 2: steady_state - see book/src/week4-02-workloads-and-slos.md#task-2")
