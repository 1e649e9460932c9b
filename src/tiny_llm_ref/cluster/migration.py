"""Request migration: a stream of tokens that breaks goes on at another worker, and whoever reads it never knows.

It stands above whatever chooses workers. What was generated becomes part of the prompt, so nothing is computed twice
but keys and values. With greedy decoding the output is that of a run without failures.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from .transport import Clock, Json


# ANCHOR: progress
@dataclass
class Progress:
    """How far an answer is. Knows no worker.

    prompt: token ids. max_tokens: of the answer. tokens: those that were
    delivered. finish_reason: None until the last.
    """

    prompt: list[int]
    max_tokens: int
    tokens: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    # ANCHOR_END: progress

    def request(self) -> Json:
        """What to ask the next worker: the rest. Raises ValueError where there is none."""
        if self.finish_reason is not None or len(self.tokens) >= self.max_tokens:
            raise ValueError(f"the answer is complete: {len(self.tokens)} of {self.max_tokens} tokens")
        return {"token_ids": self.prompt + self.tokens, "max_tokens": self.max_tokens - len(self.tokens)}

    def take(self, item: Json) -> int:
        """Count a token, {"token", "finish_reason"}, and return it. After the last one nothing that breaks matters."""
        self.tokens.append(item["token"])
        self.finish_reason = item["finish_reason"]
        if self.finish_reason is None and len(self.tokens) == self.max_tokens:
            self.finish_reason = "length"
        return item["token"]


class Migration:
    """Generates on `route`, and begins again elsewhere when a worker is lost.

    route: asks some worker and yields its items; ConnectionError where it is lost, or there is none. limit: how often
    a request may begin again. pause: ns before it does. migrations: how often any request did.
    """

    def __init__(self, route: Callable[[Json], AsyncIterator[Json]], clock: Clock, limit: int = 3, pause: int = 0):
        self.route, self.clock, self.limit, self.pause = route, clock, limit, pause
        self.migrations = 0

    async def generate(self, prompt: list[int], max_tokens: int) -> AsyncIterator[int]:
        """The tokens of the answer, each once. Raises ConnectionError once the limit is reached."""
        progress, lost = Progress(list(prompt), max_tokens), 0
        while progress.finish_reason is None:
            try:
                async with aclosing(self._attempt(progress)) as tokens:
                    async for token in tokens:
                        yield token
            except ConnectionError:
                lost += 1
                if lost > self.limit:
                    raise
                self.migrations += 1
                await self.clock.sleep_until(self.clock.now + self.pause)

    async def _attempt(self, progress: Progress) -> AsyncIterator[int]:
        """What one worker gives. Raises ConnectionError where it ends without a last token."""
        async with aclosing(self.route(progress.request())) as items:
            async for item in items:
                yield progress.take(item)
                if progress.finish_reason is not None:
                    return
        raise ConnectionError("the worker ended its answer before the last token")
