"""What each worker is busy with, as far as a router knows from its own decisions: no report of a worker is that fresh.

Knows blocks by their sequence hashes, and counts of tokens. After Dynamo's active sequences.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .indexer import Worker

EXPIRY_NS = 3600 * 10**9
CHECK_NS = 30 * 10**9


@dataclass
class ActiveRequest:
    """One request that a worker has.

    blocks: of its prompt, then of its output. prefill_tokens: those not computed yet; 0 after prefill. start: ns.
    """

    blocks: list[Hashable]
    prefill_tokens: int
    start: int


class ActiveSequences:
    """The requests of one worker, and the blocks that they hold together: each counts once, whoever shares it.

    prefill_tokens: prompt tokens that it has still to compute.
    """

    def __init__(self) -> None:
        self.requests: dict[Hashable, ActiveRequest] = {}
        self.prefill_tokens = 0
        self._references: Counter[Hashable] = Counter()
        self._discounts: dict[Hashable, float] = {}

    @property
    def active_blocks(self) -> float:
        """Different blocks that its requests hold. One with a discount (`grow`) counts in part."""
        return len(self._references) - sum(self._discounts.values()) if self._discounts else len(self._references)

    def blocks_with(self, blocks: Sequence[Hashable]) -> float:
        """`active_blocks` if a request with these prompt blocks came.

        A sequence hash holds all that is before it: so those that are active already are the first ones.
        """
        held = bisect_left(blocks, True, key=lambda block: block not in self._references)
        shared = sum(self._discounts.get(block, 0.0) for block in blocks[:held]) if self._discounts else 0
        return self.active_blocks + shared + len(blocks) - held

    def add(self, uid: Hashable, blocks: Sequence[Hashable], prefill_tokens: int, now: int) -> bool:
        """A request came. Returns False, and changes nothing, where it is here already."""
        if uid in self.requests:
            return False
        self.requests[uid] = ActiveRequest([], prefill_tokens, now)
        self.prefill_tokens += prefill_tokens
        self._hold(self.requests[uid], blocks)
        return True

    def prefill_done(self, uid: Hashable) -> None:
        """Its first token came: its prompt is no work any more."""
        if (request := self.requests.get(uid)) is not None:
            self.prefill_tokens -= request.prefill_tokens
            request.prefill_tokens = 0

    def grow(self, uid: Hashable, block: Hashable, remaining: float = 1.0) -> None:
        """Its output has begun another block.

        remaining: share of its expected output that is still to come, 0 to 1. Blocks that nobody else holds count that
        much from now on: they will soon be free.
        """
        if (request := self.requests.get(uid)) is None:
            return
        self._hold(request, (block,))
        for own in request.blocks:
            if self._references[own] == 1 and remaining < 1:
                self._discounts[own] = 1 - max(remaining, 0.0)

    def free(self, uid: Hashable) -> None:
        """It has ended, its prefill too. Again changes nothing."""
        self.prefill_done(uid)
        if (request := self.requests.pop(uid, None)) is None:
            return
        references = self._references
        for block in request.blocks:
            count = references[block]
            if count > 1:
                references[block] = count - 1
            else:
                references.pop(block)
                self._discounts.pop(block, None)

    def expire(self, now: int, age: int = EXPIRY_NS) -> list[Hashable]:
        """Free requests that came `age` ns ago or earlier: their end was lost. Returns their uids."""
        old = [uid for uid, request in self.requests.items() if now - request.start >= age]
        for uid in old:
            self.free(uid)
        return old

    def _hold(self, request: ActiveRequest, blocks: Iterable[Hashable]) -> None:
        request.blocks += blocks
        self._references.update(blocks)
        for block in blocks if self._discounts else ():
            if self._references[block] > 1:
                self._discounts.pop(block, None)


# ANCHOR: news
class Added(NamedTuple):
    """Router `router` sent a request to a worker."""

    router: str
    worker: Worker
    uid: Hashable
    blocks: tuple[Hashable, ...]
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
    choose the same worker. uids are unique over all routers. inflight: how many requests each worker has.
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
        self._take(news, now)
        return news

    def merge(self, news: News, now: int) -> None:
        """Take the news of another router. What was sent by this one came back as an echo, and changes nothing."""
        if news.router != self.router:
            self._take(news, now)

    def expire(self, now: int) -> list[Hashable]:
        """Free what is too old to be true. To be called each `CHECK_NS` or so. Returns the uids."""
        old = [uid for active in self.workers.values() for uid in active.expire(now)]
        self.inflight = {worker: len(active.requests) for worker, active in self.workers.items()}
        return old

    def _take(self, news: News, now: int) -> None:
        if (active := self.workers.get(news.worker)) is None:
            return
        if isinstance(news, Added):
            active.add(news.uid, news.blocks, news.prefill_tokens, now)
        elif isinstance(news, PrefillDone):
            active.prefill_done(news.uid)
        else:
            active.free(news.uid)
        self.inflight[news.worker] = len(active.requests)
