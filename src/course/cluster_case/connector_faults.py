"""What goes wrong in a world of two pools: crashes, cut lines, and leases that end though the worker lives."""

from typing import TYPE_CHECKING

from course.cluster_case.connector_decode import DecodeWorker
from course.cluster_case.connector_prefill import PrefillWorker
from course.cluster_case.connector_worker import Worker

if TYPE_CHECKING:
    from course.cluster_case.connector_world import World


class Faults:
    """Workers come and go. gone_before: those that discovery has given up."""

    def __init__(self, world: "World"):
        self.world = world
        self.gone_before: dict[str, None] = {}

    def add(self, kind: type[Worker]) -> None:
        """A worker comes."""
        prefix = "P" if kind is PrefillWorker else "D"
        name = f"{prefix}{self.world.number()}"
        pages = -(-self.world.max_len // self.world.page_size) + self.world.rng.choice([0, 4, 40])
        worker = self.world.workers[name] = kind(self.world, name, self.world.ranks[kind], pages)
        if kind is PrefillWorker:
            self.world.front.carry(
                self.world.front.router.add_prefill(self.world.part("handoff.Peer")(name, worker.ranks), self.world.now)
            )
        else:
            self.world.front.carry(self.world.front.router.add_decode(name, self.world.now))

    def any(self) -> Worker | None:
        """One that lives."""
        living = [worker for worker in self.world.workers.values() if not worker.dead]
        return self.world.rng.choice(living) if living else None

    def crash(self, worker: Worker | None = None) -> None:
        """A worker is gone; later everybody hears of it, and another one comes."""
        worker = worker or self.any()
        if worker is None or worker.dead:
            return
        self.world.counts["crashes"] += 1
        worker.dead = True
        self.world.agenda.after(self.world.some_time(0, 8), self.add, type(worker))
        self.world.agenda.after(self.world.some_time(0, 4), self.gone, worker)

    def gone(self, worker: Worker) -> None:
        """Discovery says that a worker is gone: to the front end, and to those who receive from it, each some time."""
        if worker.name in self.gone_before:
            return
        self.gone_before[worker.name] = None
        self.world.agenda.after(self.world.some_time(0, 2), self.removed, worker)
        if isinstance(worker, PrefillWorker):
            for other in self.world.workers.values():
                if isinstance(other, DecodeWorker) and not other.dead:
                    self.world.agenda.after(self.world.some_time(0, 2), self.told_lost, other, worker)

    def removed(self, worker: Worker) -> None:
        """The front end hears that a worker is gone."""
        remove = (
            self.world.front.router.remove_prefill
            if isinstance(worker, PrefillWorker)
            else self.world.front.router.remove_decode
        )
        self.world.front.carry(remove(worker.name, self.world.now))

    def told_lost(self, worker: DecodeWorker, lost: Worker) -> None:
        """A decode worker hears that a prefill worker is gone."""
        if not worker.dead:
            worker.lost(lost.name)

    def false_alarm(self) -> None:
        """A worker's lease ends though it lives: it stops some time before or after the others hear of it."""
        worker = self.any()
        if worker is not None:
            self.world.counts["false alarms"] += 1
            self.world.agenda.after(self.world.some_time(0, 4), self.gone, worker)
            self.world.agenda.after(self.world.some_time(0, 6), self.crash, worker)

    def partition(self) -> None:
        """Nothing reaches a worker or leaves it for some time."""
        worker = self.any()
        if worker is not None:
            self.world.counts["partitions"] += 1
            self.world.cuts[worker.name] = self.world.now + self.world.some_time(0, self.world.rng.choice([1, 30, 700]))
