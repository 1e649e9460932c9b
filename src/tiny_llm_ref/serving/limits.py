"""What a server puts up with: how large, how long, how late. And a client that leaves."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import Receive

from .errors import ApiError


# ANCHOR: limits
@dataclass(frozen=True)
class Limits:
    """body_bytes: of a request's body, which has body_seconds to arrive. seconds: for the answer. drain_seconds: for
    requests that run when the server is told to stop."""

    body_bytes: int = 1 << 20
    body_seconds: float = 10.0
    seconds: float = 600.0
    drain_seconds: float = 30.0


# ANCHOR_END: limits


async def read_body(request: Request, limits: Limits) -> bytes:
    """The whole body. Raises ApiError: 413 as soon as it is known to be too large, 408 if it comes too late."""
    too_large = ApiError(413, f"the body is larger than {limits.body_bytes} bytes: send less", code="body_too_large")
    if int(request.headers.get("content-length", 0)) > limits.body_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                body += part
                if len(body) > limits.body_bytes:
                    raise too_large
    except TimeoutError:
        raise ApiError(408, f"the body took more than {limits.body_seconds} s to arrive: send it faster") from None
    return bytes(body)


def check_prompt(ids: list[int], max_len: int, vocabulary: int) -> None:
    """Raise ApiError 400 unless the prompt has at least one token, and leaves room for one in `max_len` positions."""
    if not ids:
        raise ApiError(400, "the prompt has no token: a model needs at least one to start from", "prompt")
    if len(ids) >= max_len:
        message = f"the prompt has {len(ids)} tokens, at most {max_len - 1} fit with one to answer: shorten it"
        raise ApiError(400, message, "prompt", "context_length_exceeded")
    if unknown := [token for token in ids if token >= vocabulary]:
        raise ApiError(400, f"token {unknown[0]} is none of the {vocabulary} of this model", "prompt")


async def unless_gone(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """Run `work` to its end, or until the client leaves: then it is cancelled, and this returns.

    receive: of a request whose body has been read. Raises what `work` raises. Leaves no task behind, also when it is
    cancelled itself.
    """
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
