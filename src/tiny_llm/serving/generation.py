# This file is yours to edit. Read book/src/week3-07-server.md.
"""From the engine's outputs to the pieces of a reply: text that is sure, the tokens behind it, and how it ended.

A reply has one or more choices, each a request of its own in the engine. Knows nothing of HTTP.
"""

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from .async_engine import AsyncEngine, EngineError
from .metrics import Timing
from .request import Output, Sampled
from .text_stream import TextStream


class FailedError(EngineError):
    """The engine gave up on a request."""


class Token(NamedTuple):
    """A token of a choice. offset: characters of the choice before it."""

    offset: int
    sampled: Sampled


class Piece(NamedTuple):
    """The next part of choice `index`: text, and the tokens since the last piece. finish_reason: of the last piece."""

    index: int
    text: str
    tokens: tuple[Token, ...]
    finish_reason: str | None


class Choice:
    """One text of a reply, as it grows.

    tokens: how many were chosen so far, the one that ended it included. finish_reason: once it has ended.
    """

    def __init__(self, index: int, text: TextStream, timing: Timing):
        self.index = index
        self.text = text
        self.timing = timing
        self.tokens = 0
        self.finish_reason: str | None = None
        self.pending: list[Token] = []
        """Tokens whose text is still held back."""

    def add(self, output: Output) -> Piece | None:
        """Take the next output. Returns what can be sent now: never a piece without text, save the last.

        The text of a token that ended the choice as a stop token is not sent. A stop string ends it with "stop".
        Raises FailedError where the engine ended the request with "error" or "abort".
        """
        raise NotImplementedError("Week 3 Day 7 Task 4: Choice.add - see book/src/week3-07-server.md#task-4")


async def pieces(
    engine: AsyncEngine, outputs: AsyncIterator[Output], choices: Mapping[int, Choice]
) -> AsyncIterator[Piece]:
    """The pieces of all choices (by uid), as they become known. A choice that ends at a stop string is aborted at once.

    Raises what `outputs` and `Choice.add` raise; choices that have not ended then end with "error".
    """
    raise NotImplementedError("Week 3 Day 7 Task 4: pieces - see book/src/week3-07-server.md#task-4")
    yield  # only makes this a generator: replace it, too


def joined(parts: list[Piece]) -> list[Piece]:
    """One piece for each choice, made of all its pieces, in the order of their indices."""
    choices: dict[int, list[Piece]] = {}
    for piece in parts:
        choices.setdefault(piece.index, []).append(piece)
    return [
        Piece(
            index,
            "".join(piece.text for piece in choice),
            tuple(token for piece in choice for token in piece.tokens),
            choice[-1].finish_reason,
        )
        for index, choice in sorted(choices.items())
    ]
