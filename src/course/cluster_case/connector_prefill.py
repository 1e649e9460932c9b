"""A prefill worker of a world of two pools: computes prompts, keeps them, and is watched for what it frees."""

from typing import TYPE_CHECKING

from course.cluster_case.connector_worker import Attempt, Worker

if TYPE_CHECKING:
    from course.cluster_case.connector_world import World


class PrefillWorker(Worker):
    """Computes prompts. held: transfers whose pages it keeps; over: those that nobody needs any more."""

    def __init__(self, world: "World", name: str, ranks: int, pages: int):
        super().__init__(world, name, ranks, pages)
        self.side = world.part("sender.Sender")(self.memory, ranks, world.kv_heads, world.expiry)
        self.attempts: dict[object, object] = {}
        self.ready: dict[object, int] = {}
        self.held: dict[object, object] = {}
        self.over: dict[object, str] = {}

    def breaks(self) -> bool:
        """Some steps fail."""
        return self.world.rng.random() < self.world.step_failures

    def prefill(self, attempt: Attempt, ticket) -> None:
        """A prompt came."""
        request = self.request(attempt.prompt, 1)
        self.attempts[request] = ticket.transfer
        if self.side.accept(request, ticket.transfer):
            self.scheduler.add(request)
        elif ticket.transfer not in self.over:
            self.world.violate(f"{self.name} does not run a prompt that nobody has given up: {ticket.transfer}")
        self.after()

    def told(self, request, output) -> None:
        """A prompt has its token, or failed."""
        transfer = self.attempts[request]
        if output.finish_reason == "length":
            self.ready[transfer] = self.world.now
            self.held[transfer] = request
        else:
            self.over.setdefault(transfer, f"its prompt ended with {output.finish_reason}")
        orders = self.side.ended(request, self.world.now)
        token = output.sampled.token if output.sampled else None
        self.world.tokens[transfer] = token
        self.world.send(self, None, self.world.front.prefilled, transfer, token, output.finish_reason)
        self.carry(orders)

    def asked(self, ask) -> None:
        """A question came."""
        self.world.asks[ask.transfer, ask.rank] = ask
        self.carry(self.side.ask(ask, self.world.now))

    def release(self, transfer) -> None:
        """Somebody says that nobody will take a prompt."""
        self.over.setdefault(transfer, "it was released")
        orders = self.side.release(transfer, self.world.now)
        request = self.side.request(transfer)
        if request is not None:
            output = self.scheduler.abort(request.uid)
            assert output is not None
            orders = [*orders, *self.side.ended(request, self.world.now)]
        self.carry(orders)

    def moved(self, copy, ok: bool) -> None:
        """A copy has ended."""
        if not self.dead:
            self.carry(self.side.moved(copy, ok, self.world.now))

    def carry(self, orders) -> None:
        """Carry out orders."""
        for order in orders:
            if type(order).__name__ == "Copy":
                self.world.mover.start(self, order)
            else:
                self.check_refusal(order)
                target = self.world.askers.get(order.transfer)
                self.world.send(self, target, target.refused, order)
        self.after()

    def check_refusal(self, refused) -> None:
        """Nobody is refused a prompt that is here or will be."""
        transfer, now = refused.transfer, self.world.now
        ask = self.world.asks[transfer, refused.rank]
        old = self.ready.get(transfer, now) + self.world.expiry <= now
        if not (transfer in self.over or old or now >= ask.until):
            self.world.violate(f"{self.name} refuses {transfer} though nobody gave it up and it is not too old")
        elif now >= ask.until and transfer not in self.ready:
            self.over.setdefault(transfer, "who asked waits no longer")

    def check(self) -> None:
        """Pages are kept as long as they are needed, and no longer."""
        now, mover = self.world.now, self.world.mover
        for transfer, request in list(self.held.items()):
            over = self.over.get(transfer) or ("all was sent" if mover.complete(transfer) else "")
            late = now >= self.ready[transfer] + self.world.expiry
            if request not in self.memory.holds:
                del self.held[transfer]
                if not (over or late):
                    self.world.violate(
                        f"{self.name} freed the pages of {transfer}: not all was sent, nobody gave it up"
                    )
            elif over and not mover.under_way(transfer):
                self.world.violate(f"{self.name} keeps the pages of {transfer}, though {over}")
                del self.held[transfer]
