"""The caller's side of the request plane: one connection per address, shared by all calls to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count

from .rpc import RefusedError, RemoteError
from .transport import Connection, Json, Message, Transport


class Channel:
    """A connection, and the calls whose answers are still to come, by number.

    Many calls share it: none holds it while its answer is awaited. broken: whether the connection is gone.
    """

    def __init__(self, connection: Connection):
        self.connection = connection
        self.broken = False
        self.pending: dict[Json, asyncio.Queue[Message]] = {}
        self._numbers = count()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """Give each frame to its call. One that comes too late belongs to none, and is dropped."""
        try:
            while True:
                frame = await self.connection.receive()
                if frame["id"] in self.pending:
                    self.pending[frame["id"]].put_nowait(frame)
        except ConnectionError as error:
            for queue in self.pending.values():
                queue.put_nowait({"kind": "broken", "text": str(error)})
        finally:
            self.broken = True

    async def call(self, name: str, body: Json) -> AsyncIterator[Json]:
        """Call `name`, and yield the items of the answer. Closing this iterator cancels the call at the other side.

        Raises RefusedError, RemoteError, and ConnectionError where the connection breaks before the answer has ended.
        """
        number = next(self._numbers)
        queue = self.pending[number] = asyncio.Queue()
        ended = False
        try:
            await self.connection.send({"id": number, "kind": "call", "name": name, "body": body})
            if self.broken:
                raise ConnectionResetError("the connection broke before the call")
            while True:
                frame = await queue.get()
                ended = frame["kind"] != "item"
                if frame["kind"] == "item":
                    yield frame["item"]
                elif frame["kind"] == "end":
                    return
                else:
                    raise _ERRORS[frame["kind"]](frame["text"])
        finally:
            del self.pending[number]
            if not (ended or self.broken):
                with suppress(ConnectionError):
                    await self.connection.send({"id": number, "kind": "cancel"})

    def close(self) -> None:
        """Break the connection: the calls that are pending fail."""
        self.connection.close()


_ERRORS = {"refused": RefusedError, "error": RemoteError, "broken": ConnectionResetError}


class Channels:
    """The channels of a process, by address. A broken one is replaced when it is asked for."""

    def __init__(self, transport: Transport):
        self.transport = transport
        self._channels: dict[str, Channel] = {}

    async def get(self, address: str) -> Channel:
        """A channel to an address. Two that connect at once both may; the later one stays."""
        channel = self._channels.get(address)
        if channel is None or channel.broken:
            channel = self._channels[address] = Channel(await self.transport.connect(address))
        return channel

    def drop(self, address: str) -> None:
        """Forget a channel that does not answer, and fail its calls. The next one is new."""
        if (channel := self._channels.pop(address, None)) is not None:
            channel.close()

    async def call(self, address: str, name: str, body: Json) -> AsyncIterator[Json]:
        """As `Channel.call`, at an address."""
        channel = await self.get(address)
        items = channel.call(name, body)
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()

    async def ask(self, address: str, name: str, body: Json) -> Json:
        """The only item of an answer. Raises what `call` does, and RemoteError for an answer without an item."""
        items = self.call(address, name, body)
        try:
            async for item in items:
                return item
        finally:
            await items.aclose()
        raise RemoteError(f"{name} gave no answer")
