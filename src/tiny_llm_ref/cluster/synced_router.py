"""One of several routers: each decides on its own, and hears later what the others decided."""

from collections.abc import Callable, Sequence

from .active import News
from .kernel import Phase, Simulation
from .router import Decision, Router


class SyncedRouter(Router):
    """A `Router` that may have peers. Without `connect` it has none."""

    def __init__(self, *args: object, **names: object):
        super().__init__(*args, **names)
        self.peers: list[SyncedRouter] = []

    def connect(
        self,
        simulation: Simulation,
        delay: int,
        peers: Sequence["SyncedRouter"],
        send: Callable[[Sequence[Decision]], object],
    ) -> None:
        """Exchange news with `peers`, which take `delay` ns. send: gets decisions that news make possible."""
        self.simulation, self.delay, self.send = simulation, delay, send
        for peer in peers:
            peer.peers.append(self)
        self.peers += peers

    def tell(self, news: News) -> None:
        """Send news to the peers."""
        for peer in self.peers:
            self.simulation.after(self.delay, Phase.ADMISSION, peer.hear, news)

    def hear(self, news: News) -> None:
        """Take a peer's news."""
        self.send(self.merge(news, self.simulation.now))
