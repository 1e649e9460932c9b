"""Makes the routers of a simulated deployment, each with a policy and, where it asks for one, an index of caches."""

from random import Random

from .balance import LeastLoaded, PowerOfTwo, RandomChoice, RoundRobin
from .deployment import Deployment, PolicyName, Pool
from .event_channel import EventChannel
from .events import EventFeed
from .front_end import FrontEnd
from .hashing import traced_hashes
from .indexer import PrefixIndex
from .kernel import Simulation
from .policies import Balanced, KvAware, Policy
from .prefill_aware import PrefillAware
from .query import Index
from .recent_index import RecentIndex
from .router import RouterConfig
from .synced_router import SyncedRouter


def make_policy(name: PolicyName, temperature: float, kind: str, rng: Random) -> Policy:
    """The policy of that name, for the pool `kind`."""
    if name == "kv-aware":
        return (PrefillAware if kind == "prefill" else KvAware)(rng, temperature)
    balancers = {
        "random": lambda: RandomChoice(rng),
        "round-robin": RoundRobin,
        "least-loaded": lambda: LeastLoaded(rng),
        "power-of-two": lambda: PowerOfTwo(rng),
    }
    return Balanced(balancers[name]())


class RouterMaker:
    """Makes routers for the front ends of a deployment. losses: shares of KV events that workers lose, by number."""

    def __init__(
        self, simulation: Simulation, deployment: Deployment, front: FrontEnd, losses: dict[int, float], seed: int
    ):
        self.simulation, self.deployment, self.front = simulation, deployment, front
        self.losses, self.seed = losses, seed

    def routers(self, kind: str, pool: Pool, policy: PolicyName, indexed: bool) -> list[SyncedRouter]:
        """One for each front end, all for workers of the pool `kind`. indexed: whether they ask what workers cache."""
        routing, made = self.deployment.routing, []
        config = RouterConfig(pool.block_size, routing.cost, routing.busy_prefill_tokens, routing.overload_blocks)
        self.front.names |= indexed
        for number in range(routing.routers):
            rng = Random(f"{self.seed} {kind} router {number}")
            index = self.index(kind, rng) if indexed else None
            chooser = make_policy(policy, routing.temperature, kind, rng)
            router = SyncedRouter(self.front.chosen, chooser, config, index, name=f"{kind}-router-{number}")
            if routing.sync is not None:
                router.connect(self.simulation, routing.sync, made, self.front.heard)
            made.append(router)
        return made

    def index(self, kind: str, rng: Random) -> Index:
        """What a router knows of caches: what workers tell, or what it sent them lately."""
        routing = self.deployment.routing
        if routing.approximate:
            return RecentIndex()
        feed = EventFeed(PrefixIndex(traced_hashes))
        self.front.channels.append(EventChannel(self.simulation, kind, feed, routing.event_delay, self.losses, rng))
        return feed
