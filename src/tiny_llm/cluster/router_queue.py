# This file is yours to edit. Read book/src/week4-04-kv-aware-routing.md.
"""Requests that wait at the router because every worker that may have them is busy with prompts.

Knows orders and counts of tokens; nothing of workers or time.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator

from .routing import RouteRequest


class OverloadedError(RuntimeError):
    """No worker can take a request, now or soon: an HTTP server answers 503."""


Score = Callable[[RouteRequest, int], float]
"""How soon a request goes, given its prompt tokens that no worker has cached: the highest first."""


def fcfs(request: RouteRequest, new_tokens: int) -> float:
    """First come, first served."""
    raise NotImplementedError("Week 4 Day 4 Task 4: fcfs - see book/src/week4-04-kv-aware-routing.md#task-4")


def lcfs(request: RouteRequest, new_tokens: int) -> float:
    """Last come, first served."""
    raise NotImplementedError("Week 4 Day 4 Task 4: lcfs - see book/src/week4-04-kv-aware-routing.md#task-4")


def wspt(request: RouteRequest, new_tokens: int) -> float:
    """Weighted shortest processing time: little work goes first."""
    raise NotImplementedError("Week 4 Day 4 Task 4: wspt - see book/src/week4-04-kv-aware-routing.md#task-4")


SCORES: dict[str, Score] = {"fcfs": fcfs, "lcfs": lcfs, "wspt": wspt}


class RouterQueue:
    """A heap by (priority, score, order of coming).

    limit: prompt tokens that may wait in each priority, None for any number. tokens: those that wait, by priority.
    waiting: who waits, by uid. heap: an entry for each; those of requests that were removed stay in it for a while.
    """

    # ANCHOR: queue
    def __init__(self, score: Score = fcfs, limit: int | None = None):
        self.score = score
        self.limit = limit
        self.tokens: dict[int, int] = {}
        self._count = 0
        self.waiting: dict[Hashable, RouteRequest] = {}
        self.heap: list[tuple[int, float, int, RouteRequest]] = []
        # ANCHOR_END: queue

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[RouteRequest]:
        """Those that wait, in the order of coming."""
        return iter(self.waiting.values())

    def __contains__(self, uid: Hashable) -> bool:
        return uid in self.waiting

    # ANCHOR: push
    def push(self, request: RouteRequest, new_tokens: int) -> None:
        """Let a request wait.

        Raises OverloadedError beyond the limit, ValueError for one that waits already.
        """
        if request.uid in self.waiting:
            raise ValueError(f"request {request.uid} waits already")
        tokens = self.tokens.get(request.priority, 0) + request.tokens
        if self.limit is not None and tokens > self.limit:
            where = f"{tokens} tokens would wait at priority {request.priority}"
            raise OverloadedError(f"{where}: the limit is {self.limit}")
        self.tokens[request.priority] = tokens
        self.waiting[request.uid] = request
        self._count += 1
        score = self.score(request, new_tokens)
        entry = (-request.priority, -score, self._count, request)
        heapq.heappush(self.heap, entry)

    def remove(self, uid: Hashable) -> bool:
        """A request stops waiting. Returns whether it waited."""
        if (request := self.waiting.pop(uid, None)) is None:
            return False
        self.tokens[request.priority] -= request.tokens
        return True

    # ANCHOR_END: push

    def release(self, ready: Callable[[RouteRequest], bool]) -> None:
        """Ask `ready` for those that wait, in their order; those for which it says True wait no longer.

        Where a request for any worker is not ready, none behind it can be: the rest is not asked.
        """
        raise NotImplementedError(
            "Week 4 Day 4 Task 4: RouterQueue.release - see book/src/week4-04-kv-aware-routing.md#task-4"
        )
