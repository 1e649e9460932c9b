# This file is yours to edit. Read book/src/week4-05-disaggregation.md.
"""Two-stage routing: one worker computes the prompt, another one the answer.

Knows where each request is, and what its workers must be told; two routers choose them. After Dynamo's prefill router.
"""

from collections.abc import Iterable, Mapping

from .conditional import Rule
from .connector import Release
from .handoff import HandOff, Peer, Tickets, Transfer
from .indexer import Worker
from .journey import Decode, Fail, Journey, PoolState, RouteOrder
from .router import Decision, Router
from .routing import RouteRequest
from .situation import situation_of


class TwoStage:
    """Routes requests over a prefill pool and a decode pool.

    rule: which prompts stay with the decode worker; None sends all of them away. fallback: after a failed prefill the
    decode worker computes the prompt; else the request fails. reach: decode workers near a prefill worker; all without.
    """

    def __init__(
        self,
        prefill: Router,
        decode: Router,
        hand_off: HandOff = HandOff.PULL,
        rule: Rule | None = None,
        fallback: bool = False,
        reach: Mapping[Worker, tuple[Worker, ...]] | None = None,
    ):
        self.prefill, self.decode = prefill, decode
        self.tickets = Tickets(hand_off)
        self.rule, self.fallback, self.reach = rule, fallback, reach or {}
        self.peers: dict[Worker, Peer] = {}
        self.journeys: dict[int, Journey] = {}
        self.state = PoolState.PENDING

    def add_prefill(self, peer: Peer, now: int) -> list[RouteOrder]:
        """Discovery found a prefill worker."""
        self.peers[peer.worker] = peer
        self.state = PoolState.ACTIVE
        return self.begun(self.prefill.add_worker(peer.worker, now), now)

    def add_decode(self, worker: Worker, now: int) -> list[RouteOrder]:
        """Discovery found a decode worker."""
        return self.sent(self.decode.add_worker(worker, now))

    def remove_prefill(self, worker: Worker, now: int) -> list[RouteOrder]:
        """Discovery lost a prefill worker. Prompts that it computed and nobody was told of are to be computed again."""
        del self.peers[worker]
        if not self.peers:
            self.state = PoolState.UNAVAILABLE
        orders: list[RouteOrder] = []
        for uid in self.prefill.remove_worker(worker):
            self.journeys[uid].prefilling = False
            orders += self.answer(self.journeys[uid], now)
        for journey in list(self.journeys.values()):
            if journey.ticket is None or journey.ticket.worker != worker:
                continue
            if journey.prefilling:
                orders += self.prefill_failed(journey.ticket.transfer, now)
            elif journey.decoder is None:
                orders += self.give_back(journey)
        return orders

    def remove_decode(self, worker: Worker, now: int) -> list[RouteOrder]:
        """Discovery lost a decode worker. Its requests have failed; prompts kept for them are given back."""
        lost = self.decode.remove_worker(worker)
        lost += [uid for uid, journey in self.journeys.items() if journey.decoder == worker]
        return [order for uid in lost if uid in self.journeys for order in self.fail(uid, "worker lost", now)]

    def submit(self, request: RouteRequest, now: int) -> list[RouteOrder]:
        """Route a request. Where it waits at a router, its orders come with a later call.

        Raises ValueError for a uid that is here.
        """
        raise NotImplementedError(
            "Week 4 Day 5 Task 2: TwoStage.submit - see book/src/week4-05-disaggregation.md#task-2"
        )

    def begun(self, decisions: Iterable[Decision], now: int) -> list[RouteOrder]:
        """Prompts got a prefill worker. Where both workers are told at once, choose the other one as well."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 2: TwoStage.begun - see book/src/week4-05-disaggregation.md#task-2"
        )

    def prefilled(self, transfer: Transfer, complete: bool, now: int) -> list[RouteOrder]:
        """The prefill worker's token came. complete: it ends the answer, so nobody decodes."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 2: TwoStage.prefilled - see book/src/week4-05-disaggregation.md#task-2"
        )

    def answer(self, journey: Journey, now: int) -> list[RouteOrder]:
        """Choose the worker that decodes: by its decode load alone if the prompt is computed elsewhere."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 2: TwoStage.answer - see book/src/week4-05-disaggregation.md#task-2"
        )

    def sent(self, decisions: Iterable[Decision]) -> list[RouteOrder]:
        """Requests got a decode worker."""
        orders: list[RouteOrder] = []
        for uid, worker, _ in decisions:
            self.journeys[uid].decoder = worker
            orders.append(Decode(uid, worker, self.journeys[uid].ticket))
        return orders

    def first_token(self, uid: int, now: int) -> list[RouteOrder]:
        """The first token came from the decode worker, which computed the prompt."""
        return self.sent(self.decode.prefill_done(uid, now))

    def prefill_failed(self, transfer: Transfer, now: int) -> list[RouteOrder]:
        """A prefill worker has failed with a prompt. A decode worker that was told will find out by itself."""
        journey = self.journey(transfer)
        if journey is None or not journey.prefilling:
            return []
        journey.prefilling = False
        orders = self.begun(self.prefill.free(transfer.uid, now), now)
        if not self.fallback:
            return orders + self.fail(transfer.uid, "prefill", now)
        if journey.decoder is None:
            orders += self.give_back(journey)
        return orders if self.tickets.hand_off.concurrent else orders + self.answer(journey, now)

    def journey(self, transfer: Transfer) -> Journey | None:
        """Whose prompt has this name."""
        journey = self.journeys.get(transfer.uid)
        return journey if journey and journey.ticket and journey.ticket.transfer == transfer else None

    def done(self, uid: int, now: int) -> list[RouteOrder]:
        """The decode worker's part has ended: with it, its claim to the prompt."""
        journey = self.journeys.get(uid)
        if journey is None:
            return []
        journey.decoder = None
        if not journey.prefilling:
            journey.ticket = None
        return self.forget(uid, now)

    def cancel(self, uid: int, now: int) -> list[RouteOrder]:
        """The client has left. A computed prompt that no decode worker will take is given back."""
        return self.forget(uid, now) if uid in self.journeys else []

    def fail(self, uid: int, reason: str, now: int) -> list[RouteOrder]:
        """Forget a request, and say so."""
        return [*self.forget(uid, now), Fail(uid, reason)]

    def forget(self, uid: int, now: int) -> list[RouteOrder]:
        """Forget a request: whoever works for it, or keeps pages for it, is told."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 2: TwoStage.forget - see book/src/week4-05-disaggregation.md#task-2"
        )

    def give_back(self, journey: Journey) -> list[RouteOrder]:
        """Tell the prefill worker that nobody will take the prompt."""
        ticket, journey.ticket = journey.ticket, None
        return [] if ticket is None else [Release(ticket.transfer, ticket.worker)]

    def local(self, request: RouteRequest, now: int) -> bool:
        """Whether the rule keeps a prompt. Asked again when a prefill worker is chosen, since its load counts."""
        if self.rule is None or not self.decode.workers:
            return False
        return self.rule.local(situation_of(request, self.prefill, self.decode, now))
