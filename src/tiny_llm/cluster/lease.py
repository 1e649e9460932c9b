# This file is yours to edit. Read book/src/week4-03-distributed-runtime.md.
"""A process's own lease: kept alive while the registry answers, and believed in no longer than it is safe to."""

from collections.abc import AsyncIterator

from .channel import Channels
from .discovery import Change, LeaseError, View
from .discovery_server import PREFIX
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
        raise NotImplementedError(
            "Week 4 Day 3 Task 2: Discovery.start - see book/src/week4-03-distributed-runtime.md#task-2"
        )

    @property
    def alive(self) -> bool:
        """Whether the lease surely lives."""
        return self.clock.now < self.deadline

    async def keep_alive(self) -> None:
        """Renew every ttl / 2, and return once the lease is lost: then this process must stop, nobody else can make it.

        After a renewal that breaks it tries again in ttl / 8; one that hangs ends with the lease.
        """
        raise NotImplementedError(
            "Week 4 Day 3 Task 2: Discovery.keep_alive - see book/src/week4-03-distributed-runtime.md#task-2"
        )

    async def put(self, key: str, value: Json) -> None:
        """Set a key that ends with this process."""
        await self.ask("put", lease=self.lease, key=key, value=value)

    async def revoke(self) -> None:
        """Give the lease back: all keys of this process vanish now. Raises TimeoutError where it ends before that."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 2: Discovery.revoke - see book/src/week4-03-distributed-runtime.md#task-2"
        )

    async def changes(self, prefix: str, view: View[object], retry: int) -> AsyncIterator[list[Change[object]]]:
        """Keep a view in step with the registry for ever: yields what changed in it, first of all what there is.

        After a lost connection it tries again every `retry` ns, and takes the difference to all that there is then:
        what was missed cannot be told one by one.
        """
        raise NotImplementedError(
            "Week 4 Day 3 Task 2: Discovery.changes - see book/src/week4-03-distributed-runtime.md#task-2"
        )
        yield  # only makes this a generator: replace it, too
