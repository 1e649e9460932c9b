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
        return self.flight is not None or super().busy

    def step(self) -> list[Output]:
        """Launch a batch, if one can run, and read the one before. Returns what that one gave.

        Where the batch in flight must be read first, that is all a step does: nobody waits for tokens that are there.
        Where the runner raises, in a launch or for results, the requests of that batch end with "error".
        """
        if self.flight and self.reads_first(self.flight.batch):
            return self.read()
        batch = self.scheduler.next_batch()
        launched = None if batch is None else Flight(batch, self.launch(batch))
        outputs = self.read()
        self.flight = launched
        return outputs

    def reads_first(self, batch: Batch) -> bool:
        """Whether the next batch must not be chosen before this one, in flight, was read.

        It must not where a request needs its whole history on the host to choose its next token, and where prefills are
        not to overlap and the next batch may be one, too.
        """
        if any(step.request.sampling.repetition_penalty != 1 for step in batch.sampling):
            return True
        if self.overlap_prefills or not any(step.start < step.request.prompt_len for step in batch.steps):
            return False
        return any(request.cached_len < request.prompt_len for request in self.scheduler.requests.values())

    def launch(self, batch: Batch) -> Pending | Exception:
        """Launch a batch. A failure is kept for when the batch is read: those before it come first."""
        try:
            return self.runner.launch(batch)
        except Exception as error:
            return error

    def read(self) -> list[Output]:
        """Wait for the batch in flight, and commit it."""
        if self.flight is None:
            return []
        (batch, pending), self.flight = self.flight, None
        try:
            if isinstance(pending, Exception):
                raise pending
            results = pending.results()
        except Exception:
            logger.exception("a batch of %d requests failed", len(batch.steps))
            return self.scheduler.fail(batch)
        return self.scheduler.commit(batch, results)
