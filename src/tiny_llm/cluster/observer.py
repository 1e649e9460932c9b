"""What a simulated deployment shows its planner: counts since the last look, and how each engine stands.

Knows nothing that a real deployment could not measure: the length of an answer only once it has ended.
"""

from collections import deque

from ..serving.memory import pages_for
from .fleet import Fleet
from .observation import EngineLoad, Observation, PoolLoad, StepSample
from .tally import Tally
from .worker import Worker

SAMPLES = 8
"""Steps of an engine that one look shows."""


class Observer:
    """Looks at a fleet. wanted: workers that each pool should have."""

    def __init__(self, fleet: Fleet):
        self.fleet, self.last = fleet, 0
        self.wanted = {name: pool.workers for name, pool in fleet.pools.items()}

    def look(self, tally: Tally, now: int) -> Observation:
        """What happened since the last look, and how things stand."""
        duration, self.last = now - self.last, now
        return Observation(tally.traffic(duration), {name: self.pool(name, now) for name in self.fleet.pools})

    def pool(self, name: str, now: int) -> PoolLoad:
        """One pool."""
        engines = tuple(self.engine(worker, now) for worker in self.fleet.serving(name))
        draining = sum(worker.kind == name for worker in self.fleet.draining.values())
        return PoolLoad(self.wanted[name], self.fleet.starting[name], draining, engines)

    def engine(self, worker: Worker, now: int) -> EngineLoad:
        """One engine."""
        worker.replica.settle()
        scheduler, memory, run = worker.replica.scheduler, worker.memory, worker.run
        used = memory.pages - memory.available
        prompts = [*scheduler.waiting, *(each for each in scheduler.running.values() if each.extend_len > 1)]
        if worker.recent is None:
            worker.recent = deque(maxlen=SAMPLES)
        recent = list(worker.recent)
        worker.recent.clear()
        return EngineLoad(
            worker=worker.name,
            queued_tokens=sum(each.extend_len for each in prompts),
            running=len(scheduler.requests) - len(prompts),
            kv_used=used,
            kv_queued=sum(pages_for(len(each.ids), memory.page_size) for each in scheduler.waiting),
            kv_total=memory.pages,
            samples=tuple(
                StepSample(start - run.started, prefill, used, float(end - start)) for start, end, prefill in recent
            ),
        )
