"""A call in two awaits: submit it, then wait for its reply. A connection is held only for the first.

So a few connections carry many calls that wait, as in Mooncake's client. Replies are matched by number.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Protocol


class Connection(Protocol):
    """One end of a stream of (number, body)."""

    async def send(self, message: tuple[int, object]) -> None:
        """Raises ConnectionError once it is broken."""
        ...

    async def receive(self) -> tuple[int, object]:
        """The next message. Raises ConnectionError once it is broken."""
        ...


# ANCHOR: wire
class Wire:
    """A connection, and the calls that were submitted on it, by number."""

    def __init__(self, connection: Connection):
        self.connection, self.broken = connection, False
        self.pending: dict[int, asyncio.Future[object]] = {}
        self.reader = asyncio.create_task(self.read())

    async def read(self) -> None:
        """Give each reply to its call. One that nobody waits for is dropped.

        A break fails all calls that are pending.
        """
        try:
            while True:
                number, body = await self.connection.receive()
                if (future := self.pending.pop(number, None)) is not None:
                    future.set_result(body)
        except ConnectionError as error:
            self.broken = True
            for future in self.pending.values():
                future.set_exception(ConnectionResetError(str(error)))
                future.exception()  # who submitted and never waits need not hear of it
            self.pending.clear()
            # ANCHOR_END: wire


class Reply:
    """A call that was submitted."""

    def __init__(self, wire: Wire, number: int):
        self.wire, self.number = wire, number
        self.future = wire.pending[number] = asyncio.get_running_loop().create_future()

    def forget(self) -> None:
        """Drop the reply when it comes. Idempotent."""
        self.wire.pending.pop(self.number, None)

    # ANCHOR: wait
    async def wait(self, timeout: float | None = None) -> object:
        """The body of the reply, within `timeout` seconds.

        Raises TimeoutError, or ConnectionError after a break.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self.future
        finally:
            self.forget()
            # ANCHOR_END: wait


class TwoStageClient:
    """Calls over at most `size` connections, made by `connect` when they are needed, also in the place of broken ones.

    At most `size` submissions run at a time; any number of calls may wait for their replies.
    """

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int):
        self.connect = connect
        self.idle: asyncio.LifoQueue[Wire | None] = asyncio.LifoQueue()
        for _ in range(size):
            self.idle.put_nowait(None)
        self.numbers = count()

    # ANCHOR: submit
    async def submit(self, body: object) -> Reply:
        """Send a call once a connection is idle. Raises ConnectionError."""
        wire = await self.idle.get()
        try:
            if wire is None or wire.broken:
                wire = Wire(await self.connect())
            reply = Reply(wire, next(self.numbers))
            try:
                await wire.connection.send((reply.number, body))
            except BaseException:
                reply.forget()
                raise
            return reply
        finally:
            self.idle.put_nowait(wire)
            # ANCHOR_END: submit
