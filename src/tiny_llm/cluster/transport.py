"""The seam between the cluster's code and the world: a clock, and connections that carry messages.

Whatever is written on these two protocols runs in virtual time on a simulated network, and unchanged between real
processes. Knows no sockets.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Message = dict[str, Json]
SECOND = 1_000_000_000


# ANCHOR: clock
class Clock(Protocol):
    """The time of one process, in ns.

    Only durations mean something to others: no two processes share a clock.
    """

    @property
    def now(self) -> int:
        """ns since some moment."""
        ...

    async def sleep_until(self, time: int) -> None:
        """Return at `time` or later; others run meanwhile, even if it is past."""
        ...

    def timeout_at(self, time: int) -> AbstractAsyncContextManager[object]:
        """What runs inside is cancelled at `time`, and raises TimeoutError."""
        ...
        # ANCHOR_END: clock


# ANCHOR: transport
class Connection(Protocol):
    """One end of an ordered, two-way stream of messages.

    What was sent before it broke may be lost.
    """

    async def send(self, message: Message) -> None:
        """Send a message. Raises ConnectionError if it is known to be broken."""
        ...

    async def receive(self) -> Message:
        """The next message.

        Raises ConnectionError once the other end is gone and all was read.
        """
        ...

    def close(self) -> None:
        """Break it, at both ends. Idempotent."""
        ...


class Transport(Protocol):
    """How one process reaches others, and is reached."""

    async def connect(self, address: str) -> Connection:
        """Raises ConnectionError if nobody listens there."""
        ...

    async def listen(self, accept: Callable[[Connection], Awaitable[None]]) -> str:
        """Run `accept` as a task for each connection from others.

        Returns the address that they use.
        """
        ...

    def close(self) -> None:
        """Listen no more, and break all connections."""
        ...

    # ANCHOR_END: transport


class LoopClock:
    """The clock of the asyncio loop that runs: of a virtual one as of a real one."""

    @property
    def now(self) -> int:
        """The loop's time."""
        return round(asyncio.get_running_loop().time() * SECOND)

    async def sleep_until(self, time: int) -> None:
        """Sleep."""
        await asyncio.sleep(max(time - self.now, 0) / SECOND)

    def timeout_at(self, time: int) -> asyncio.Timeout:
        """asyncio's timeout."""
        return asyncio.timeout_at(time / SECOND)
