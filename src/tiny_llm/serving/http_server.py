"""uvicorn with a stop in two steps: the first signal lets running requests end, the second ends them."""

import asyncio
import errno
import logging
import socket
from concurrent.futures import Future
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from .async_engine import AsyncEngine

logger = logging.getLogger(__name__)
QUIET_SECONDS = 20.0
"""A connection may ask for nothing, or not come to the end of its headers, for so long. uvicorn waits for ever."""


class HttpServer(uvicorn.Server):
    """Serves `app` until SIGTERM or SIGINT. While the requests of `engine` end, for `drain_seconds` at most, new ones
    are still answered, with 503, so that a load balancer sees why."""

    def __init__(self, app: Starlette, engine: AsyncEngine, drain_seconds: float, host: str, port: int):
        super().__init__(
            uvicorn.Config(
                app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=int(drain_seconds) + 1
            )
        )
        self.engine = engine
        self.drain_seconds = drain_seconds
        self.draining: Future[None] | None = None
        self.told = -10.0
        """When it was last said that there are too many connections."""
        self.quiet_seconds = QUIET_SECONDS
        self.quiet: dict[object, tuple[object, float]] = {}
        """Connections that wait for a request: the one before, and since when."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Remember the event loop, since a signal handler runs outside it. Sockets send small parts at once.

        asyncio sees to that only where it made the socket: else each chunk may wait 40 ms for an acknowledgement.
        """
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(self.failed)
        for listener in sockets or ():
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first time: drain. Then: end the requests, and stop as soon as their clients have been told."""
        if self.draining is None and self.started:
            self.draining = asyncio.run_coroutine_threadsafe(self.drain(), self.loop)
            return
        if self.started:
            asyncio.run_coroutine_threadsafe(self.engine.drain(0.0), self.loop)
        super().handle_exit(sig, frame)

    def failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """An error in the event loop. Where no more files can be open, asyncio has thousands of them each second."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            if loop.time() > self.told + 10:
                self.told = loop.time()
                logger.error("no more connections can be open: `ulimit -n` raises the limit")
        elif not (self.should_exit and "_start_serving" in str(context["message"])):  # tried again, and too late
            loop.default_exception_handler(context)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        if counter % 10 == 0:
            self.close_quiet(self.loop.time())
        return await super().on_tick(counter)

    def close_quiet(self, now: float) -> None:
        """Close the connections that have waited for their next request for too long."""
        waiting = {}
        for connection in list(self.server_state.connections):
            if connection.cycle and not connection.cycle.response_complete:
                continue
            last, since = self.quiet.get(connection, (connection.cycle, now))
            waiting[connection] = (connection.cycle, since if last is connection.cycle else now)
            if now - waiting[connection][1] > self.quiet_seconds:
                connection.transport.close()
        self.quiet = waiting

    async def drain(self) -> None:
        """Let the requests end, then stop."""
        await self.engine.drain(self.drain_seconds)
        self.should_exit = True
