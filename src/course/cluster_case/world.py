"""Workers, clients and a registry on one simulated network, random faults, and what must hold whatever happens."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from random import Random

from course.cluster_case.greedy import VOCAB, alone, next_token
from course.cluster_case.network import SECOND, Network
from course.cluster_case.scene import MS, Item, Scene
from course.cluster_case.watched import LONGEST, WatchedBalancer, WatchedTransport, watched_registry
from course.solution import Solution

LIMIT = 120 * SECOND
AGAIN = 0.3
"""Seconds after which a process that has ended is started again."""


class Worker:
    """A process that serves, and its supervisor, which starts it again."""

    def __init__(self, world: "World", name: str):
        self.world, self.name = world, name
        self.runtime = None
        self.boot()

    def boot(self) -> None:
        """Start on a new loop."""
        self.loop = self.world.loop.process(self.name)
        self.loop.create_task(self.live(), name=self.name)

    async def live(self) -> None:
        """Serve, and begin again as another process whenever that has ended."""
        scene = self.world.scene
        while True:
            self.runtime = runtime = scene.runtime(self.name, lambda host: WatchedTransport(host, self))
            try:
                await runtime.start()
                await scene.endpoint(runtime).serve(self.generate)
                await runtime.stopped.wait()
            except (ConnectionError, self.world.lease_error):
                runtime.cancel()
            await asyncio.sleep(AGAIN)

    async def generate(self, body: Item) -> AsyncIterator[Item]:
        """The tokens of an answer, each after some time."""
        ids, stop = list(body["token_ids"]), self.world.stop
        for left in reversed(range(body["max_tokens"])):
            await asyncio.sleep(self.world.rng.uniform(0.01, 0.1))
            ids.append(next_token(ids))
            reason = "stop" if ids[-1] == stop else "length" if left == 0 else None
            yield {"token": ids[-1], "finish_reason": reason}
            if reason:
                return

    def crash(self) -> None:
        """End without a word."""
        self.world.scene.network.crash(self.name)
        self.loop.crash()

    def leave(self) -> None:
        """End well."""
        if self.runtime is not None and not self.loop.crashed:
            self.loop.create_task(self.runtime.stop(2 * SECOND))


class World:
    """One random schedule, that of a seed.

    violations: what should never be. counts: of requests, tokens, migrations and faults. log: what happened.
    """

    def __init__(self, solution: Solution, seed: int, workers: int = 3, clients: int = 2, requests: int = 5):
        self.rng = Random(seed)
        self.scene = Scene(solution, network=Network(lambda sender, receiver: self.rng.randrange(1, LONGEST)))
        self.simulation = self.scene.simulation
        self.loop = self.scene.part("virtual_loop.VirtualLoop")(self.simulation, "store")
        self.lease_error = self.scene.part("discovery.LeaseError")
        self.registry = watched_registry(self)
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()
        self.stranded = self.over = False
        self.stop = self.rng.choice([None, 7])
        self.names = [f"worker-{i}" for i in range(workers)]
        self.clients = [f"client-{i}" for i in range(clients)]
        self.requests = requests
        self.workers: dict[str, Worker] = {}
        self.log: list[tuple[object, ...]] = []

    async def client(self, name: str) -> None:
        """Ask one request after the other, until all were answered. A client that loses its lease begins afresh."""
        rng, left = Random(name), self.requests
        while left:
            runtime = self.scene.runtime(name)
            client = None
            try:
                await runtime.start()
                client = self.scene.part("client.Client")(
                    self.scene.endpoint(runtime), self.balancer(runtime, rng), idle=SECOND
                )
                async with asyncio.timeout(2):
                    await client.start()
                while left:
                    await asyncio.sleep(self.rng.expovariate(1))
                    await self.ask(client)
                    left -= 1
                await runtime.stop()
            except (ConnectionError, self.lease_error, TimeoutError):
                given_up = runtime.state == "running" and client is not None and client.ready.is_set()
                self.check(not given_up, f"{name} gave up a request")
                runtime.cancel()
                await asyncio.sleep(AGAIN)

    async def ask(self, client) -> None:
        """One request: it must give what a worker that never fails gives, each token once."""
        migration = self.scene.part("migration.Migration")(
            client.call, self.scene.clock(), limit=100, pause=SECOND // 5
        )
        prompt = [self.rng.randrange(VOCAB) for _ in range(self.rng.randrange(1, 6))]
        most, got = self.rng.randrange(1, 40), []
        expected = alone(prompt, most, self.stop)
        try:
            async for token in migration.generate(prompt, most):
                got.append(token)
                self.check(got == expected[: len(got)], f"a token came twice or not at all: {got} of {expected}")
        finally:
            self.counts["migrations"] += migration.migrations
        self.check(got == expected, f"{got} instead of {expected}")
        self.check(not client.inflight, "a call that has ended still counts")
        self.counts.update(requests=1, tokens=len(got))
        self.log.append((self.loop.now, client.runtime.discovery.lease, tuple(got)))

    def balancer(self, runtime, rng: Random) -> WatchedBalancer:
        """One of four."""
        kind = rng.choice(["RandomChoice", "RoundRobin", "LeastLoaded", "PowerOfTwo"])
        make = self.scene.part(f"balance.{kind}")
        return WatchedBalancer(self, runtime, make() if kind == "RoundRobin" else make(rng))

    def check(self, holds: bool, text: str) -> None:
        """Note what should never be."""
        if not holds:
            self.violations.append(f"{self.simulation.now} ns: {text}")

    def faults(self) -> None:
        """A random schedule: crashes with restarts, partitions, code that blocks, and graceful leaves."""
        for _ in range(self.rng.randrange(3, 12)):
            time, span = self.rng.randrange(20 * SECOND), self.rng.randrange(10 * MS, 8 * SECOND)
            name = self.rng.choice(self.names)
            kind = self.rng.choice(["crash", "cut", "block", "leave", "cut client", "strand"])
            self.at(time, self.fault, kind, name, self.rng.choice(self.clients), span)

    def at(self, time: int, callback: Callable[..., object], *args: object) -> None:
        """Let something happen at a time."""
        self.simulation.at(time, self.scene.part("kernel.Phase").TELEMETRY, callback, *args)

    def fault(self, kind: str, name: str, client: str, span: int) -> None:
        """One of them, for `span` ns."""
        if self.over:
            return
        worker, network = self.workers[name], self.scene.network
        self.log.append((self.simulation.now, kind, name, span))
        self.counts[kind] += 1
        later = self.simulation.now + span
        if kind == "crash" and not worker.loop.crashed:
            worker.crash()
            self.at(later, worker.boot)
        elif kind == "block":
            worker.loop.block(span)
        elif kind == "leave":
            worker.leave()
        elif kind != "crash":
            self.stranded |= kind == "strand"
            ends = {"cut": (name, "store"), "cut client": (name, client), "strand": (client, "store")}[kind]
            network.cut(*ends)
            self.at(later, network.heal, *ends)

    async def probe(self) -> None:
        """Look at the registry now and then."""
        while True:
            await asyncio.sleep(self.rng.uniform(0.01, 0.5))
            self.registry.get("", self.loop.now)

    async def main(self) -> None:
        """Everybody lives until all requests are answered."""
        await self.scene.open(self.registry)
        probe = asyncio.create_task(self.probe())
        for name in self.names:
            self.workers[name] = Worker(self, name)
        tasks = [self.loop.process(name).create_task(self.client(name), name=name) for name in self.clients]
        while not all(task.done() for task in tasks) and self.simulation.now < LIMIT:
            await asyncio.sleep(0.1)
        self.check(self.simulation.now < LIMIT, "requests do not end")
        for task in (*tasks, probe):
            task.cancel()
            if task.done():
                task.result()

    def run(self) -> list[tuple[object, ...]]:
        """Returns what happened; what should not have is in `violations`."""
        self.faults()
        try:
            self.loop.run_until_complete(self.main())
        finally:
            self.over = True
            self.scene.part("virtual_run.finish")(self.loop)
        return self.log
