"""A whole deployment under virtual time: puts kernel, engines, routers and faults together, and runs a workload."""

from collections.abc import Callable
from random import Random

from .deployment import Deployment, Pool
from .disaggregation import TwoStage
from .fault_schedule import FaultSchedule
from .fleet import Fleet
from .front_end import FrontEnd
from .handoff import HandOff
from .kernel import Phase, Simulation
from .observer import Observer
from .planner_loop import PlannerLoop
from .routers import RouterMaker
from .run import Note, Run
from .split_front import SplitFront
from .tally import Tally
from .workload import Workload

Progress = Callable[[int, int, int], object]
"""Gets the simulated time in ns, the requests that have ended, and those that came."""


class Simulator:
    """One run of a deployment. seed: repeats every chance of it. planner: scales it, None for nobody."""

    def __init__(self, deployment: Deployment, workload: Workload, seed: int = 0, planner: PlannerLoop | None = None):
        self.deployment, self.seed, self.planner = deployment, seed, planner
        self.simulation, self.run = Simulation(), Run(seed)
        self.losses: dict[int, float] = {}
        pools = {"worker": deployment.pool}
        if deployment.prefill is None:
            self.front = self.aggregated(workload)
        else:
            pools = {"prefill": deployment.prefill, "decode": deployment.pool}
            self.front = self.split(workload, deployment.prefill)
        self.fleet = Fleet(self.simulation, self.front, self.run, pools, deployment.control.lease)
        self.observer = Observer(self.fleet)
        faults = FaultSchedule(self.simulation, self.fleet, self.losses, Random(f"{seed} faults"))
        for name, pool in pools.items():
            for _ in range(pool.workers):
                self.fleet.start(name)
        for fault in deployment.faults:
            faults.add(fault)

    def aggregated(self, workload: Workload) -> FrontEnd:
        """Front ends of one pool."""
        front = FrontEnd(self.simulation, self.deployment, self.run, workload)
        maker = RouterMaker(self.simulation, self.deployment, front, self.losses, self.seed)
        policy = self.deployment.routing.policy
        front.routers = maker.routers("worker", self.deployment.pool, policy, policy == "kv-aware")
        return front

    def split(self, workload: Workload, prefill: Pool) -> SplitFront:
        """Front ends of a prefill and a decode pool."""
        deployment, routing = self.deployment, self.deployment.routing
        front = SplitFront(self.simulation, deployment, self.run, workload)
        maker = RouterMaker(self.simulation, deployment, front, self.losses, self.seed)
        first = maker.routers("prefill", prefill, routing.policy, routing.policy == "kv-aware")
        second = maker.routers("decode", deployment.pool, routing.decode_policy, deployment.rule is not None)
        hand_off = HandOff(deployment.handoff)
        front.stages = [TwoStage(*pair, hand_off, deployment.rule) for pair in zip(first, second, strict=True)]
        return front

    def look(self, progress: Progress | None) -> None:
        """Look at all workers, and check what must always be true."""
        self.fleet.each(lambda worker: self.run.samples.append(worker.sample()))
        self.fleet.sweep()
        self.front.tidy()
        self.front.ledger.check(len(self.front.jobs), self.front.queued)
        for channel in self.front.channels:
            self.fleet.each(channel.tell)
        if progress:
            ledger = self.front.ledger
            progress(self.simulation.now, ledger.done + ledger.rejected, ledger.injected)
        if self.planner:
            self.simulation.at(self.simulation.now, Phase.SCALING, self.plan, self.planner)
        if self.front.busy:
            self.simulation.after(self.deployment.control.telemetry, Phase.TELEMETRY, self.look, progress)

    def plan(self, planner: PlannerLoop) -> None:
        """Show the planner how things stand, and do what it decides."""
        tally, self.front.ledger.tally = self.front.ledger.tally, Tally()
        now = self.simulation.now
        decision = planner.tick(self.observer.look(tally, now), now)
        for pool, target in decision.targets.items() if decision else ():
            if target != self.observer.wanted[pool]:
                self.run.notes.append(Note(now, "scale", pool, f"{target} workers, decision {decision.number}"))
            self.observer.wanted[pool] = target
            self.fleet.scale(pool, target)

    def simulate(self, progress: Progress | None = None) -> Run:
        """Run until every request has ended."""
        self.front.open()
        self.simulation.at(0, Phase.TELEMETRY, self.look, progress)
        self.run.events = self.simulation.run()
        self.run.end = max((record.done for record in self.run.records.values()), default=0)
        self.run.engine_steps = sum(step.count for worker in self.run.workers.values() for step in worker.steps)
        self.front.ledger.check(len(self.front.jobs), self.front.queued)
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
