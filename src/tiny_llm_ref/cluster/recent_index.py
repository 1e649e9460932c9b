"""A guess at which worker has which prefix, for engines that send no events.

Whoever was sent a prompt has its blocks for a while: the router remembers its own decisions, and forgets them after
`ttl` ns, or earlier where they are too many.
"""

from collections import deque
from collections.abc import Sequence

from .hashing import Naming, sequence_hashes
from .indexer import Block, PrefixIndex, Removed, Stored, Worker

TTL_NS = 120 * 10**9


class RecentIndex:
    """What workers were sent lately.

    ttl: ns that a block counts after the last prompt that had it. limit: blocks to remember, those of all workers.
    """

    def __init__(self, ttl: int = TTL_NS, limit: int = 1 << 20, naming: Naming = sequence_hashes):
        self.ttl, self.limit, self.naming = ttl, limit, naming
        self.index = PrefixIndex()
        self.blocks = 0
        self._sent = 0
        self._prompts: deque[tuple[int, int, Worker, Sequence[int]]] = deque()
        # The last prompt that had each block. As a prompt has all of its prefix, no block outlives what is before it.
        self._last: dict[Worker, dict[int, int]] = {}

    def add_worker(self, worker: Worker) -> None:
        """Know a worker, which was sent nothing yet."""
        self.index.add_worker(worker)
        self._last[worker] = {}

    def remove_worker(self, worker: Worker) -> None:
        """Forget a worker."""
        self.index.remove_worker(worker)
        self.blocks -= len(self._last.pop(worker))

    def sent(self, worker: Worker, locals_: Sequence[int], now: int) -> None:
        """A prompt with these blocks went to `worker`. now: ns, never less than before."""
        names, last = self.naming(locals_, None), self._last[worker]
        self._sent += 1
        self._prompts.append((now + self.ttl, self._sent, worker, names))
        self.blocks -= len(last)
        last.update(dict.fromkeys(names, self._sent))
        self.blocks += len(last)
        self.index.apply(worker, Stored(None, tuple(map(Block, names, locals_))))
        self.expire(now)

    def expire(self, now: int) -> None:
        """Forget prompts whose time is over at `now`, and the oldest ones while there are too many blocks."""
        while self._prompts and (self._prompts[0][0] <= now or self.blocks > self.limit):
            _, number, worker, names = self._prompts.popleft()
            if (last := self._last.get(worker)) is None:
                continue
            gone = tuple(name for name in names if last.get(name) == number)
            for name in gone:
                del last[name]
            self.blocks -= len(gone)
            self.index.apply(worker, Removed(gone))

    def match(self, locals_: Sequence[int], now: int) -> dict[Worker, int]:
        """Scores as those of `PrefixIndex.match`, at time `now`."""
        self.expire(now)
        return self.index.match(locals_)
