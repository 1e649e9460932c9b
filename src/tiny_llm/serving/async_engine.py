# This file is yours to edit. Read book/src/week3-07-server.md.
"""The bridge between an engine, which computes in a thread of its own, and the coroutines that wait for tokens.

The engine is built in that thread, since MLX streams belong to the thread that made them, and only that thread touches
it. Everything else here runs in one event loop.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from .engine import Engine
from .request import Output, Request
from .state import Stats, stats_of

logger = logging.getLogger(__name__)
T = TypeVar("T")
Command = Callable[[Engine], None]
"""What to do with the engine between two of its steps."""


class EngineError(RuntimeError):
    """A request that was in order could not be served."""


class FullError(EngineError):
    """As many requests as are allowed have not ended yet."""


class DrainingError(EngineError):
    """The engine accepts nothing more: it is about to stop."""


class RefusedError(EngineError):
    """The engine cannot take this request, now or later."""


class DeadError(EngineError):
    """The engine's thread has ended, though nobody asked for that."""


class AsyncEngine:
    """An engine for the coroutines of one event loop. build: makes the engine. limit: requests that may not have ended.

    max_len: positions that the longest request may have; pages: of the memory; both known once it has started.
    stats: the newest. draining: whether it accepts nothing more. error: what ended the thread before its time.
    """

    def __init__(self, build: Callable[[], Engine], limit: int = 256):
        self.build = build
        self.limit = limit
        self.uids = count()
        self.max_len = self.pages = 0
        self.stats = Stats()
        self.draining = False
        self.error: Exception | None = None
        self.inbox: SimpleQueue[Command | None] = SimpleQueue()
        """For the engine's thread; None ends it."""
        self.queues: dict[int, asyncio.Queue[Output | Exception]] = {}
        """Where the outputs of each request go that has not ended, by uid. Only the event loop touches it."""
        self.idle = asyncio.Event()
        """Set while `queues` is empty."""
        self.idle.set()

    # ANCHOR: thread
    async def start(self) -> None:
        """Start the thread, and wait for the engine. Raises what `build` raised."""
        self.loop = asyncio.get_running_loop()
        self.built: asyncio.Future[int] = self.loop.create_future()
        self.thread = Thread(target=self.live, name="engine", daemon=True)
        self.thread.start()
        self.max_len = await self.built

    def live(self) -> None:
        """The engine's thread: `run`. An error there is its end, and `die` tells all."""
        try:
            self.run()
        except BaseException as error:  # a SystemExit, too, would else end the thread without a word
            logger.exception("the engine's thread has died")
            self.tell(self.die, error if isinstance(error, Exception) else RuntimeError(repr(error)))

    def tell(self, function: Callable[..., None], *args: object) -> None:
        """From the engine's thread: let an open event loop call `function(*args)` soon."""
        try:
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            logger.warning("the event loop is closed: %s was not called", function.__name__)

    def publish(self, engine: Engine) -> None:
        """In the engine's thread: note its stats. A reader never sees a half of them."""
        self.stats = stats_of(engine, self.pages)

    def ready(self, max_len: int) -> None:
        """In the event loop: the engine is built."""
        self.built.set_result(max_len)

    def die(self, error: Exception) -> None:
        """In the event loop: the thread has ended with `error`, and so do all requests."""
        self.error = error
        if not self.built.done():
            self.built.set_exception(error)
        for uid in list(self.queues):
            self.close(uid, DeadError(f"the engine has died: {error}"))

    # ANCHOR_END: thread

    def run(self) -> None:
        """Build the engine, tell the event loop that it is `ready`, then `step` for as long as `obey` says so.

        The stats are published before and after each step. What a step gave goes to `deliver`, in one call.
        """
        raise NotImplementedError("Week 3 Day 7 Task 2: AsyncEngine.run - see book/src/week3-07-server.md#task-2")

    def obey(self, engine: Engine) -> bool:
        """Do all that the inbox says, in order, and publish the stats after each command.

        Waits only while the engine has nothing to do. Returns False to stop.
        """
        raise NotImplementedError("Week 3 Day 7 Task 2: AsyncEngine.obey - see book/src/week3-07-server.md#task-2")

    @contextmanager
    def submit(self, requests: Sequence[Request], seconds: float | None = None) -> Iterator[AsyncIterator[Output]]:
        """Run requests, whose uids are `next(self.uids)`, for the body of a `with` statement. All of them or none.

        Gives an iterator over the outputs of all of them, in the order in which they are known; it ends when all have
        ended. It raises RefusedError for a request that the engine does not take, DeadError when the engine's thread
        dies, and TimeoutError once `seconds` have passed. However the body is left, requests that have not ended are
        aborted. Raises, before anything is accepted, DeadError, DrainingError, or FullError.
        """
        raise NotImplementedError("Week 3 Day 7 Task 2: AsyncEngine.submit - see book/src/week3-07-server.md#task-2")
        yield  # only makes this a generator: replace it, too

    def admit(self, requests: int) -> None:
        """Raise DeadError, DrainingError or FullError unless `requests` more can be accepted now."""
        raise NotImplementedError("Week 3 Day 7 Task 2: AsyncEngine.admit - see book/src/week3-07-server.md#task-2")

    def addition(self, request: Request) -> Command:
        """The command that adds a request; a request that the engine does not take ends with RefusedError."""
        raise NotImplementedError("Week 3 Day 7 Task 2: AsyncEngine.addition - see book/src/week3-07-server.md#task-2")

    async def outputs(self, queue: "asyncio.Queue[Output | Exception]", uids: set[int]) -> AsyncIterator[Output]:
        """What comes out of `queue`, until each of `uids` has ended. An error that is found there is raised."""
        raise NotImplementedError("Week 3 Day 7 Task 2: AsyncEngine.outputs - see book/src/week3-07-server.md#task-2")
        yield  # only makes this a generator: replace it, too

    def deliver(self, outputs: Sequence[Output]) -> None:
        """In the event loop: hand outputs to whom they belong; those of requests that have ended are dropped."""
        raise NotImplementedError("Week 3 Day 7 Task 2: AsyncEngine.deliver - see book/src/week3-07-server.md#task-2")

    def close(self, uid: int, last: Output | Exception) -> bool:
        """Forget a request, whose queue gets `last`. Returns False where it has ended before."""
        raise NotImplementedError("Week 3 Day 7 Task 2: AsyncEngine.close - see book/src/week3-07-server.md#task-2")

    def abort(self, uid: int) -> None:
        """End a request now, with a last output "abort", and tell the engine. Nothing happens if it has ended."""
        raise NotImplementedError("Week 3 Day 7 Task 2: AsyncEngine.abort - see book/src/week3-07-server.md#task-2")

    async def drain(self, seconds: float) -> None:
        """Accept nothing more, let the requests end that were accepted, and abort those that have not in `seconds`."""
        raise NotImplementedError("Week 3 Day 7 Task 3: AsyncEngine.drain - see book/src/week3-07-server.md#task-3")

    async def stop(self, seconds: float = 10.0) -> None:
        """Accept nothing more, abort what is left, and end the thread after its present step, which has `seconds`."""
        self.draining = True
        for uid in list(self.queues):
            self.abort(uid)
        self.inbox.put(None)
        await asyncio.to_thread(self.thread.join, seconds)

    async def ask(self, question: Callable[[Engine], T], seconds: float = 5.0) -> T:
        """What `question` says about the engine, asked in its thread between two steps.

        Raises what it raises, TimeoutError where no answer comes in `seconds`, and DeadError for a dead engine.
        """
        if self.error:
            raise DeadError(f"the engine has died: {self.error}")
        answer: asyncio.Future[T] = self.loop.create_future()

        def settle(result: T | None, error: Exception | None) -> None:
            if not answer.done():
                answer.set_exception(error) if error else answer.set_result(result)

        def command(engine: Engine) -> None:
            try:
                self.tell(settle, question(engine), None)
            except Exception as error:
                self.tell(settle, None, error)

        self.inbox.put(command)
        return await asyncio.wait_for(answer, seconds)
