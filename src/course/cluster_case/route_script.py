"""Scripts for a two-stage router: what each call orders, as plain values.

Works with either package through public names. Times are ns.
"""

from collections.abc import Sequence

from course.solution import Solution


class RouteScript:
    """A two-stage router over P0, P1, .. and D0, D1, ..; calls are [name, ...], made at times 0, 1, 2, ...

    Every request has `tokens` tokens. The policy takes the first worker that it may.
    """

    def __init__(self, solution: Solution, options: dict[str, object]):
        self.solution, self.queries, self.options = solution, [], options
        router, config = self.part("router.Router"), self.part("router.RouterConfig")
        limits = options.get("limits", {})
        self.prefill = router(self, config(4, **limits.get("prefill", {})))
        self.decode = router(self, config(4, **limits.get("decode", {})), index=options.get("index"))
        hand_off = self.part("handoff.HandOff")(options.get("hand_off", "pull"))
        make = self.part("disaggregation.TwoStage")
        arguments = {"fallback": options.get("fallback", False), "reach": options.get("reach")}
        self.two = make(self.prefill, self.decode, hand_off, options.get("rule"), **arguments)
        self.tickets: dict[int, list[object]] = {}
        self.log: list[list[object]] = []
        self.time = 0
        for number in range(options.get("prefills", 1)):
            self.call("add_prefill", self.part("handoff.Peer")(f"P{number}"))
        for number in range(options.get("decodes", 1)):
            self.call("add_decode", f"D{number}")
        self.log.clear()

    def part(self, name: str):
        """A public name of the package's cluster."""
        module, _, attribute = name.partition(".")
        return getattr(self.solution.module(f"cluster.{module}"), attribute)

    def choose(self, query):
        """The first worker. Whoever is asked, and how, is noted down."""
        cost, workers = query.cost, list(query.workers)
        weights = [cost.credit, cost.track_prefill, cost.assume_reuse, cost.active]
        self.queries.append([query.request.uid, workers, weights])
        return workers[0]

    def call(self, name: str, *args: object) -> list[object]:
        """One call."""
        self.time += 1
        try:
            orders = getattr(self.two, name)(*args, self.time)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.log.append([["Raised", f"{type(error).__name__}: {error}"]])
            return []
        for order in orders:
            if type(order).__name__ == "Prefill":
                self.tickets.setdefault(order.uid, []).append(order.ticket)
        self.log.append([self.told(order) for order in orders])
        return orders

    def told(self, order: object) -> list[object]:
        """An order as plain values: a ticket is the number of its transfer among those of the request."""
        kind = type(order).__name__
        if kind == "Release":
            return [kind, order.transfer.uid, self.place(order.transfer), order.worker]
        if kind in ("Prefill", "Decode"):
            return [kind, order.uid, order.worker, None if order.ticket is None else self.place(order.ticket.transfer)]
        return [kind, *order]

    def place(self, transfer) -> int:
        """Which of its request's transfers it is."""
        tickets = self.tickets.get(transfer.uid, [])
        return next((i for i, ticket in enumerate(tickets) if ticket.transfer == transfer), -1)

    def submit(self, uid: int, tokens: int = 8, **more: object) -> None:
        """A request."""
        self.call("submit", self.part("routing.RouteRequest")(uid, tokens, tuple(range(tokens // 4)), **more))

    def play(self, script: Sequence[Sequence[object]]) -> "RouteScript":
        """Calls: "submit" uid | "prefilled" uid complete [try] | "failed" uid [try] | others as they are."""
        for name, *args in script:
            if name == "submit":
                self.submit(*args)
            elif name in ("prefilled", "failed"):
                uid, *rest = args
                complete = rest[:1] if name == "prefilled" else []
                which = rest[1] if len(rest) > 1 else -1
                transfer = self.tickets[uid][which].transfer if uid in self.tickets else None
                self.call({"failed": "prefill_failed"}.get(name, name), transfer, *complete)
            else:
                self.call(name, *args)
        return self

    def books(self) -> list[int]:
        """Requests that the two routers still count, place or keep waiting, and journeys."""
        stages = (self.prefill, self.decode)
        counts = [sum(len(load.requests) for load in stage.load.workers.values()) for stage in stages]
        return [*counts, *[len(stage.placed) + len(stage.queue) for stage in stages], len(self.two.journeys)]
