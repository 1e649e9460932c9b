"""Parts of a process with eyes on them: what may never happen, whatever the schedule, is noted as a violation.

The four rules (after Dynamo): an instance is visible for at most T after its last renewal; nothing is routed to it once
its removal has come; a process whose lease has ended serves nothing; an id never comes back.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from course.cluster_case.network import End, Host
from course.cluster_case.scene import MS, Item

if TYPE_CHECKING:
    from course.cluster_case.world import Worker, World

LONGEST = 20 * MS
"""Latency of a message, at most."""


def watched_registry(world: "World"):
    """The package's registry. Notes when each lease was last renewed, and checks that no id comes twice."""

    class WatchedRegistry(world.scene.part("discovery.Registry")):
        def __init__(self, ttl: int):
            super().__init__(ttl)
            self.renewed: dict[int, int] = {}

        def grant(self, now: int) -> int:
            lease = super().grant(now)
            world.check(lease not in self.renewed, f"the id {lease} was used again")
            self.renewed[lease] = now
            return lease

        def renew(self, lease: int, now: int) -> None:
            super().renew(lease, now)
            self.renewed[lease] = now

        def get(self, prefix: str, now: int) -> dict:
            found = super().get(prefix, now)
            for value in found.values():
                late = now - self.renewed[value["id"]] - self.ttl
                world.check(late < 0, f"{value['id']} is visible {late} ns longer than T after its last renewal")
            return found

    return WatchedRegistry(world.scene.ttl)


class WatchedConnection:
    """A worker's end. Checks that it answers only while its lease lives at the registry, or after giving it back."""

    def __init__(self, connection: End, worker: "Worker"):
        self.connection, self.worker = connection, worker
        self.receive, self.close = connection.receive, connection.close

    async def send(self, message: Item) -> None:
        """Send, after a look at the lease."""
        runtime, world, now = self.worker.runtime, self.worker.world, self.worker.loop.now
        if message["kind"] == "item" and runtime.state != "draining":
            late = now - world.registry.renewed[runtime.discovery.lease] - world.scene.ttl
            world.check(late < 0, f"{self.worker.name} serves {late} ns after its lease expired")
        await self.connection.send(message)


class WatchedTransport:
    """A worker's transport."""

    def __init__(self, host: Host, worker: "Worker"):
        self.host, self.worker = host, worker
        self.connect, self.close = host.connect, host.close

    async def listen(self, accept: Callable[[WatchedConnection], Awaitable[None]]) -> str:
        """Listen, with an eye on each connection."""
        return await self.host.listen(lambda connection: accept(WatchedConnection(connection, self.worker)))


class WatchedBalancer:
    """Checks that it is only offered what may be called."""

    def __init__(self, world: "World", runtime, inner):
        self.world, self.runtime, self.inner = world, runtime, inner

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """Choose, after a look at all that are offered."""
        world, renewed, ttl = self.world, self.world.registry.renewed, self.world.scene.ttl
        now = self.runtime.clock.now
        world.check(now < renewed[self.runtime.discovery.lease] + ttl, "a client without a lease routes")
        late = ttl if world.stranded else 0
        for number in ids:
            seen = now - renewed[number] - ttl - late - LONGEST - MS
            world.check(seen < 0, f"a client still sees {number}, {seen} ns after it must know that it is gone")
        return self.inner.choose(ids, inflight)
