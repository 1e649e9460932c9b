"""Workers, clients and a registry on one simulated network, random faults, and what must hold whatever happens."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import blake2b
from random import Random

from tiny_llm_ref.cluster.balance import Balancer, LeastLoaded, PowerOfTwo, RandomChoice, RoundRobin
from tiny_llm_ref.cluster.client import Client
from tiny_llm_ref.cluster.discovery import LeaseError, Registry
from tiny_llm_ref.cluster.discovery_server import DiscoveryServer
from tiny_llm_ref.cluster.kernel import Phase, Simulation
from tiny_llm_ref.cluster.migration import Migration
from tiny_llm_ref.cluster.network import Network
from tiny_llm_ref.cluster.rpc import Server
from tiny_llm_ref.cluster.runtime import Runtime
from tiny_llm_ref.cluster.transport import SECOND, LoopClock
from tiny_llm_ref.cluster.virtual_loop import VirtualLoop
from tiny_llm_ref.cluster.virtual_run import finish

MS = SECOND // 1000
TTL = 4 * SECOND
VOCAB = 1009
LIMIT = 120 * SECOND


def next_token(ids: list[int]) -> int:
    """A greedy model: the token depends on all before it."""
    return int.from_bytes(blake2b(repr(ids).encode(), digest_size=4).digest()) % VOCAB


def alone(prompt: list[int], max_tokens: int, stop: int | None = None) -> list[int]:
    """The answer of a worker that never fails."""
    ids = list(prompt)
    while len(ids) - len(prompt) < max_tokens and (len(ids) == len(prompt) or ids[-1] != stop):
        ids.append(next_token(ids))
    return ids[len(prompt) :]


class WatchedRegistry(Registry):
    """Notes when each lease was last renewed, and checks that no id comes twice."""

    def __init__(self, ttl: int, world: "World"):
        super().__init__(ttl)
        self.renewed: dict[int, int] = {}
        self.world = world

    def grant(self, now: int) -> int:
        lease = super().grant(now)
        self.world.check(lease not in self.renewed, f"the id {lease} was used again")
        self.renewed[lease] = now
        return lease

    def renew(self, lease: int, now: int) -> None:
        super().renew(lease, now)
        self.renewed[lease] = now

    def get(self, prefix: str, now: int) -> dict:
        found = super().get(prefix, now)
        for value in found.values():
            late = now - self.renewed[value["id"]] - self.ttl
            self.world.check(late < 0, f"{value['id']} is visible {late} ns longer than T after its last renewal")
        return found


class WatchedConnection:
    """A worker's end. Checks that it answers only while its lease lives at the registry, or after giving it back."""

    def __init__(self, connection, worker: "Worker"):
        self.connection, self.worker = connection, worker
        self.receive, self.close = connection.receive, connection.close

    async def send(self, message: dict) -> None:
        runtime, world, now = self.worker.runtime, self.worker.world, self.worker.loop.now
        if message["kind"] == "item" and runtime.state != "draining":
            late = now - world.registry.renewed[runtime.discovery.lease] - TTL
            world.check(late < 0, f"{self.worker.name} serves {late} ns after its lease expired")
        await self.connection.send(message)


class WatchedTransport:
    def __init__(self, host, worker: "Worker"):
        self.host, self.worker = host, worker
        self.connect, self.close = host.connect, host.close

    async def listen(self, accept) -> str:
        return await self.host.listen(lambda connection: accept(WatchedConnection(connection, self.worker)))


class Worker:
    """A process that serves, and its supervisor, which starts it again."""

    def __init__(self, world: "World", name: str):
        self.world, self.name = world, name
        self.runtime: Runtime | None = None
        self.boot()

    def boot(self) -> None:
        """Start on a new loop."""
        self.loop = self.world.loop.process(self.name)
        self.loop.create_task(self.live(), name=self.name)

    async def live(self) -> None:
        while True:
            self.runtime = runtime = self.world.runtime(self.name, lambda host: WatchedTransport(host, self))
            try:
                await runtime.start()
                await self.world.endpoint(runtime).serve(self.generate)
                await runtime.stopped.wait()
            except (ConnectionError, LeaseError):
                runtime.cancel()
            await asyncio.sleep(0.3)

    async def generate(self, body: dict) -> AsyncIterator[dict]:
        ids, stop = list(body["token_ids"]), self.world.stop
        for left in reversed(range(body["max_tokens"])):
            await asyncio.sleep(self.world.rng.uniform(0.01, 0.1))
            ids.append(next_token(ids))
            reason = "stop" if ids[-1] == stop else "length" if left == 0 else None
            yield {"token": ids[-1], "finish_reason": reason}
            if reason:
                return

    def crash(self) -> None:
        self.world.network.crash(self.name)
        self.loop.crash()

    def leave(self) -> None:
        if self.runtime is not None and not self.loop.crashed:
            self.loop.create_task(self.runtime.stop(2 * SECOND))


