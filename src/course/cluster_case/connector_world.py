"""Two pools of workers, clients that come and leave, and everything that can go wrong between the two hops.

A random schedule follows from a seed: hand-off, tensor-parallel sizes, crashes, partitions, false alarms, messages that
overtake each other, copies that fail, clients that leave at any moment. Messages between two parties keep their order.
"""

from collections import Counter
from random import Random

from course.cluster_case.agenda import Agenda
from course.cluster_case.connector_clients import Client, FrontEnd
from course.cluster_case.connector_decode import DecodeWorker
from course.cluster_case.connector_faults import Faults
from course.cluster_case.connector_prefill import PrefillWorker
from course.cluster_case.connector_worker import Worker
from course.cluster_case.device import heads_of
from course.cluster_case.greedy import VOCAB, alone, next_token
from course.cluster_case.mover import Mover
from course.solution import Solution

SECOND = 10**9


class World:
    """One random schedule, that of a seed. violations: what should never be. counts: of what it ran."""

    def __init__(self, solution: Solution, seed: int):
        self.solution, self.rng, self.agenda = solution, Random(seed), Agenda()
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()
        rng = self.rng
        self.page_size, self.kv_heads, self.max_len = rng.choice([1, 2, 4]), rng.choice([2, 4]), 40
        self.expiry = int(rng.choice([2, 20, 480]) * SECOND)
        self.slow = rng.choice([0.001, 0.05, 1.0])
        self.latency = rng.choice([0.001, 0.1, 1.0])
        self.copy_failures, self.step_failures = rng.choice([0, 0, 0.2]), rng.choice([0, 0, 0.05])
        self.recompute = rng.random() < 0.7
        self.stop = next_token([0])
        self.mover = Mover(self)
        self.tokens: dict[object, int | None] = {}
        self.asks: dict[tuple[object, int], object] = {}
        self.askers: dict[object, DecodeWorker] = {}
        self.marks: dict[object, list[tuple[int, int]]] = {}
        self.workers: dict[str, Worker] = {}
        self.cuts: dict[str, int] = {}
        self._last: dict[tuple[str, str], int] = {}
        self._numbers = 1000
        self.ranks = {PrefillWorker: rng.choice([1, 1, 2, 4]), DecodeWorker: rng.choice([1, 1, 2, 4])}
        self.front, self.faults = FrontEnd(self), Faults(self)

    def run(self) -> "World":
        """Run it to its end, and judge."""
        rng, faults = self.rng, self.faults
        for kind in (PrefillWorker, DecodeWorker):
            for _ in range(rng.choice([1, 2])):
                faults.add(kind)
        shared = [rng.randrange(VOCAB) for _ in range(16)]
        for uid in range(rng.randint(3, 8)):
            head = shared[: rng.choice([0, 4, 8, 16])]
            prompt = head + [rng.randrange(VOCAB) for _ in range(rng.choice([0, 1, 3, 8]))] or [uid]
            most = rng.choice([1, 2, 5, 8])
            self.front.clients.append(Client(uid, prompt, most, alone(prompt, most, self.stop)))
            self.agenda.after(self.some_time(0, 6), self.front.submit, self.front.clients[-1])
            if rng.random() < 0.4:
                self.agenda.after(self.some_time(0, rng.choice([4, 12])), self.front.leave, self.front.clients[-1])
        for _ in range(rng.choice([0, 0, 1, 2, 3])):
            fault = rng.choice([faults.crash, faults.crash, faults.partition, faults.false_alarm])
            self.agenda.after(self.some_time(0, rng.choice([3, 10])), fault)
        self.agenda.run(60_000)
        self.judge()
        return self

    # The package's parts, time, chance and words

    def part(self, name: str):
        """A public name of the package's cluster, such as "handoff.HandOff"."""
        module, _, attribute = name.partition(".")
        return getattr(self.solution.module(f"cluster.{module}"), attribute)

    @property
    def now(self) -> int:
        """ns."""
        return self.agenda.now

    def number(self) -> int:
        """A number that nobody has."""
        self._numbers += 1
        return self._numbers

    def some_time(self, least: float, most: float) -> int:
        """Some ns between two numbers of seconds."""
        return int(self.rng.uniform(least, most) * SECOND)

    def violate(self, text: str) -> None:
        """Something happened that should never."""
        self.violations.append(f"{self.now / SECOND:.3f} s: {text}")

    def worker(self, name: str) -> Worker | None:
        """A worker that lives."""
        found = self.workers.get(name)
        return None if found is None or found.dead else found

    def needed(self, transfer: object) -> int | None:
        """How many copies make a transfer complete; None where nobody has asked yet."""
        asks = [ask for (name, _), ask in self.asks.items() if name == transfer]
        if not asks or (not asks[0].pages and len(asks) < asks[0].ranks):
            return None
        if not asks[0].pages:
            return 0
        sources, targets = self.ranks[PrefillWorker], asks[0].ranks
        holders = [
            next(s for s in range(sources) if h in heads_of(s, sources, self.kv_heads)) for h in range(self.kv_heads)
        ]
        return sum(len({holders[head] for head in heads_of(t, targets, self.kv_heads)}) for t in range(targets))

    # The network

    def cut(self, *workers: Worker | None) -> int:
        """How long it takes until nothing cuts these off, in ns."""
        return max(0, *(self.cuts.get(worker.name, 0) - self.now for worker in workers if worker is not None))

    def send(self, sender: Worker | None, target: Worker | None, do, *args: object, lasts: bool = False) -> None:
        """A message; None is the front end. It is lost with its target, and, unless it `lasts`, with its sender."""
        if sender is not None and sender.dead and not lasts:
            return
        pair = (getattr(sender, "name", "front"), getattr(target, "name", "front"))
        time = max(self.now + self.some_time(0, self.latency), self._last.get(pair, 0))
        self._last[pair] = time
        self.agenda.after(time - self.now, self.deliver, sender, target, do, args)

    def deliver(self, sender: Worker | None, target: Worker | None, do, args: tuple[object, ...]) -> None:
        """A message comes, or waits for a cut line."""
        if wait := self.cut(sender, target):
            self.agenda.after(wait, self.deliver, sender, target, do, args)
        elif target is None or not target.dead:
            do(*args)

    # The end

    def judge(self) -> None:
        """Everybody has an answer, and nothing is left anywhere."""
        for client in self.front.clients:
            self.counts[client.end or "never answered"] += 1
            if client.end is None:
                self.violate(f"client {client.uid} never got an end")
            if client.end == "done" and client.count() != len(client.want):
                self.violate(f"client {client.uid} got {client.count()} of {len(client.want)} tokens")
        for worker in self.workers.values():
            if not worker.dead:
                worker.expect_idle()
        router = self.front.router
        for stage in (router.prefill, router.decode):
            if stage.placed or len(stage.queue) or any(each.requests for each in stage.load.workers.values()):
                self.violate("a router still counts requests that have ended")
        if router.journeys:
            self.violate(f"the two-stage router still has {list(router.journeys)}")
