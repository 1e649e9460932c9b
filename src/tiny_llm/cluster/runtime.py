# This file is yours to edit. Read book/src/week4-03-distributed-runtime.md.
"""The component model: a process that serves endpoints, and finds those of others (after NVIDIA Dynamo).

namespace / component / endpoint / instance: an endpoint is what can be called, an instance one process that serves it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

from .channel import Channels
from .discovery import View
from .lease import Discovery
from .rpc import Handler, Server
from .transport import Clock, Json, Transport


# ANCHOR: instance
@dataclass(frozen=True)
class Instance:
    """A process that serves an endpoint.

    id: of its lease, never used again. address: where it can be reached.
    """

    namespace: str
    component: str
    endpoint: str
    id: int
    address: str

    @property
    def key(self) -> str:
        """Where it is registered."""
        return f"{self.namespace}/{self.component}/{self.endpoint}/{self.id:x}"

    # ANCHOR_END: instance

    @staticmethod
    def parse(value: Json) -> "Instance":
        """Of what is registered. Raises ValueError for anything else."""
        try:
            instance = Instance(**value)
        except TypeError:
            raise ValueError(f"{value!r} is not an instance") from None
        if not isinstance(instance.id, int) or not isinstance(instance.address, str):
            raise ValueError(f"{value!r} is not an instance: its id must be a number, its address a text")
        return instance


class Runtime:
    """One process: its transport, its clock, its lease, and what it serves.

    state: "starting", "running", "leaving" (it gives its lease back), "draining" (it has, and finishes what was begun),
    "stopped". stopped: set in the last one.
    """

    def __init__(self, transport: Transport, clock: Clock, discovery_address: str):
        self.transport, self.clock = transport, clock
        self.channels = Channels(transport)
        self.discovery = Discovery(self.channels, discovery_address, clock)
        self.server = Server(transport, lambda: self.alive)
        self.state = "starting"
        self.stopped = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    @property
    def alive(self) -> bool:
        """Whether others may hear from this process: it has a lease, or gave it back and finishes what it has."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 3: Runtime.alive - see book/src/week4-03-distributed-runtime.md#task-3"
        )

    async def start(self) -> None:
        """Listen, get a lease, and keep it; when it is lost, stop at once. Raises ConnectionError or LeaseError."""
        try:
            self.address = await self.server.start()
            await self.discovery.start()
        except BaseException:
            self.cancel()
            raise
        self.state = "running"
        self.spawn(self._live)

    def spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a background task that ends with this process."""
        self.tasks.append(asyncio.ensure_future(work()))

    async def _live(self) -> None:
        await self.discovery.keep_alive()
        if self.state == "running":
            self.cancel()

    async def instances(self, path: str = "") -> list[Instance]:
        """Who is registered now below the path of a namespace, component or endpoint; below none, everybody."""
        view = View(Instance.parse)
        view.resync(await self.discovery.ask("get", prefix=path))
        return list(view.entries.values())

    def namespace(self, name: str) -> "Namespace":
        """A namespace."""
        return Namespace(self, _checked(name))

    async def serve(self, endpoint: "Endpoint", handler: Handler) -> Instance:
        """Serve an endpoint, and then say so: who finds it can call it."""
        where = endpoint.component
        instance = Instance(where.namespace.name, where.name, endpoint.name, self.discovery.lease, self.address)
        self.server.handlers[instance.key] = handler
        await self.discovery.put(instance.key, asdict(instance))
        return instance

    async def stop(self, drain: int | None = None) -> None:
        """Leave well: vanish from discovery, finish what was begun, at most for `drain` ns, and end.

        Where the registry does not answer while the lease lives, nobody was told: then calls end with the lease.
        """
        raise NotImplementedError(
            "Week 4 Day 3 Task 3: Runtime.stop - see book/src/week4-03-distributed-runtime.md#task-3"
        )

    def cancel(self) -> None:
        """End now: calls break, and nobody hears from this process any more."""
        self.state = "stopped"
        self.server.abort()
        for task in self.tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self.stopped.set()


@dataclass(frozen=True)
class Namespace:
    """A deployment: its components do not mix with those of others."""

    runtime: Runtime
    name: str

    @property
    def path(self) -> str:
        """What its components lie below."""
        return self.name

    def component(self, name: str) -> "Component":
        """A component."""
        return Component(self, _checked(name))


@dataclass(frozen=True)
class Component:
    """A kind of process, such as a decode worker."""

    namespace: Namespace
    name: str

    @property
    def path(self) -> str:
        """What its endpoints lie below."""
        return f"{self.namespace.path}/{self.name}"

    def endpoint(self, name: str) -> "Endpoint":
        """An endpoint."""
        return Endpoint(self, _checked(name))


@dataclass(frozen=True)
class Endpoint:
    """What can be called."""

    component: Component
    name: str

    @property
    def path(self) -> str:
        """What its instances are registered below."""
        return f"{self.component.path}/{self.name}"

    async def serve(self, handler: Handler) -> Instance:
        """Serve it from this process."""
        return await self.component.namespace.runtime.serve(self, handler)


def _checked(name: str) -> str:
    """A part of a path. Raises ValueError for one that would not stay one."""
    if not name or "/" in name:
        raise ValueError(f"{name!r} cannot be part of a path: it must not be empty, nor contain a slash")
    return name
