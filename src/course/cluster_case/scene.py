"""A stage for the runtime of the package under test: a registry, workers and clients on a simulated network.

Knows the public names of the package's parts, and that they are built on the protocols `Clock` and `Transport`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from types import ModuleType

from course.cluster_case.greedy import next_token
from course.cluster_case.network import SECOND, Host, Network
from course.solution import Solution

MS = SECOND // 1000
TTL = 4 * SECOND
TOKEN = 10 * MS
"""What a worker takes for a token."""

Item = dict[str, object]


async def generate(body: Item) -> AsyncIterator[Item]:
    """A worker's handler: the tokens of an answer, one each `TOKEN`."""
    ids = list(body["token_ids"])
    for left in reversed(range(body["max_tokens"])):
        await asyncio.sleep(TOKEN / SECOND)
        ids.append(next_token(ids))
        yield {"token": ids[-1], "finish_reason": None if left else "length"}


async def collect(items: AsyncIterator[object], into: list[object] | None = None) -> list[object]:
    """All items, also in `into` as they come."""
    into = [] if into is None else into
    async for item in items:
        into.append(item)
    return into


class Imported:
    """A package as Python imports it, for programs that grade nothing, in place of a `Solution`."""

    def __init__(self, package: str):
        self.package = package

    def module(self, name: str) -> ModuleType:
        """The module `name` of the package."""
        return import_module(f"{self.package}.{name}")


class Scene:
    """One network, in one simulation.

    latency: of each message, in ns, or a function of sender and receiver. The registry is at the host "store".
    """

    def __init__(self, solution: Solution, ttl: int = TTL, latency: int | Callable[[str, str], int] = MS, network=None):
        self.solution, self.ttl = solution, ttl
        self.network = network or Network(latency if callable(latency) else lambda sender, receiver: latency)
        self.simulation = self.part("kernel.Simulation")()
        self.address = ""

    def part(self, name: str):
        """A public name of the package's cluster, such as "runtime.Runtime"."""
        module, _, attribute = name.partition(".")
        return getattr(self.solution.module(f"cluster.{module}"), attribute)

    def run(self, main: Callable[["Scene"], Awaitable[object]]) -> object:
        """Run `main(self)` in virtual time, on one loop. Returns its result."""
        return self.part("virtual_run.run")(main(self), self.simulation)

    @property
    def now(self) -> int:
        """ns of virtual time."""
        return self.simulation.now

    async def wait(self, duration: int) -> None:
        """Let `duration` ns pass."""
        await asyncio.sleep(duration / SECOND)

    async def open(self, registry=None):
        """Start the registry's server. Returns the registry."""
        registry = registry or self.part("discovery.Registry")(self.ttl)
        server = self.part("rpc.Server")(self.network.host("store"))
        service = self.part("discovery_server.DiscoveryServer")(registry, server, self.clock())
        self.address = await service.start()
        return registry

    def clock(self):
        """The clock of the loop that runs."""
        return self.part("transport.LoopClock")()

    def discovery(self, name: str):
        """A process's own side of discovery, on a host of that name."""
        channels = self.part("channel.Channels")(self.network.host(name))
        return self.part("lease.Discovery")(channels, self.address, self.clock())

    def runtime(self, name: str, wrap: Callable[[Host], object] = lambda host: host):
        """A process that has not started."""
        return self.part("runtime.Runtime")(wrap(self.network.host(name)), self.clock(), self.address)

    def endpoint(self, runtime):
        """The one endpoint of this stage, test/decode/generate."""
        return runtime.namespace("test").component("decode").endpoint("generate")

    async def worker(self, name: str, handler=generate):
        """A process that serves."""
        runtime = self.runtime(name)
        await runtime.start()
        await self.endpoint(runtime).serve(handler)
        return runtime

    async def client(self, balancer=None, idle: int | None = None, name: str = "client"):
        """A process that calls, by a balancer that always takes the first unless there is one."""
        runtime = self.runtime(name)
        await runtime.start()
        client = self.part("client.Client")(self.endpoint(runtime), balancer or First(), idle)
        await client.start()
        return client


class First:
    """A balancer of the test kit: the lowest id."""

    def choose(self, ids: list[int], inflight: dict[int, int]) -> int:
        """The first of them."""
        return ids[0]
