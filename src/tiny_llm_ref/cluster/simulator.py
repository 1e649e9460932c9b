"""A whole deployment under virtual time: puts kernel, engines, routers and faults together, and runs a workload."""

from collections.abc import Callable
from random import Random

from .balance import LeastLoaded, PowerOfTwo, RandomChoice, RoundRobin
from .deployment import Deployment, PolicyName, Routing
from .event_channel import EventChannel
from .events import EventFeed
from .fault_schedule import FaultSchedule
from .fleet import Fleet
from .front_end import FrontEnd
from .hashing import traced_hashes
from .indexer import PrefixIndex
from .kernel import Phase, Simulation
from .observer import Observer
from .planner_loop import PlannerLoop
from .policies import Balanced, KvAware, Policy
from .query import Index
from .recent_index import RecentIndex
from .router import RouterConfig
from .run import Note, Run
from .synced_router import SyncedRouter
from .tally import Tally
from .workload import Workload

Progress = Callable[[int, int, int], object]
"""Gets the simulated time in ns, the requests that have ended, and those that came."""


def make_policy(name: PolicyName, routing: Routing, rng: Random) -> Policy:
    """The policy of that name."""
    if name == "kv-aware":
        return KvAware(rng, routing.temperature)
    balancers = {
        "random": lambda: RandomChoice(rng),
        "round-robin": RoundRobin,
        "least-loaded": lambda: LeastLoaded(rng),
        "power-of-two": lambda: PowerOfTwo(rng),
    }
    return Balanced(balancers[name]())


class Simulator:
    """One run of a deployment. seed: repeats every chance of it. planner: scales it, None for nobody."""

    def __init__(self, deployment: Deployment, workload: Workload, seed: int = 0, planner: PlannerLoop | None = None):
        self.deployment, self.seed, self.planner = deployment, seed, planner
        self.simulation, self.run = Simulation(), Run(seed)
        self.front = FrontEnd(self.simulation, deployment, self.run, workload)
        routing = deployment.routing
        self.exact = routing.policy == "kv-aware" and not routing.approximate
        pools = {"worker": deployment.pool}
        lease = deployment.control.lease
        self.fleet = Fleet(self.simulation, self.front, self.run, pools, lease)
        self.observer = Observer(self.fleet)
        self.faults = FaultSchedule(self.simulation, self.fleet, Random(f"{seed} faults"))
        for number in range(routing.routers):
            self.add_router(number)
        for pool, config in pools.items():
            for _ in range(config.workers):
                self.fleet.start(pool)
        for fault in deployment.faults:
            self.faults.add(fault)

    def add_router(self, number: int) -> None:
        """A router, and what tells it of caches."""
        routing, pool = self.deployment.routing, self.deployment.pool
        rng = Random(f"{self.seed} router {number}")
        index: Index | None = None
        if self.exact:
            index = EventFeed(PrefixIndex(traced_hashes))
            self.front.channels.append(
                EventChannel(self.simulation, index, routing.event_delay, self.faults.losses, rng)
            )
        elif routing.policy == "kv-aware":
            index = RecentIndex()
        self.front.names = index is not None
        config = RouterConfig(pool.block_size, routing.cost, routing.busy_prefill_tokens, routing.overload_blocks)
        router = SyncedRouter(make_policy(routing.policy, routing, rng), config, index, name=f"router-{number}")
        if routing.sync is not None:
            router.connect(self.simulation, routing.sync, self.front.routers, self.front.send)
        self.front.routers.append(router)

    def look(self, progress: Progress | None) -> None:
        """Look at all workers, and check what must always be true."""
        self.fleet.each(lambda worker: self.run.samples.append(worker.sample()))
        self.fleet.sweep()
        self.front.check()
        for channel in self.front.channels:
            self.fleet.each(channel.hear)
        if progress:
            progress(self.simulation.now, self.front.done + self.front.rejected, len(self.run.records))
        if self.planner:
            self.simulation.at(self.simulation.now, Phase.SCALING, self.plan, self.planner)
        if self.front.busy:
            self.simulation.after(self.deployment.control.telemetry, Phase.TELEMETRY, self.look, progress)

    def plan(self, planner: PlannerLoop) -> None:
        """Show the planner how things stand, and do what it decides."""
        tally, self.front.tally = self.front.tally, Tally()
        now = self.simulation.now
        decision = planner.tick(self.observer.look(tally, now), now)
        for pool, target in decision.targets.items() if decision else ():
            self.observer.wanted[pool] = target
            self.run.notes.append(Note(now, "scale", pool, f"{target} workers, decision {decision.number}"))
            self.fleet.scale(pool, target)

    def simulate(self, progress: Progress | None = None) -> Run:
        """Run until every request has ended."""
        self.front.open()
        self.simulation.at(0, Phase.TELEMETRY, self.look, progress)
        self.run.events = self.simulation.run()
        self.run.end = self.simulation.now
        self.run.engine_steps = sum(step.count for worker in self.run.workers.values() for step in worker.steps)
        self.front.check()
        return self.run


def simulate(
    deployment: Deployment,
    workload: Workload,
    seed: int = 0,
    planner: PlannerLoop | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run a workload on a deployment, until every request has ended."""
    return Simulator(deployment, workload, seed, planner).simulate(progress)
