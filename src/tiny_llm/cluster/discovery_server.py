"""The registry as a service: calls that grant, renew and revoke leases, set and read keys, and stream changes."""

import asyncio
from collections.abc import AsyncIterator, Callable

from .discovery import Change, LeaseError, Registry
from .rpc import Handler, Server
from .transport import Clock, Json

PREFIX = "discovery/"


class DiscoveryServer:
    """Serves a registry on the request plane, and lets leases expire on time."""

    def __init__(self, registry: Registry, server: Server, clock: Clock):
        self.registry, self.server, self.clock = registry, server, clock
        self._granted = asyncio.Event()
        calls: dict[str, Callable[[dict[str, Json]], Json]] = {
            "grant": self.grant,
            "renew": lambda body: registry.renew(body["lease"], clock.now),
            "revoke": lambda body: registry.revoke(body["lease"], clock.now),
            "put": lambda body: registry.put(body["lease"], body["key"], body["value"], clock.now),
            "get": lambda body: registry.get(body["prefix"], clock.now),
        }
        server.handlers.update({PREFIX + name: _once(call) for name, call in calls.items()})
        server.handlers[PREFIX + "watch"] = self.watch

    async def start(self) -> str:
        """Serve until the process ends. Returns the address."""
        self._expiry = asyncio.create_task(self.expire())
        return await self.server.start()

    def grant(self, body: dict[str, Json]) -> Json:
        """A new lease, and how long it lives."""
        self._granted.set()
        return {"lease": self.registry.grant(self.clock.now), "ttl": self.registry.ttl}

    async def expire(self) -> None:
        """Wake at each deadline, so that watchers are told at once and not at the next call."""
        while True:
            while (deadline := self.registry.next_deadline()) is not None:
                await self.clock.sleep_until(deadline)
                self.registry.expire(self.clock.now)
            self._granted.clear()
            await self._granted.wait()

    async def watch(self, body: dict[str, Json]) -> AsyncIterator[Json]:
        """First all that there is below a prefix, then each change, for as long as the caller listens."""
        changes: asyncio.Queue[Change[Json]] = asyncio.Queue()
        number, snapshot = self.registry.watch(body["prefix"], changes.put_nowait, self.clock.now)
        try:
            yield snapshot
            while True:
                yield list(await changes.get())
        finally:
            self.registry.unwatch(number)


def _once(call: Callable[[dict[str, Json]], Json]) -> Handler:
    """A handler whose answer is one item: {"value": ...}, or {"expired": why} where the lease is not alive."""

    async def answer(body: dict[str, Json]) -> AsyncIterator[Json]:
        try:
            yield {"value": call(body)}
        except LeaseError as error:
            yield {"expired": str(error)}

    return answer
