"""OpenAI's replies: how pieces of choices are written, whole or as chunks of a stream."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from uuid import uuid4

from tokenizers import Tokenizer

from .generation import Piece, Token

Json = dict[str, object]


class Reply(ABC):
    """One reply of an endpoint.

    logprobs: whether each token is reported with its log-probability. include_usage: whether a stream ends with a chunk
    of its usage; the other chunks then say that theirs is null.
    """

    prefix = ""
    kind = ""
    chunk_kind = ""

    def __init__(self, model: str, tokenizer: Tokenizer, logprobs: bool, include_usage: bool):
        self.tokenizer = tokenizer
        self.logprobs = logprobs
        self.include_usage = include_usage
        self.head: Json = {"id": f"{self.prefix}-{uuid4().hex}", "created": int(time.time()), "model": model}

    def whole(self, choices: Sequence[Piece], usage: Json) -> Json:
        """The reply at once."""
        return {**self.head, "object": self.kind, "choices": [self.choice(c) for c in choices], "usage": usage}

    def chunk(self, *choices: Json, usage: Json | None = None) -> Json:
        """A part of a stream; the one with the usage has no choice."""
        head = {**self.head, "object": self.chunk_kind, "choices": choices}
        return {**head, "usage": usage} if self.include_usage else head

    def opening(self, choices: int) -> list[Json]:
        """The chunks before any text."""
        return []

    @abstractmethod
    def choice(self, piece: Piece) -> Json:
        """A choice of a whole reply."""

    def delta(self, piece: Piece) -> Json:
        """A choice of a chunk."""
        return self.choice(piece)

    def name(self, token: int) -> str:
        """A token alone as text; a special one by its name."""
        return self.tokenizer.decode([token], skip_special_tokens=False)


class CompletionReply(Reply):
    """Of /v1/completions."""

    prefix = "cmpl"
    kind = chunk_kind = "text_completion"

    def choice(self, piece: Piece) -> Json:
        """Text, and the log-probabilities as columns."""
        return {
            "index": piece.index,
            "text": piece.text,
            "logprobs": self._columns(piece.tokens) if self.logprobs else None,
            "finish_reason": piece.finish_reason,
        }

    def _columns(self, tokens: Sequence[Token]) -> Json:
        return {
            "tokens": [self.name(token.sampled.token) for token in tokens],
            "token_logprobs": [token.sampled.logprob for token in tokens],
            "top_logprobs": [{self.name(other): p for other, p in token.sampled.top} for token in tokens],
            "text_offset": [token.offset for token in tokens],
        }


class ChatReply(Reply):
    """Of /v1/chat/completions."""

    prefix = "chatcmpl"
    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def opening(self, choices: int) -> list[Json]:
        """Who speaks."""
        start = {"delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        return [self.chunk({"index": index, **start}) for index in range(choices)]

    def choice(self, piece: Piece) -> Json:
        """A message, and the log-probabilities as rows."""
        return self._choice(piece, "message", {"role": "assistant", "content": piece.text, "refusal": None})

    def delta(self, piece: Piece) -> Json:
        """What the message grows by."""
        return self._choice(piece, "delta", {"content": piece.text} if piece.text else {})

    def _choice(self, piece: Piece, name: str, text: Json) -> Json:
        rows = [self._row(token) for token in piece.tokens]
        logprobs = {"content": rows, "refusal": None} if self.logprobs else None
        return {"index": piece.index, name: text, "logprobs": logprobs, "finish_reason": piece.finish_reason}

    def _row(self, token: Token) -> Json:
        chosen = self._entry(token.sampled.token, token.sampled.logprob)
        return {**chosen, "top_logprobs": [self._entry(*other) for other in token.sampled.top]}

    def _entry(self, token: int, logprob: float | None) -> Json:
        text = self.name(token)
        # A part of a character decodes to U+FFFD: which bytes it holds cannot be told from that.
        return {"token": text, "logprob": logprob, "bytes": None if "\ufffd" in text else list(text.encode())}
