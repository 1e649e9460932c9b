# This file is yours to edit. Read book/src/week4-03-distributed-runtime.md.
"""The caller's view of an endpoint: which instances there are, and which of them gets the next call."""

import asyncio
from collections.abc import AsyncIterator

from .balance import Balancer
from .discovery import View
from .runtime import Endpoint, Instance
from .transport import Json


class NoInstanceError(ConnectionError):
    """Nobody serves the endpoint now, as far as this client knows."""


class Client:
    """Calls an endpoint.

    view: the instances that discovery tells of. inflight: this client's calls, by instance id. down: instances that
    failed a call, with the time in ns until which they are left alone: by then discovery will have told whether they
    are gone. idle: ns without an item after which an instance has failed, None for ever: a partition breaks nothing.
    """

    def __init__(self, endpoint: Endpoint, balancer: Balancer, idle: int | None = None):
        self.endpoint, self.balancer, self.idle = endpoint, balancer, idle
        self.runtime = endpoint.component.namespace.runtime
        self.view: View[Instance] = View(Instance.parse)
        self.inflight: dict[int, int] = {}
        self.down: dict[int, int] = {}
        self.ready = asyncio.Event()
        """Set once the first list of instances has come."""

    async def start(self) -> None:
        """Watch the endpoint from now on; return with the first list."""
        self.runtime.spawn(self._watch)
        await self.ready.wait()

    async def _watch(self) -> None:
        discovery = self.runtime.discovery
        async for _ in discovery.changes(self.endpoint.path, self.view, discovery.ttl // 8):
            known = [instance.id for instance in self.view.entries.values()]
            self.down = {number: until for number, until in self.down.items() if number in known}
            self.ready.set()

    def instances(self) -> dict[int, Instance]:
        """Those that may be called, by id: all of the view but those that are down, in the order of ids."""
        now = self.runtime.clock.now
        here = sorted(self.view.entries.values(), key=lambda instance: instance.id)
        return {instance.id: instance for instance in here if self.down.get(instance.id, now) <= now}

    def choose(self, instance_id: int | None = None) -> Instance:
        """The instance for the next call: the one that is named, else the balancer's choice.

        Raises NoInstanceError where it may not be called, or none may; also in a process without a lease: what it
        knows may be old.
        """
        raise NotImplementedError(
            "Week 4 Day 3 Task 3: Client.choose - see book/src/week4-03-distributed-runtime.md#task-3"
        )

    async def call(self, body: Json, instance_id: int | None = None) -> AsyncIterator[Json]:
        """Call one instance, and yield its answer. It is in `inflight` until the answer has ended, however it does.

        Raises what `choose` and `Channel.call` do. An instance that fails is left alone for a while. Closing this
        iterator ends the call at the other side.
        """
        raise NotImplementedError(
            "Week 4 Day 3 Task 3: Client.call - see book/src/week4-03-distributed-runtime.md#task-3"
        )
        yield  # only makes this a generator: replace it, too

    # ANCHOR: item
    async def item(self, items: AsyncIterator[Json]) -> Json:
        """The next item.

        Raises StopAsyncIteration at the end, ConnectionError where none comes within
        `idle`.
        """
        if self.idle is None:
            return await anext(items)
        try:
            async with self.runtime.clock.timeout_at(self.runtime.clock.now + self.idle):
                return await anext(items)
        except TimeoutError:
            raise ConnectionError(f"no answer for {self.idle} ns") from None

    def report_down(self, instance_id: int) -> None:
        """Leave an instance alone for as long as its lease may live without it."""
        self.down[instance_id] = self.runtime.clock.now + self.runtime.discovery.ttl
        # ANCHOR_END: item
