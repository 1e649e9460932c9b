# This file is yours to edit. Read book/src/week4-04-kv-aware-routing.md.
"""A guess at which worker has which prefix, for engines that send no events.

Whoever was sent a prompt has its blocks for a while: the router remembers its own decisions, and forgets them after
`ttl` ns, or earlier where they are too many. After Dynamo's approximate indexer.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from .hashing import traced_hashes
from .indexer import Block, PrefixIndex, Stored, Worker

TTL_NS = 120 * 10**9


# ANCHOR: recent
class Prompt(NamedTuple):
    """A prompt that was sent.

    deadline: ns; it counts before that. number: how many were sent up to it.
    """

    deadline: int
    number: int
    worker: Worker
    names: Sequence[int]


class RecentIndex:
    """What workers were sent lately.

    ttl: ns that a block counts after the last prompt that had it.
    limit: blocks to remember, those of all workers.
    prompts: the oldest first.
    last: of each worker, the number of the last prompt that had a block, by name.
    A prompt has all of its prefix: no block outlives what is before it.
    blocks: entries of `last`, of all workers.
    """

    def __init__(self, ttl: int = TTL_NS, limit: int = 1 << 20):
        self.ttl, self.limit = ttl, limit
        self.index = PrefixIndex(traced_hashes)  # it is told names
        self.prompts: deque[Prompt] = deque()
        self.last: dict[Worker, dict[int, int]] = {}
        self.blocks = self.number = 0

    def sent(self, worker: Worker, names: Sequence[int], now: int) -> None:
        """A prompt with these blocks went to `worker`.

        now: ns, never less than before.
        """
        last = self.last[worker]
        self.number += 1
        self.prompts.append(Prompt(now + self.ttl, self.number, worker, names))
        self.blocks -= len(last)
        last.update(dict.fromkeys(names, self.number))
        self.blocks += len(last)
        blocks = tuple(Block(name, name) for name in names)
        self.index.apply(worker, Stored(None, blocks))
        self.expire(now)
        # ANCHOR_END: recent

    def add_worker(self, worker: Worker) -> None:
        """Know a worker, which was sent nothing yet."""
        self.index.add_worker(worker)
        self.last[worker] = {}

    def remove_worker(self, worker: Worker) -> None:
        """Forget a worker, and what it was sent."""
        self.index.remove_worker(worker)
        self.blocks -= len(self.last.pop(worker))
        self.prompts = deque(prompt for prompt in self.prompts if prompt.worker != worker)

    def expire(self, now: int) -> None:
        """Forget prompts whose time is over at `now`, and the oldest ones while there are too many blocks.

        A block that a later prompt had stays.
        """
        raise NotImplementedError(
            "Week 4 Day 4 Task 2: RecentIndex.expire - see book/src/week4-04-kv-aware-routing.md#task-2"
        )

    def match(self, names: Sequence[int], now: int) -> dict[Worker, int]:
        """Scores as those of `PrefixIndex.match`, at time `now`."""
        self.expire(now)
        return self.index.match(names)
