"""uvicorn with a stop in two steps: the first signal lets running requests end, the second ends them."""

import asyncio
import socket
from concurrent.futures import Future
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from .async_engine import AsyncEngine


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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Remember the event loop, since a signal handler runs outside it. Sockets send small parts at once.

        asyncio sees to that only where it made the socket: else each chunk may wait 40 ms for an acknowledgement.
        """
        self.loop = asyncio.get_running_loop()
        for listener in sockets or ():
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first time: drain. Then: stop now."""
        if self.draining is None and self.started:
            self.draining = asyncio.run_coroutine_threadsafe(self.drain(), self.loop)
        else:
            super().handle_exit(sig, frame)

    async def drain(self) -> None:
        """Let the requests end, then stop."""
        await self.engine.drain(self.drain_seconds)
        self.should_exit = True
