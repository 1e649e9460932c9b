# This file is yours to edit. Read book/src/week4-05-disaggregation.md.
"""The prefill side of a connector: keeps a computed prompt until it is taken, given up, or too old.

Knows requests, transfers and counts; the caller brings the time, and carries the orders out. Prompt and question may
come in either order. After vLLM's MooncakeConnector.
"""

from dataclasses import dataclass, field

from ..serving.request import Request
from .connector import EXPIRY_NS, GRACE_NS, Ask, Copy, Order
from .handoff import Transfer
from .held_memory import HeldMemory


# ANCHOR: sending
@dataclass(eq=False)
class Sending:
    """One prompt on its way out.

    expiry: ns; from then on no copy begins.
    request: whose pages are held, None until its prompt is computed.
    asks: those that came before. needed: copies that make it complete, None
    until somebody asks. sent: copies that arrived. sending: copies under way.
    """

    expiry: int
    request: Request | None = None
    pages: tuple[int, ...] = ()
    asks: list[Ask] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    needed: int | None = None
    sent: int = 0
    sending: int = 0
    # ANCHOR_END: sending


class Sender:
    """The records of one prefill worker.

    memory: has the pages. ranks: its tensor-parallel size. records: those that have not ended. ended_at: when the
    others did, for as long as somebody may ask for them. requests: those that have not ended.
    """

    def __init__(self, memory: HeldMemory, ranks: int = 1, kv_heads: int = 8, expiry: int = EXPIRY_NS):
        self.memory, self.ranks, self.kv_heads, self.expiry = memory, ranks, kv_heads, expiry
        self.records: dict[Transfer, Sending] = {}
        self.ended_at: dict[Transfer, int] = {}
        self.requests: dict[Request, Transfer] = {}

    def accept(self, request: Request, transfer: Transfer) -> bool:
        """A request comes whose prompt goes elsewhere. Returns False where that was released before: do not run it."""
        if transfer in self.ended_at:
            return False
        self.requests[request] = transfer
        self.memory.marked[request] = None
        return True

    def request(self, transfer: Transfer) -> Request | None:
        """The request that computes this prompt, if it has not ended."""
        return next((request for request, each in self.requests.items() if each == transfer), None)

    def ended(self, request: Request, now: int) -> list[Order]:
        """A request has ended. Its pages wait `self.expiry` ns for whoever asks, unless the memory kept none.

        The worker tells of each that ends: one that was never accepted, or has ended before, gives no orders.
        """
        raise NotImplementedError("Week 4 Day 5 Task 3: Sender.ended - see book/src/week4-05-disaggregation.md#task-3")

    def ask(self, ask: Ask, now: int) -> list[Order]:
        """A rank of the decode worker asks. Without a prompt it waits for it, as long as the question is good.

        A question that is refused frees nothing.
        """
        raise NotImplementedError("Week 4 Day 5 Task 3: Sender.ask - see book/src/week4-05-disaggregation.md#task-3")

    def serve(self, record: Sending, ask: Ask, now: int) -> list[Order]:
        """Begin the copies for a rank, or refuse them: too late, or more pages than there are."""
        raise NotImplementedError("Week 4 Day 5 Task 3: Sender.serve - see book/src/week4-05-disaggregation.md#task-3")

    def moved(self, copy: Copy, ok: bool, now: int) -> list[Order]:
        """A copy has ended."""
        record = self.records[copy.transfer]
        record.sending -= 1
        record.sent += ok
        return self.settle(copy.transfer, now)

    def release(self, transfer: Transfer, now: int) -> list[Order]:
        """Nobody will take this prompt any more: no copy begins from now on."""
        if transfer in self.ended_at:
            return []
        self.records.setdefault(transfer, Sending(now)).expiry = now
        return self.settle(transfer, now)

    def expire(self, now: int) -> list[Order]:
        """End what is too old."""
        old = [transfer for transfer, record in self.records.items() if record.expiry <= now]
        orders = [order for transfer in old for order in self.settle(transfer, now)]
        for transfer in [each for each, time in self.ended_at.items() if time + self.expiry + GRACE_NS <= now]:
            del self.ended_at[transfer]
        return orders

    def next_time(self) -> int | None:
        """When `expire` has something to end, in ns."""
        return min((record.expiry for record in self.records.values() if not record.sending), default=None)

    def settle(self, transfer: Transfer, now: int) -> list[Order]:
        """Free the pages if all was sent or nothing may be any more; never while a copy is under way."""
        raise NotImplementedError("Week 4 Day 5 Task 3: Sender.settle - see book/src/week4-05-disaggregation.md#task-3")
