"""One of several routers: each decides on its own, and hears later what the others decided."""

from collections.abc import Callable, Sequence

from .active import News
from .kernel import Phase, Simulation
from .router import Decision, Router
from .routing import RouteRequest


class SyncedRouter(Router):
    """A `Router` that may have peers. chosen: hears of each decision."""

    def __init__(self, chosen: Callable[[Decision], object], *args: object, **names: object):
        super().__init__(*args, **names)
        self.chosen = chosen
        self.peers: list[SyncedRouter] = []

    def connect(
        self,
        simulation: Simulation,
        delay: int,
        peers: Sequence["SyncedRouter"],
        hear: Callable[["SyncedRouter", News], object],
    ) -> None:
        """Exchange news with `peers`, which take `delay` ns. hear: what to do when news are at a router."""
        self.simulation, self.delay, self.hear = simulation, delay, hear
        for peer in peers:
            peer.peers.append(self)
        self.peers += peers

    def place(self, request: RouteRequest, now: int) -> Decision | None:
        """As `Router.place`."""
        decision = super().place(request, now)
        if decision:
            self.chosen(decision)
        return decision

    def tell(self, news: News) -> None:
        """Send news to the peers."""
        for peer in self.peers:
            self.simulation.after(self.delay, Phase.ADMISSION, self.hear, peer, news)
