"""The workers of a simulated deployment: they start, serve, drain, fall silent and die.

Knows leases and pools; not what workers do. A healthy worker renews its lease every half of it: so only renewals that
do not come are events here, and what follows from them.
"""

from collections.abc import Callable

from .deployment import Pool
from .front_end import FrontEnd
from .kernel import Phase, Simulation
from .run import Note, Run
from .worker import Worker


class Fleet:
    """Pools by name. workers: those that serve, by name; draining: those that only end what they have.

    starting: how many are on their way, by pool. lease: ns that a worker lives after its last renewal.
    """

    def __init__(self, simulation: Simulation, front: FrontEnd, run: Run, pools: dict[str, Pool], lease: int):
        self.simulation, self.front, self.run, self.pools = simulation, front, run, pools
        self.lease = lease
        self.workers: dict[str, Worker] = {}
        self.draining: dict[str, Worker] = {}
        self.starting = dict.fromkeys(pools, 0)
        self._numbers = 0
        self._names = dict.fromkeys(pools, 0)

    def serving(self, pool: str) -> list[Worker]:
        """Workers of a pool that get requests."""
        return [worker for worker in self.workers.values() if worker.kind == pool]

    def start(self, pool: str, delay: int = 0) -> None:
        """Start a worker, which serves in `delay` ns."""
        self.starting[pool] += 1
        self.simulation.after(delay, Phase.WORKER_READY, self.ready, pool)

    def ready(self, pool: str) -> None:
        """A worker serves from now on, under a name and a number that nobody had."""
        if not self.starting[pool]:
            return
        self.starting[pool] -= 1
        name = f"{pool}-{self._names[pool]}"
        worker = self.front.worker(self._numbers, name, pool, self.pools[pool])
        self._names[pool] += 1
        self._numbers += 1
        self.workers[name] = worker
        self.run.workers[name] = worker.run
        self.note("ready", worker)
        self.front.join(worker)

    def drain(self, worker: Worker) -> None:
        """Send it no more requests; it goes when it has none."""
        del self.workers[worker.name]
        self.draining[worker.name] = worker
        self.note("draining", worker)
        self.front.leave(worker)
        self.sweep()

    def sweep(self) -> None:
        """Let drained workers go."""
        for worker in [each for each in self.draining.values() if each.idle and not self.front.needs(each)]:
            self.stop(worker, "stopped")

    def scale(self, pool: str, target: int) -> None:
        """Start or drain until a pool has `target` workers, those on their way included. The newest go first."""
        serving = self.serving(pool)
        more = target - len(serving) - self.starting[pool]
        for _ in range(more):
            self.start(pool, self.pools[pool].start_time)
        fewer = max(-more, 0)
        given_up = min(fewer, self.starting[pool])
        self.starting[pool] -= given_up
        for worker in serving[::-1][: fewer - given_up]:
            self.drain(worker)

    def crash(self, worker: Worker) -> None:
        """Its process is gone. Whoever is connected to it is told at once, so nobody waits for its lease."""
        if worker.alive:
            self.stop(worker, "crashed")

    def stop(self, worker: Worker, kind: str) -> None:
        """A worker is gone."""
        self.workers.pop(worker.name, None)
        self.draining.pop(worker.name, None)
        worker.stop()
        self.note(kind, worker)
        self.front.lose(worker)

    def silence(self, worker: Worker, duration: int) -> None:
        """Nothing reaches or leaves a worker for `duration` ns.

        If its lease ends before, it stops by itself when all others believe it dead.
        """
        now, beat = self.simulation.now, max(self.lease // 2, 1)
        if worker.silent_until <= now:
            worker.deadline = worker.run.started + (now - worker.run.started) // beat * beat + self.lease
        worker.silence(now + duration)
        self.note("silent", worker)
        if worker.silent_until >= worker.deadline and not worker.lost:
            worker.lost = True
            self.simulation.at(max(worker.deadline, now), Phase.SCALING, self.bury, worker)

    def bury(self, worker: Worker) -> None:
        """A silent worker's lease has ended. A new one comes in its place when it could be reached again."""
        if worker.name in self.workers:
            self.start(worker.kind, max(worker.silent_until - self.simulation.now, 0))
        self.crash(worker)

    def note(self, kind: str, worker: Worker, text: str = "") -> None:
        """Write down what happened to a worker."""
        self.run.notes.append(Note(self.simulation.now, kind, worker.name, text))

    def each(self, call: Callable[[Worker], object]) -> None:
        """Do something with every worker that has not stopped."""
        for worker in (*self.workers.values(), *self.draining.values()):
            call(worker)
