# This file is yours to edit. Read book/src/week4-03-distributed-runtime.md.
"""Request migration: a stream of tokens that breaks goes on at another worker, and whoever reads it never knows.

It stands above whatever chooses workers. What was generated becomes part of the prompt, so nothing is computed twice
but keys and values. With greedy decoding the output is that of a run without failures.
"""

from collections.abc import AsyncIterator, Callable
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
        raise NotImplementedError(
            "Week 4 Day 3 Task 4: Progress.request - see book/src/week4-03-distributed-runtime.md#task-4"
        )

    def take(self, item: Json) -> int:
        """Count a token, {"token", "finish_reason"}, and return it. After the last one nothing that breaks matters."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 4: Progress.take - see book/src/week4-03-distributed-runtime.md#task-4"
        )


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
        raise NotImplementedError(
            "Week 4 Day 3 Task 4: Migration.generate - see book/src/week4-03-distributed-runtime.md#task-4"
        )
        yield  # only makes this a generator: replace it, too
