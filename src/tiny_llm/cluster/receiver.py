# This file is yours to edit. Read book/src/week4-05-disaggregation.md.
"""The decode side of a connector: takes pages for a prompt that another worker computes, and waits until they are full.

Knows requests, transfers and counts; the caller brings the time, and carries the orders out. Pages that somebody may
still write to are never freed, whatever became of their request. After vLLM's MooncakeConnector.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..serving.request import Request
from .connector import EXPIRY_NS, Copy, Order, Refused, Start, Stop
from .handoff import Ticket, Transfer
from .held_memory import HeldMemory
from .indexer import Worker


def handed_over(request: Request, token: int) -> Request:
    """The request as the decode worker gets it: the first token of its answer is known. Returns it."""
    request.ids.append(token)
    request.device_len += 1
    return request


# ANCHOR: receiving
@dataclass(eq=False)
class Receiving:
    """One prompt on its way in.

    outstanding: copies that have not ended, for each rank.
    arrived: leading pages that all copies so far have filled.
    until: ns; from then on nobody writes. ended: the request is gone, its pages are not.
    """

    request: Request
    ticket: Ticket
    outstanding: dict[int, int]
    arrived: int
    until: int
    ended: bool = False
    # ANCHOR_END: receiving


class Receiver:
    """The records of one decode worker.

    ranks: its tensor-parallel size. recompute: what did not arrive is computed here; else the request fails.
    spare: how many pages to leave to those that run. queue: requests that found no pages, the oldest first.
    """

    def __init__(
        self,
        memory: HeldMemory,
        ranks: int = 1,
        kv_heads: int = 8,
        recompute: bool = True,
        spare: Callable[[], int] = int,
        expiry: int = EXPIRY_NS,
    ):
        self.memory, self.ranks, self.kv_heads = memory, ranks, kv_heads
        self.recompute, self.spare, self.expiry = recompute, spare, expiry
        self.records: dict[Transfer, Receiving] = {}
        self.queue: deque[tuple[Request, Ticket]] = deque()

    def begin(self, request: Request, ticket: Ticket, now: int) -> list[Order]:
        """A request came whose prompt is elsewhere."""
        self.queue.append((request, ticket))
        return self.retry(now)

    def retry(self, now: int) -> list[Order]:
        """Take pages for those that wait, in their order, and ask for what is not cached here."""
        orders: list[Order] = []
        while self.queue and self.memory.reserve(self.queue[0][0], self.spare()):
            orders += self.receive(*self.queue.popleft(), now)
        return orders

    def receive(self, request: Request, ticket: Ticket, now: int) -> list[Order]:
        """Ask for the missing ones of its pages. Where none is missing, the prefill worker must hear that as well."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 4: Receiver.receive - see book/src/week4-05-disaggregation.md#task-4"
        )

    def moved(self, copy: Copy, pages: int, now: int) -> list[Order]:
        """A copy has ended. pages: how many of its pages it has filled, from the first."""
        return self.hear(copy.transfer, copy.part.target, 1, pages, now)

    def refused(self, refused: Refused, now: int) -> list[Order]:
        """Nothing will come for a rank."""
        record = self.records.get(refused.transfer)
        count = 0 if record is None else record.outstanding[refused.rank]
        return self.hear(refused.transfer, refused.rank, count, 0, now)

    def hear(self, transfer: Transfer, rank: int, copies: int, pages: int, now: int) -> list[Order]:
        """`copies` copies for a rank have ended, and filled the first `pages` pages that were missing.

        What comes too late, or for another generation, changes nothing.
        """
        raise NotImplementedError("Week 4 Day 5 Task 4: Receiver.hear - see book/src/week4-05-disaggregation.md#task-4")

    def expire(self, now: int) -> list[Order]:
        """Give up what did not come in time: by now nobody writes any more."""
        late = [record for record in self.records.values() if record.until <= now]
        for record in late:
            record.arrived = 0
        return self.finish(late, now)

    def next_time(self) -> int | None:
        """When `expire` has something to give up, in ns."""
        return next((record.until for record in self.records.values()), None)

    def finish(self, records: Iterable[Receiving], now: int) -> list[Order]:
        """Nobody writes for these requests any more: run them with what came, or fail them, or free what was kept."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 4: Receiver.finish - see book/src/week4-05-disaggregation.md#task-4"
        )

    def abort(self, request: Request, now: int) -> list[Order]:
        """The client has left, wherever the request is. Pages that somebody may write to are kept until nobody does."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 4: Receiver.abort - see book/src/week4-05-disaggregation.md#task-4"
        )

    def lost(self, worker: Worker) -> list[Order]:
        """A prefill worker is gone, it seems: nobody waits for it. It may still write, so the pages are kept."""
        again = [request for request, ticket in self.queue if ticket.worker == worker]
        self.queue = deque(entry for entry in self.queue if entry[1].worker != worker)
        for record in self.records.values():
            if record.ticket.worker == worker and not record.ended:
                record.ended = True
                again.append(record.request)
        return [Start(request) if self.recompute else Stop(request) for request in again]
