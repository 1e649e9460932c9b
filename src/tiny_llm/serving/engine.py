"""The loop of an engine: choose a batch, run it, read its results, again.

Knows a scheduler and a runner; what runs, and on which device, is the runner's business.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from .request import Batch, Output, Request, Sampled
from .scheduler import Scheduler

logger = logging.getLogger(__name__)


class Pending(Protocol):
    """A launched batch."""

    def results(self) -> Sequence[Sampled]:
        """Wait until it is done. Returns one chosen token for each of `batch.sampling`, in this order."""
        ...


class Runner(Protocol):
    """Runs batches, one after another in the order of their launch."""

    def launch(self, batch: Batch) -> Pending:
        """Start a batch, and return at once. What it reads of the host, pages and ids, it has copied by then."""
        ...


class Engine:
    """The normal loop: a batch is read before the next one is chosen."""

    def __init__(self, scheduler: Scheduler, runner: Runner):
        self.scheduler = scheduler
        self.runner = runner

    def add(self, request: Request) -> None:
        """Accept a request. Raises ValueError as `Scheduler.add` does."""
        self.scheduler.add(request)

    def abort(self, uid: int) -> Output | None:
        """End a request now. Returns its last output, None where there is no such request."""
        return self.scheduler.abort(uid)

    @property
    def busy(self) -> bool:
        """Whether another `step` has something to do."""
        return bool(self.scheduler.requests)

    def step(self) -> list[Output]:
        """Run one batch, if there is one. Returns what it gave.

        Where the runner raises, the requests of the batch end with "error"; the engine and all others go on.
        """
        batch = self.scheduler.next_batch()
        if batch is None:
            return []
        try:
            results = self.runner.launch(batch).results()
        except Exception:
            logger.exception("a batch of %d requests failed", len(batch.steps))
            return self.scheduler.fail(batch)
        return self.scheduler.commit(batch, results)
