# This file is yours to edit. Read book/src/week3-07-server.md.
"""What a server puts up with: how large, how long, how late. And a client that leaves."""

from collections.abc import Coroutine
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import Receive


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
    raise NotImplementedError("Week 3 Day 7 Task 3: read_body - see book/src/week3-07-server.md#task-3")


def check_prompt(ids: list[int], max_len: int, vocabulary: int) -> None:
    """Raise ApiError 400 unless the prompt has at least one token, and leaves room for one in `max_len` positions."""
    raise NotImplementedError("Week 3 Day 7 Task 3: check_prompt - see book/src/week3-07-server.md#task-3")


async def unless_gone(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """Run `work` to its end, or until the client leaves: then it is cancelled, and this returns.

    receive: of a request whose body has been read. Raises what `work` raises. Leaves no task behind, also when it is
    cancelled itself.
    """
    raise NotImplementedError("Week 3 Day 7 Task 3: unless_gone - see book/src/week3-07-server.md#task-3")
