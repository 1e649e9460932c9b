"""A decode worker of a world of two pools: waits for prompts, or computes them, and answers."""

from typing import TYPE_CHECKING

from course.cluster_case.connector_worker import Attempt, Worker

if TYPE_CHECKING:
    from course.cluster_case.connector_world import World


class DecodeWorker(Worker):
    """Computes answers."""

    def __init__(self, world: "World", name: str, ranks: int, pages: int):
        super().__init__(world, name, ranks, pages)
        make = world.part("receiver.Receiver")
        self.side = make(self.memory, ranks, world.kv_heads, world.recompute, self.promised, world.expiry)
        self.attempts: dict[object, Attempt] = {}
        self.transfers: dict[object, object] = {}
        self.requests: dict[int, object] = {}
        self.lost_peers: dict[str, None] = {}

    def decode(self, uid: int, attempt: Attempt, first: int | None, ticket) -> None:
        """An answer is to be computed here."""
        request = self.requests[uid] = self.request(attempt.prompt, attempt.max_tokens)
        self.attempts[request] = attempt
        if first is not None:
            self.hand_over(request, first)
        if ticket is None:
            self.scheduler.add(request)
            self.after()
            return
        self.transfers[request] = ticket.transfer
        self.world.askers[ticket.transfer] = self
        orders = self.side.begin(request, ticket, self.world.now)
        if ticket.worker in self.lost_peers:
            orders = [*orders, *self.side.lost(ticket.worker)]
        self.carry(orders)

    def hand_over(self, request, token: int) -> None:
        """The first token is known."""
        self.world.part("receiver.handed_over")(request, token)

    def told(self, request, output) -> None:
        """A token, or an end."""
        attempt = self.attempts[request]
        token = output.sampled.token if output.sampled else None
        index = attempt.base + len(request.ids) - request.prompt_len - 1
        self.world.send(self, None, self.world.front.token, attempt, index, token, output.finish_reason)
        if output.finish_reason is not None:
            self.carry(self.side.retry(self.world.now))

    def start(self, request) -> None:
        """The prompt is here, as far as it will be."""
        attempt, token = self.attempts[request], self.world.tokens.get(self.transfers[request])
        known = attempt.takes_token and attempt.max_tokens > 1 and self.world.mover.complete(self.transfers[request])
        if known and len(request.ids) == request.prompt_len:
            self.hand_over(request, token)
            self.world.send(self, None, self.world.front.token, attempt, attempt.base, token, None)
        if request.finish_reason is None:
            self.scheduler.add(request)

    def cancel(self, uid: int) -> None:
        """The client has left."""
        request = self.requests.get(uid)
        if request is None or request.finish_reason is not None:
            return
        orders = self.side.abort(request, self.world.now)
        if self.scheduler.abort(request.uid) is None:
            request.finish_reason = "abort"
        self.carry([*orders, *self.side.retry(self.world.now)])

    def refused(self, order) -> None:
        """A question was answered with no."""
        self.carry(self.side.refused(order, self.world.now))

    def moved(self, copy, pages: int) -> None:
        """A copy has ended."""
        self.carry(self.side.moved(copy, pages, self.world.now))

    def lost(self, name: str) -> None:
        """Discovery says that a prefill worker is gone."""
        self.lost_peers[name] = None
        self.carry(self.side.lost(name))

    def carry(self, orders) -> None:
        """Carry out orders."""
        for order in orders:
            kind = type(order).__name__
            if kind == "Start":
                self.start(order.request)
            elif kind == "Stop":
                order.request.finish_reason = "error"
                self.world.send(self, None, self.world.front.token, self.attempts[order.request], 0, None, "error")
            elif (peer := self.world.worker(order.worker)) is not None:
                if kind == "Ask":
                    self.world.marks[order.transfer] = self.device.mark(order.pages)
                    self.world.send(self, peer, peer.asked, order)
                else:
                    self.world.send(self, peer, peer.release, order.transfer)
        self.after()
