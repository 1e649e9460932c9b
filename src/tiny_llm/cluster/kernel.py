# This file is yours to edit. Read book/src/week4-01-virtual-time.md.
"""The clock of a simulation: what happens next, at which nanosecond, and in which order at the same one.

Knows times and callbacks; nothing of what they do. Time is an integer, so that one seed gives the same bytes each time.
"""

from collections.abc import Callable
from enum import IntEnum

CALLBACK = 3
Event = list
"""[time, phase, sequence, callback, args]: what `at` returns and `cancel` takes. Read it, never write to it."""


# ANCHOR: phase
class Phase(IntEnum):
    """The order of what happens at the same time.

    What a batch is chosen from comes first, the choice last.
    """

    STEP_DONE = 0
    WORKER_READY = 1
    TRANSFER_DONE = 2
    ADMISSION = 3
    TELEMETRY = 4
    SCALING = 5
    LAUNCH = 6
    # ANCHOR_END: phase


# ANCHOR: simulation
class Simulation:
    """Events by time, then phase, then in the order in which they were asked for.

    now: nanoseconds since the beginning. phase: of the event that runs, None
    between runs.
    """

    def __init__(self) -> None:
        self.now = 0
        self.phase: Phase | None = None
        self._heap: list[Event] = []
        self._sequence = 0
        # ANCHOR_END: simulation

    def at(self, time: int, phase: Phase, callback: Callable[..., object], *args: object) -> Event:
        """Call `callback(*args)` at `time` ns. Returns the event, which can be cancelled.

        At `now`, an earlier phase than the one that runs comes next. Raises ValueError for a time that is past, or not
        a Python int: neither a float nor a NumPy integer is exact for as long as a simulation runs.
        """
        raise NotImplementedError("Week 4 Day 1 Task 1: Simulation.at - see book/src/week4-01-virtual-time.md#task-1")

    def after(self, delay: int, phase: Phase, callback: Callable[..., object], *args: object) -> Event:
        """Call `callback(*args)` in `delay` ns. Returns and raises what `at` does."""
        return self.at(self.now + delay, phase, callback, *args)

    def cancel(self, event: Event) -> None:
        """Make sure that `event` does not happen. Nothing changes if it has happened, or was cancelled before."""
        raise NotImplementedError(
            "Week 4 Day 1 Task 1: Simulation.cancel - see book/src/week4-01-virtual-time.md#task-1"
        )

    def run(self, until: int | None = None) -> int:
        """Let everything happen up to `until` ns, that time included; without it, until nothing is left to happen.

        Returns how many events happened. `now` is `until` then, or the time of the last event.
        Raises ValueError, with `until`, for a time that is past.
        """
        raise NotImplementedError("Week 4 Day 1 Task 1: Simulation.run - see book/src/week4-01-virtual-time.md#task-1")
