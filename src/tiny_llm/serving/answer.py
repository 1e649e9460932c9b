# This file is yours to edit. Read book/src/week3-07-server.md.
"""One answer: from requests in the engine to bytes for the client, whole or as a stream of events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from .async_engine import AsyncEngine
from .generation import Choice, Piece, joined
from .metrics import Metrics
from .replies import Json, Reply
from .request import Request

logger = logging.getLogger(__name__)


class StalledError(Exception):
    """The client is there, and takes nothing."""


# ANCHOR: event
def event(data: Json) -> bytes:
    """One server-sent event."""
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


DONE = b"data: [DONE]\n\n"
"""The last event of every stream."""
# ANCHOR_END: event


def json_response(data: object, status: int = 200) -> Response:
    """JSON. A number that JSON cannot hold becomes null."""
    return Response(msgspec.json.encode(data), status, media_type="application/json")


@dataclass(frozen=True)
class Answer:
    """Answers with the choices of `requests`: an ASGI application for one request.

    choices: by the uid of their request. prompt_tokens: of all prompts. stream: whether to send events. seconds: the
    answer may take.
    """

    engine: AsyncEngine
    metrics: Metrics
    requests: Sequence[Request]
    choices: Mapping[int, Choice]
    reply: Reply
    prompt_tokens: int
    stream: bool
    seconds: float

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the requests, and send what they give. When this returns none of them is in the engine any more.

        Every accepted choice is counted as finished, once. A client that leaves ends the work, whatever it waits for.
        Raises what `AsyncEngine.submit` raises, and errors of an answer that has not begun.
        """
        raise NotImplementedError("Week 3 Day 7 Task 4: Answer.__call__ - see book/src/week3-07-server.md#task-4")

    async def send(self, parts: AsyncIterator[Piece], scope: Scope, receive: Receive, send: Send) -> None:
        """Send a stream of events, or all at once. Gives up on a client that takes nothing for `seconds`."""

        async def in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(self.seconds):
                    await send(message)
            except TimeoutError:
                raise StalledError from None

        try:
            if self.stream:
                await StreamingResponse(self.events(parts), media_type="text/event-stream").stream_response(in_time)
            else:
                whole = self.reply.whole(joined([piece async for piece in parts]), self.usage())
                await json_response(whole)(scope, receive, in_time)
        except StalledError:
            logger.warning("a client reads nothing of its answer: it is left")

    async def events(self, parts: AsyncIterator[Piece]) -> AsyncIterator[bytes]:
        """The events of a stream: opening, a chunk for each piece, the usage if asked for, DONE.

        An error is an event of its own before DONE: the status was sent long ago.
        """
        raise NotImplementedError("Week 3 Day 7 Task 4: Answer.events - see book/src/week3-07-server.md#task-4")
        yield  # only makes this a generator: replace it, too

    def usage(self) -> Json:
        """Tokens of the prompts, and those that were chosen for all choices so far."""
        raise NotImplementedError("Week 3 Day 7 Task 4: Answer.usage - see book/src/week3-07-server.md#task-4")
