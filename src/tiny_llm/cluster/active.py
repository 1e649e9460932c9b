# This file is yours to edit. Read book/src/week4-04-kv-aware-routing.md.
"""What each worker is busy with, as far as a router knows from its own decisions: no report of a worker is that fresh.

Knows blocks by their sequence hashes, and counts of tokens. After Dynamo's active sequences.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .indexer import Worker

EXPIRY_NS = 3600 * 10**9
CHECK_NS = 30 * 10**9


# ANCHOR: active
@dataclass
class ActiveRequest:
    """One request that a worker has.

    names: of the blocks of its prompt. prefill_tokens: those not computed yet;
    0 after prefill. start: ns.
    """

    names: Sequence[Hashable]
    prefill_tokens: int
    start: int


class ActiveSequences:
    """The requests of one worker, and the blocks that they hold together.

    A block counts once, whoever shares it. references: how many requests hold
    it; a block that nobody holds is not in there. prefill_tokens: prompt tokens
    that the worker has still to compute.
    """

    def __init__(self) -> None:
        self.requests: dict[Hashable, ActiveRequest] = {}
        self.references: Counter[Hashable] = Counter()
        self.prefill_tokens = 0

    @property
    def active_blocks(self) -> int:
        """Different blocks that its requests hold."""
        return len(self.references)
        # ANCHOR_END: active

    def blocks_with(self, names: Sequence[Hashable]) -> int:
        """`active_blocks` if a request with these prompt blocks came.

        A sequence hash holds all that is before it: so those that are active already are the first ones.
        """
        raise NotImplementedError(
            "Week 4 Day 4 Task 3: ActiveSequences.blocks_with - see book/src/week4-04-kv-aware-routing.md#task-3"
        )

    def add(self, uid: Hashable, names: Sequence[Hashable], prefill_tokens: int, now: int) -> bool:
        """A request came. Returns False, and changes nothing, where it is here already."""
        raise NotImplementedError(
            "Week 4 Day 4 Task 3: ActiveSequences.add - see book/src/week4-04-kv-aware-routing.md#task-3"
        )

    def prefill_done(self, uid: Hashable) -> None:
        """Its first token came: its prompt is no work any more. Again changes nothing."""
        raise NotImplementedError(
            "Week 4 Day 4 Task 3: ActiveSequences.prefill_done - see book/src/week4-04-kv-aware-routing.md#task-3"
        )

    def free(self, uid: Hashable) -> None:
        """It has ended, its prefill too. Again changes nothing."""
        raise NotImplementedError(
            "Week 4 Day 4 Task 3: ActiveSequences.free - see book/src/week4-04-kv-aware-routing.md#task-3"
        )

    def expire(self, now: int, age: int = EXPIRY_NS) -> list[Hashable]:
        """Free requests that came `age` ns ago or earlier: their end was lost. Returns their uids."""
        raise NotImplementedError(
            "Week 4 Day 4 Task 3: ActiveSequences.expire - see book/src/week4-04-kv-aware-routing.md#task-3"
        )


# ANCHOR: news
class Added(NamedTuple):
    """Router `router` sent a request to a worker."""

    router: str
    worker: Worker
    uid: Hashable
    names: tuple[Hashable, ...]
    prefill_tokens: int


class PrefillDone(NamedTuple):
    """The request has its first token."""

    router: str
    worker: Worker
    uid: Hashable


class Freed(NamedTuple):
    """The request has ended."""

    router: str
    worker: Worker
    uid: Hashable


News = Added | PrefillDone | Freed
# ANCHOR_END: news


@dataclass
class Load:
    """The active sequences of all workers, as router `router` knows them.

    Several routers tell each other their news. What is under way they cannot know: between two pieces of news, all may
    choose the same worker. inflight: how many requests each worker has. uids are unique over all routers.
    """

    router: str = "router"
    workers: dict[Worker, ActiveSequences] = field(default_factory=dict)
    inflight: dict[Worker, int] = field(default_factory=dict)

    def add_worker(self, worker: Worker) -> None:
        """Know a worker without requests."""
        self.workers[worker] = ActiveSequences()
        self.inflight[worker] = 0

    def remove_worker(self, worker: Worker) -> None:
        """Forget a worker with its requests."""
        del self.workers[worker], self.inflight[worker]

    def own(self, news: News, now: int) -> News:
        """Take own news. Returns it, for the other routers."""
        self.take(news, now)
        return news

    def merge(self, news: News, now: int) -> None:
        """Take the news of another router. What was sent by this one came back as an echo, and changes nothing."""
        raise NotImplementedError("Week 4 Day 4 Task 3: Load.merge - see book/src/week4-04-kv-aware-routing.md#task-3")

    def expire(self, now: int) -> list[Hashable]:
        """Free what is too old to be true. To be called each `CHECK_NS` or so. Returns the uids."""
        old = [uid for active in self.workers.values() for uid in active.expire(now)]
        self.inflight = {worker: len(active.requests) for worker, active in self.workers.items()}
        return old

    def take(self, news: News, now: int) -> None:
        """Do what the news say. News of a worker that is not known (any more) change nothing."""
        if (active := self.workers.get(news.worker)) is None:
            return
        if isinstance(news, Added):
            active.add(news.uid, news.names, news.prefill_tokens, now)
        elif isinstance(news, PrefillDone):
            active.prefill_done(news.uid)
        else:
            active.free(news.uid)
        self.inflight[news.worker] = len(active.requests)
