"""What a router knows of its workers at the moment when it must choose one for a request.

Looks into the index of caches only if it is asked for it: most policies never do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from .active import Load
from .indexer import Worker
from .routing import Candidate, CostConfig, RouteRequest


# ANCHOR: index
class Index(Protocol):
    """Which worker has which prefix: `EventFeed` (exact), `RecentIndex` (a guess)."""

    def add_worker(self, worker: Worker) -> None:
        """Know a worker with an empty cache."""
        ...

    def remove_worker(self, worker: Worker) -> None:
        """Forget a worker and its blocks."""
        ...

    def match(self, names: Sequence[int], now: int) -> dict[Worker, int]:
        """Leading blocks that each worker has, those that have none left out."""
        ...

    def sent(self, worker: Worker, names: Sequence[int], now: int) -> None:
        """A prompt with these blocks went to `worker`."""
        ...
        # ANCHOR_END: index


@dataclass
class Query:
    """A request, and the workers that may get it: at least one, in the order in which they came.

    cost: weights for this request.
    """

    request: RouteRequest
    workers: Sequence[Worker]
    cost: CostConfig
    block_size: int
    load: Load
    index: Index | None
    now: int

    @cached_property
    def scores(self) -> dict[Worker, int]:
        """Leading blocks that each worker has cached; none without an index."""
        return self.index.match(self.request.blocks, self.now) if self.index else {}

    def overlap(self, worker: Worker) -> int:
        """Leading blocks that `worker` has cached."""
        return self.scores.get(worker, 0)

    def candidates(self) -> list[Candidate]:
        """What the cost function needs, for each worker."""
        result, names = [], self.request.blocks
        most = max(self.scores.values(), default=0) if self.cost.shared else 0
        for worker in self.workers:
            active = self.load.workers[worker]
            blocks = active.blocks_with(names) if self.cost.assume_reuse else active.active_blocks + len(names)
            overlap, requests = self.overlap(worker), len(active.requests)
            beyond = max(most - overlap, 0)  # another worker has them: they can be fetched
            result.append(Candidate(worker, overlap, active.prefill_tokens, blocks, requests, shared=beyond))
        return result