class WatchedBalancer:
    """Checks that it is only offered what may be called."""

    def __init__(self, world: "World", runtime: Runtime, inner: Balancer):
        self.world, self.runtime, self.inner = world, runtime, inner

    def choose(self, ids: list[int], inflight: dict[int, int]) -> int:
        world, renewed = self.world, self.world.registry.renewed
        now = self.runtime.clock.now
        world.check(now < renewed[self.runtime.discovery.lease] + TTL, "a client without a lease routes")
        late = TTL if world.stranded else 0
        for number in ids:
            seen = now - renewed[number] - TTL - late - 21 * MS
            world.check(seen < 0, f"a client still sees {number}, {seen} ns after it must know that it is gone")
        return self.inner.choose(ids, inflight)


class World:
    """One random schedule."""

    def __init__(self, seed: int, workers: int = 3, clients: int = 2, requests: int = 5):
        self.rng = Random(seed)
        self.simulation = Simulation()
        self.loop = VirtualLoop(self.simulation, "store")
        self.network = Network(lambda sender, receiver: self.rng.randrange(1, 20 * MS))
        self.registry = WatchedRegistry(TTL, self)
        self.violations: list[str] = []
        self.stranded = self.over = False
        self.stop = self.rng.choice([None, 7])
        self.names = [f"worker-{i}" for i in range(workers)]
        self.clients = [f"client-{i}" for i in range(clients)]
        self.requests = requests
        self.workers: dict[str, Worker] = {}
        self.log: list[tuple] = []
        self.migrations = 0

    def runtime(self, name: str, wrap=lambda host: host) -> Runtime:
        return Runtime(wrap(self.network.host(name)), LoopClock(), self.address)

    def endpoint(self, runtime: Runtime):
        return runtime.namespace("test").component("decode").endpoint("generate")

    async def serve(self) -> None:
        self.service = DiscoveryServer(self.registry, Server(self.network.host("store")), LoopClock())
        self.address = await self.service.start()

    async def client(self, name: str) -> None:
        """Ask one request after the other, until all were answered. A client that loses its lease begins afresh."""
        rng, left = Random(name), self.requests
        while left:
            runtime = self.runtime(name)
            try:
                await runtime.start()
                client = Client(self.endpoint(runtime), self.balancer(runtime, rng), idle=SECOND)
                async with asyncio.timeout(2):
                    await client.start()
                while left:
                    await asyncio.sleep(self.rng.expovariate(1))
                    await self.ask(client)
                    left -= 1
                await runtime.stop()
            except (ConnectionError, LeaseError, TimeoutError):
                self.check(runtime.state != "running" or not client.ready.is_set(), f"{name} gave up a request")
                runtime.cancel()
                await asyncio.sleep(0.3)

    async def ask(self, client: Client) -> None:
        """One request: it must give what a worker that never fails gives, each token once."""
        migration = Migration(client.call, LoopClock(), limit=100, pause=SECOND // 5)
        prompt = [self.rng.randrange(VOCAB) for _ in range(self.rng.randrange(1, 6))]
        most, got = self.rng.randrange(1, 40), []
        expected = alone(prompt, most, self.stop)
        try:
            async for token in migration.generate(prompt, most):
                got.append(token)
                self.check(got == expected[: len(got)], f"a token came twice or not at all: {got} of {expected}")
        finally:
            self.migrations += migration.migrations
        self.check(got == expected, f"{got} instead of {expected}")
        self.check(not client.inflight, "a call that has ended still counts")
        self.log.append((self.loop.now, client.runtime.discovery.lease, tuple(got)))

    def balancer(self, runtime: Runtime, rng: Random) -> "WatchedBalancer":
        """One of four."""
        inner = rng.choice([RandomChoice(rng), RoundRobin(), LeastLoaded(rng), PowerOfTwo(rng)])
        return WatchedBalancer(self, runtime, inner)

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

    def at(self, time: int, callback, *args) -> None:
        self.simulation.at(time, Phase.TELEMETRY, callback, *args)

    def fault(self, kind: str, name: str, client: str, span: int) -> None:
        if self.over:
            return
        worker = self.workers[name]
        self.log.append((self.simulation.now, kind, name, span))
        later = self.simulation.now + span
        if kind == "crash" and not worker.loop.crashed:
            worker.crash()
            self.at(later, worker.boot)
        elif kind in ("cut", "cut client"):
            other = "store" if kind == "cut" else client
            self.network.cut(name, other)
            self.at(later, self.network.heal, name, other)
        elif kind == "strand":
            self.stranded = True
            self.network.cut(client, "store")
            self.at(later, self.network.heal, client, "store")
        elif kind == "block":
            worker.loop.block(span)
        elif kind == "leave":
            worker.leave()

    async def probe(self) -> None:
        """Look at the registry now and then."""
        while True:
            await asyncio.sleep(self.rng.uniform(0.01, 0.5))
            self.registry.get("", self.loop.now)

    async def main(self) -> None:
        await self.serve()
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

    def run(self) -> list[tuple]:
        """Returns what happened; what should not have is in `violations`."""
        self.faults()
        try:
            self.loop.run_until_complete(self.main())
        finally:
            self.over = True
            finish(self.loop)
        return self.log
