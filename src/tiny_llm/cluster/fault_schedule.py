"""Makes the faults of a deployment happen to the workers of a run."""

from random import Random

from .deployment import Fault
from .fleet import Fleet
from .kernel import Phase, Simulation
from .worker import Worker


class FaultSchedule:
    """Faults at their times. losses: shares of events that workers lose, by number, for whoever carries events."""

    def __init__(self, simulation: Simulation, fleet: Fleet, losses: dict[int, float], rng: Random):
        self.simulation, self.fleet, self.losses, self.rng = simulation, fleet, losses, rng

    def add(self, fault: Fault) -> None:
        """Let a fault happen at its time, after all that workers tell then."""
        self.simulation.at(fault.time, Phase.SCALING, self.happen, fault)

    def happen(self, fault: Fault) -> None:
        """It happens, unless its worker is not there."""
        names = list(self.fleet.workers)
        name = fault.worker or (self.rng.choice(names) if names else None)
        if (worker := self.fleet.workers.get(name) or self.fleet.draining.get(name)) is None:
            return
        if fault.kind == "crash":
            if fault.duration and name in self.fleet.workers:
                self.fleet.start(worker.kind, fault.duration)
            self.fleet.crash(worker)
        elif fault.kind == "partition":
            self.fleet.silence(worker, fault.duration)
        else:
            self.fleet.note(fault.kind, worker, f"factor {fault.factor:g}")
            self.change(fault.kind, worker, fault.factor)
            self.simulation.after(fault.duration, Phase.ADMISSION, self.change, fault.kind, worker, None)

    def change(self, kind: str, worker: Worker, factor: float | None) -> None:
        """Make something of a worker worse, or, with None, as it was."""
        if kind == "slow-worker":
            worker.slow(1.0 if factor is None else 1 / factor)
        elif kind == "lost-events":
            self.losses[worker.number] = factor or 0.0
        else:
            worker.set_rate(1.0 if factor is None else factor)
