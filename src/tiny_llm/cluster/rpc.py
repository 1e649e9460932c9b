# This file is yours to edit. Read book/src/week4-03-distributed-runtime.md.
"""The request plane: calls whose answers are streams, many at once on one connection, each of which can be cancelled.

Frames, all with the `id` that the caller gave: call (name, body), item, end, error, refused, cancel.
Knows connections; not what is called, nor where it is.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress

from .transport import Connection, Json, Message, Transport

Handler = Callable[[Json], AsyncIterator[Json]]
"""An async generator function: the body of a call in, the items of the answer out. Closed when the caller leaves."""


class RefusedError(ConnectionError):
    """The process that was asked does not serve this, or no longer. Nothing was done: ask another one."""


class RemoteError(RuntimeError):
    """The handler raised. Asking another one would not help."""


class Server:
    """Answers calls by the handlers in `handlers`, by name.

    alive: asked before a call is begun, which else is refused, and before each item leaves, which else is not sent.
    accepting: whether new calls are begun. active: tasks of the calls that are being answered.
    """

    def __init__(self, transport: Transport, alive: Callable[[], bool] = lambda: True):
        self.transport, self.alive = transport, alive
        self.handlers: dict[str, Handler] = {}
        self.accepting = True
        self.active: dict[asyncio.Task[None], None] = {}

    async def start(self) -> str:
        """Listen. Returns the address."""
        return await self.transport.listen(self.serve)

    async def serve(self, connection: Connection) -> None:
        """Answer the calls of one connection. When it breaks they are cancelled: nobody waits for them any more."""
        calls: dict[Json, asyncio.Task[None]] = {}
        try:
            while True:
                frame = await connection.receive()
                if frame["kind"] == "call":
                    await self.begin(connection, frame, calls)
                elif frame["id"] in calls:
                    calls[frame["id"]].cancel()
        except ConnectionError:
            pass
        finally:
            connection.close()
            for task in list(calls.values()):
                task.cancel()

    # ANCHOR: begin
    async def begin(self, connection: Connection, frame: Message, calls: dict[Json, asyncio.Task[None]]) -> None:
        """Begin to answer a call, or refuse it."""
        number, name = frame["id"], frame["name"]
        if not self.accepting or name not in self.handlers or not self.alive():
            await connection.send({"id": number, "kind": "refused", "text": f"{name} is not served here"})
            return
        task = asyncio.create_task(self.answer(connection, number, self.handlers[name](frame["body"])))
        self.active[task], calls[number] = None, task
        task.add_done_callback(self.active.pop)
        task.add_done_callback(lambda _: calls.pop(number))
        # ANCHOR_END: begin

    async def answer(self, connection: Connection, number: Json, items: AsyncIterator[Json]) -> None:
        """Send the items of an answer, and how it ended. Says nothing once this process must not."""
        try:
            async with aclosing(items):
                async for item in items:
                    if not self.alive():
                        return
                    await connection.send({"id": number, "kind": "item", "item": item})
            last: Message = {"id": number, "kind": "end"}
        except ConnectionError as error:
            last = {"id": number, "kind": "refused", "text": str(error)}
        except Exception as error:
            last = {"id": number, "kind": "error", "text": f"{type(error).__name__}: {error}"}
        if self.alive():
            with suppress(ConnectionError):
                await connection.send(last)

    async def drain(self) -> None:
        """Begin no more calls, and wait for those that were begun."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 3: Server.drain - see book/src/week4-03-distributed-runtime.md#task-3"
        )

    def abort(self) -> None:
        """Begin no more calls, end all others now, and leave."""
        self.accepting = False
        for task in list(self.active):
            task.cancel()
        self.transport.close()
