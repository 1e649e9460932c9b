# This file is yours to edit. Read book/src/week3-06-overlap.md.
"""The overlap loop: while the device runs one batch, the host chooses and launches the next (SGLang, NanoFlow).

The host then decides without the token that is being computed. A request's length is known all the same, its end by a
stop token is not: that costs one step for nothing. Knows a scheduler and a runner, like the normal loop.
"""

import logging
from typing import NamedTuple

from .engine import Engine, Pending, Runner
from .request import Batch, Output
from .scheduler import Scheduler

logger = logging.getLogger(__name__)


class Flight(NamedTuple):
    """A launched batch that was not read. pending: the error where its launch failed."""

    batch: Batch
    pending: Pending | Exception


class OverlapEngine(Engine):
    """An `Engine` that launches batch N + 1, and then reads batch N.

    flight: batch N, None where nothing is in flight. overlap_prefills: False reads a prompt's first token before the
    next prompt is prepared: a better time to first token, for a device that idles in between.
    """

    def __init__(self, scheduler: Scheduler, runner: Runner, overlap_prefills: bool = True):
        super().__init__(scheduler, runner)
        self.overlap_prefills = overlap_prefills
        self.flight: Flight | None = None

    @property
    def busy(self) -> bool:
        """Whether another `step` has something to do: all requests may have ended, and a batch still be in flight."""
        raise NotImplementedError("Week 3 Day 6 Task 3: OverlapEngine.busy - see book/src/week3-06-overlap.md#task-3")

    def step(self) -> list[Output]:
        """Launch a batch, if one can run, and read the one before. Returns what that one gave.

        Where the batch in flight must be read first, that is all a step does: nobody waits for tokens that are there.
        Where the runner raises, in a launch or for results, the requests of that batch end with "error".
        """
        raise NotImplementedError("Week 3 Day 6 Task 3: OverlapEngine.step - see book/src/week3-06-overlap.md#task-3")

    def reads_first(self, batch: Batch) -> bool:
        """Whether the next batch must not be chosen before this one, in flight, was read.

        It must not where a request needs its whole history on the host to choose its next token, and where prefills are
        not to overlap and the next batch may be one, too.
        """
        raise NotImplementedError(
            "Week 3 Day 6 Task 3: OverlapEngine.reads_first - see book/src/week3-06-overlap.md#task-3"
        )

    def launch(self, batch: Batch) -> Pending | Exception:
        """Launch a batch. A failure is kept for when the batch is read: those before it come first."""
        raise NotImplementedError("Week 3 Day 6 Task 3: OverlapEngine.launch - see book/src/week3-06-overlap.md#task-3")

    def read(self) -> list[Output]:
        """Wait for the batch in flight, and commit it."""
        raise NotImplementedError("Week 3 Day 6 Task 3: OverlapEngine.read - see book/src/week3-06-overlap.md#task-3")
