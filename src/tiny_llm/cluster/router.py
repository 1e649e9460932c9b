# This file is yours to edit. Read book/src/week4-04-kv-aware-routing.md.
"""A router: sends each request to a worker, or lets it wait, or refuses it.

Knows the workers, what they have cached (an index), what they are busy with (its own books), and a policy. Time comes
with each call, chance with the policy.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .active import Added, Freed, Load, News, PrefillDone
from .indexer import Worker
from .policies import Policy
from .query import Index, Query
from .router_queue import RouterQueue
from .routing import DEFAULT_COST, CostConfig, RouteRequest


@dataclass(frozen=True)
class RouterConfig:
    """Sizes and limits; None switches a limit off.

    cost: weights for requests that bring none of their own.
    busy_prefill_tokens: a worker with more prompt tokens still to compute is busy: requests wait for another one.
    overload_blocks: a worker with more active blocks gets no request; where all have more, a new one is refused.
    """

    block_size: int = 64
    cost: CostConfig = DEFAULT_COST
    busy_prefill_tokens: float | None = None
    overload_blocks: float | None = None

    @property
    def limited(self) -> bool:
        """Whether a worker can be one that gets nothing."""
        return self.busy_prefill_tokens is not None or self.overload_blocks is not None


class Decision(NamedTuple):
    """A request goes to a worker. overlap: its leading blocks that the router believes to be cached there."""

    uid: Hashable
    worker: Worker
    overlap: int


class Router:
    """Workers, an index of their caches, their load, and a policy.

    index: None where no policy asks for it. At any time a request waits only if each worker that may have it is busy
    or overloaded.
    """

    def __init__(
        self,
        policy: Policy,
        config: RouterConfig | None = None,
        index: Index | None = None,
        queue: RouterQueue | None = None,
        name: str = "router",
    ):
        self.policy, self.index = policy, index
        self.config = config or RouterConfig()
        self.queue = RouterQueue() if queue is None else queue
        self.load = Load(name)
        self.workers: list[Worker] = []
        self.placed: dict[Hashable, Worker] = {}

    def add_worker(self, worker: Worker, now: int) -> list[Decision]:
        """Discovery found a worker. Returns who waits no longer."""
        self.workers.append(worker)
        self.load.add_worker(worker)
        if self.index:
            self.index.add_worker(worker)
        return self.release(now)

    def remove_worker(self, worker: Worker) -> list[Hashable]:
        """Discovery lost a worker, with its requests. Returns who waited and now has no worker left: refuse them.

        Nothing happens for one that is not here (any more).
        """
        if worker not in self.workers:
            return []
        self.workers.remove(worker)
        self.load.remove_worker(worker)
        if self.index:
            self.index.remove_worker(worker)
        self.placed = {uid: each for uid, each in self.placed.items() if each != worker}
        lost = [request.uid for request in self.queue if not self.eligible(request)]
        for uid in lost:
            self.queue.remove(uid)
        return lost

    def submit(self, request: RouteRequest, now: int) -> Decision | None:
        """Route a request. Returns None where it waits: a later call will return its decision.

        Raises OverloadedError where no worker may have it, all are overloaded, or too much waits; ValueError for a uid
        that waits or is placed.
        """
        raise NotImplementedError(
            "Week 4 Day 4 Task 4: Router.submit - see book/src/week4-04-kv-aware-routing.md#task-4"
        )

    def prefill_done(self, uid: Hashable, now: int) -> list[Decision]:
        """The first token of a request came. Returns who waits no longer."""
        if (worker := self.placed.get(uid)) is not None:
            self.tell(self.load.own(PrefillDone(self.load.router, worker, uid), now))
        return self.release(now)

    def free(self, uid: Hashable, now: int) -> list[Decision]:
        """A request has ended, or its client left: placed, waiting or unknown. Returns who waits no longer."""
        self.queue.remove(uid)
        if (worker := self.placed.pop(uid, None)) is not None:
            self.tell(self.load.own(Freed(self.load.router, worker, uid), now))
        return self.release(now)

    def merge(self, news: News, now: int) -> list[Decision]:
        """Another router's news. Returns who waits no longer."""
        self.load.merge(news, now)
        return self.release(now)

    def expire(self, now: int) -> list[Decision]:
        """Forget requests whose end was lost. Returns who waits no longer."""
        for uid in self.load.expire(now):
            self.placed.pop(uid, None)
        return self.release(now)

    def release(self, now: int) -> list[Decision]:
        """Place those that wait and need not any more, in their order. Returns their decisions."""
        raise NotImplementedError(
            "Week 4 Day 4 Task 4: Router.release - see book/src/week4-04-kv-aware-routing.md#task-4"
        )

    def tell(self, news: News) -> None:
        """Own news, for other routers. A router that has some overrides this."""

    # ANCHOR: place
    def eligible(self, request: RouteRequest) -> Sequence[Worker]:
        """Workers that may have the request, busy or not."""
        if request.eligible is None:
            return self.workers
        return [worker for worker in self.workers if worker in request.eligible]

    def overloaded(self, worker: Worker) -> bool:
        """Whether the worker's requests hold more blocks than the limit."""
        limit = self.config.overload_blocks
        return limit is not None and self.load.workers[worker].active_blocks > limit

    def busy(self, worker: Worker) -> bool:
        """Whether the worker has more prompt tokens to compute than the limit."""
        limit = self.config.busy_prefill_tokens
        return limit is not None and self.load.workers[worker].prefill_tokens > limit

    def place(self, request: RouteRequest, now: int) -> Decision | None:
        """Choose a worker that is neither busy nor overloaded, and note the request.

        Returns None, and changes nothing, where there is none.
        """
        workers = self.eligible(request)
        if self.config.limited:
            workers = [w for w in workers if not (self.overloaded(w) or self.busy(w))]
        if not workers:
            return None
        cost, size = request.cost or self.config.cost, self.config.block_size
        query = Query(request, workers, cost, size, self.load, self.index, now)
        worker = self.policy.choose(query)
        overlap = query.overlap(worker)
        new = max(request.tokens - overlap * size, 0) if cost.track_prefill else 0
        self.placed[request.uid] = worker
        blocks = tuple(request.blocks)
        news = Added(self.load.router, worker, request.uid, blocks, new)
        self.tell(self.load.own(news, now))
        if self.index:
            self.index.sent(worker, request.blocks, now)
        return Decision(request.uid, worker, overlap)
        # ANCHOR_END: place
