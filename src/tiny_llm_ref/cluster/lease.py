"""A process's own lease: kept alive while the registry answers, and believed in no longer than it is safe to."""

from collections.abc import AsyncIterator

from .channel import Channels
from .discovery import Change, LeaseError, View
from .discovery_server import PREFIX
from .rpc import RemoteError
from .transport import Clock, Json


# ANCHOR: discovery
class Discovery:
    """What one process asks the registry at `address`.

    lease: its id, which is also the id of this process. deadline: until when it
    surely lives: `ttl` after the latest renewal that was answered was *sent*. The
    registry counts from when that came, so there the lease never ends earlier.
    """

    def __init__(self, channels: Channels, address: str, clock: Clock):
        self.channels, self.address, self.clock = channels, address, clock
        self.lease = self.ttl = self.deadline = 0

    async def ask(self, name: str, **body: Json) -> Json:
        """Call the registry.

        Raises LeaseError where it says so, ConnectionError where it does not answer.
        """
        answer = await self.channels.ask(self.address, PREFIX + name, body)
        if "expired" in answer:
            raise LeaseError(answer["expired"])
        return answer["value"]
        # ANCHOR_END: discovery

    async def start(self) -> None:
        """Get a lease. Raises LeaseError where it came too late."""
        sent = self.clock.now
        granted = await self.ask("grant")
        self.lease, self.ttl = granted["lease"], granted["ttl"]
        self.deadline = sent + self.ttl
        if not self.alive:
            raise LeaseError(f"the lease took longer to come than the {self.ttl} ns that it lives")

    @property
    def alive(self) -> bool:
        """Whether the lease surely lives."""
        return self.clock.now < self.deadline

    async def keep_alive(self) -> None:
        """Renew every ttl / 2, and return once the lease is lost: then this process must stop, nobody else can make it.

        After a renewal that breaks it tries again in ttl / 8; one that hangs ends with the lease.
        """
        due = self.deadline - self.ttl + self.ttl // 2
        while True:
            await self.clock.sleep_until(min(due, self.deadline))
            if not self.alive:
                return
            sent = self.clock.now
            try:
                async with self.clock.timeout_at(self.deadline):
                    await self.ask("renew", lease=self.lease)
            except ConnectionError:
                due = sent + self.ttl // 8
            except (LeaseError, TimeoutError, RemoteError):
                self.deadline = min(self.deadline, self.clock.now)
                return
            else:
                if not self.alive:
                    return
                self.deadline, due = sent + self.ttl, sent + self.ttl // 2

    async def put(self, key: str, value: Json) -> None:
        """Set a key that ends with this process."""
        await self.ask("put", lease=self.lease, key=key, value=value)

    async def revoke(self) -> None:
        """Give the lease back: all keys of this process vanish now. Raises TimeoutError where it ends before that."""
        async with self.clock.timeout_at(self.deadline):
            while True:
                try:
                    await self.ask("revoke", lease=self.lease)
                except ConnectionError:
                    await self.clock.sleep_until(self.clock.now + self.ttl // 8)
                else:
                    return

    async def changes(self, prefix: str, view: View[object], retry: int) -> AsyncIterator[list[Change[object]]]:
        """Keep a view in step with the registry for ever: yields what changed in it, first of all what there is.

        After a lost connection it tries again every `retry` ns, and takes the difference to all that there is then:
        what was missed cannot be told one by one.
        """
        while True:
            events = self.channels.call(self.address, PREFIX + "watch", {"prefix": prefix})
            try:
                yield view.resync(await anext(events))
                async for key, value in events:
                    yield view.apply(Change(key, value))
            except (ConnectionError, RemoteError, StopAsyncIteration):
                await self.clock.sleep_until(self.clock.now + retry)
            finally:
                await events.aclose()
