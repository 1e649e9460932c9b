"""Clients of a world of two pools, and the front end that routes for them."""

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from course.cluster_case.connector_worker import Attempt

if TYPE_CHECKING:
    from course.cluster_case.connector_world import World

TRIES = 4


@dataclass(eq=False)
class Client:
    """One request. got: tokens by their place in the answer. end: None, "done", "left" or "failed"."""

    uid: int
    prompt: list[int]
    max_tokens: int
    want: list[int]
    got: dict[int, int] = field(default_factory=dict)
    attempt: Attempt | None = None
    tries: int = 0
    end: str | None = None

    def count(self) -> int:
        """Tokens that came, without a gap."""
        return next(i for i in range(len(self.got) + 1) if i not in self.got)


class Chance:
    """A policy of a router: any worker."""

    def __init__(self, rng: Random):
        self.rng = rng

    def choose(self, query):
        """One of them."""
        return self.rng.choice(query.workers)


class FrontEnd:
    """Asks the two-stage router of the package, and does what it orders."""

    def __init__(self, world: "World"):
        self.world = world
        self.clients: list[Client] = []
        self.attempts: dict[object, Attempt] = {}
        self.router = self.make_router()

    def make_router(self):
        """The two-stage router."""
        router, config = self.world.part("router.Router"), self.world.part("router.RouterConfig")
        limit = self.world.rng.choice([None, None, 30])
        prefill = router(Chance(self.world.rng), config(4, busy_prefill_tokens=limit))
        decode = router(Chance(self.world.rng), config(4))
        hand_off = self.world.part("handoff.HandOff")(self.world.rng.choice(["pull", "push", "bootstrap"]))
        rule = self.world.part("conditional.QueueRule")(5, 3) if self.world.rng.random() < 0.3 else None
        return self.world.part("disaggregation.TwoStage")(
            prefill, decode, hand_off, rule, fallback=self.world.rng.random() < 0.5
        )

    def submit(self, client: Client) -> None:
        """A client asks, or its request goes again with what it has."""
        if client.end is not None:
            return
        base = client.count()
        ids = client.prompt + client.want[:base]
        client.tries += 1
        client.attempt = Attempt(client, ids, base, client.max_tokens - base, self.world.rng.random() < 0.6)
        request = self.world.part("routing.RouteRequest")(client.uid, len(ids), ())
        self.carry(self.router.submit(request, self.world.now))

    def carry(self, orders) -> None:
        """Carry out what the router orders."""
        for order in orders:
            kind = type(order).__name__
            client = self.clients[order.uid if kind != "Release" else order.transfer.uid]
            if kind == "Fail":
                self.again(client)
            elif (worker := self.world.worker(order.worker)) is None:
                continue
            elif kind == "Prefill":
                self.attempts[order.ticket.transfer] = client.attempt
                self.world.send(None, worker, worker.prefill, client.attempt, order.ticket)
            elif kind == "Decode":
                attempt = client.attempt
                self.world.send(None, worker, worker.decode, client.uid, attempt, attempt.first, order.ticket)
            elif kind == "Cancel":
                self.world.send(None, worker, worker.cancel, client.uid)
            else:
                self.world.send(None, worker, worker.release, order.transfer)

    def again(self, client: Client) -> None:
        """A try has failed."""
        client.attempt = None
        if client.end is not None:
            return
        if client.tries == TRIES:
            client.end = "failed"
            return
        self.world.agenda.after(self.world.some_time(0, 1), self.submit, client)

    def leave(self, client: Client) -> None:
        """A client goes away."""
        if client.end is None:
            client.end, client.attempt = "left", None
            self.carry(self.router.cancel(client.uid, self.world.now))

    def prefilled(self, transfer, token: int | None, reason: str) -> None:
        """A prefill worker's answer."""
        attempt = self.attempts[transfer]
        if reason == "abort":
            return
        if reason == "error":
            self.carry(self.router.prefill_failed(transfer, self.world.now))
            return
        current = attempt.client.attempt is attempt
        complete = reason == "stop" or attempt.max_tokens == 1
        if not complete:
            attempt.first = token
        self.carry(self.router.prefilled(transfer, complete, self.world.now))
        if current:
            self.take(attempt, attempt.base, token, "stop" if complete else None, routed=complete)

    def token(self, attempt: Attempt, index: int, token: int | None, reason: str | None) -> None:
        """A decode worker's answer."""
        if attempt.client.attempt is not attempt or reason == "abort":
            return
        if reason == "error":
            self.carry(self.router.done(attempt.client.uid, self.world.now))
            self.again(attempt.client)
        else:
            self.take(attempt, index, token, reason, routed=False)

    def take(self, attempt: Attempt, index: int, token: int, reason: str | None, routed: bool) -> None:
        """A token comes to the client."""
        client = attempt.client
        if index >= len(client.want) or client.want[index] != token:
            self.world.violate(
                f"client {client.uid}: token {index} is {token}, expected {client.want[index : index + 1]}"
            )
        client.got[index] = token
        self.world.counts["tokens"] += 1
        if reason is not None:
            if not routed:
                self.carry(self.router.done(client.uid, self.world.now))
            client.end, client.attempt = "done", None
