# This file is yours to edit. Read book/src/week4-04-kv-aware-routing.md.
"""Which worker has which prefix in its cache.

Knows hashes of blocks and the names that workers give to them; nothing of tokens or time. After Dynamo's indexer, flat
instead of a tree: a sequence hash says what is before the block, as a path does. Local hashes as keys would be wrong:
the same block after another prefix has other keys and values.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from .hashing import Naming, sequence_hashes

Worker = Hashable


# ANCHOR: changes
class Block(NamedTuple):
    """A block in events.

    external: what the worker calls it, for good: no other content, and no
    other prefix, gets this name. local: hash of its own content.
    """

    external: int
    local: int


class Stored(NamedTuple):
    """These blocks are in the cache now, each behind the one before it.

    parent: external name of the block before the first; None for a beginning.
    """

    parent: int | None
    blocks: tuple[Block, ...]


class Removed(NamedTuple):
    """The blocks with these external names have left the cache."""

    blocks: tuple[int, ...]


class Cleared(NamedTuple):
    """All blocks have left the cache."""


Change = Stored | Removed | Cleared
# ANCHOR_END: changes


class PrefixIndex:
    """Blocks with the workers that have them.

    holders: by sequence hash, one bit for each worker that has the block; a block that nobody has is not in it.
    blocks: of each worker, the sequence hash by the name that the worker uses. naming: makes sequence hashes.
    """

    # ANCHOR: workers
    def __init__(self, naming: Naming = sequence_hashes):
        self.naming = naming
        self.holders: dict[int, int] = {}
        self.blocks: dict[Worker, dict[int, int]] = {}
        self.bits: dict[Worker, int] = {}
        self.owners: list[Worker | None] = []

    def add_worker(self, worker: Worker) -> None:
        """Know a worker, with an empty cache. Raises ValueError where it is known."""
        if worker in self.blocks:
            raise ValueError(f"worker {worker} is in the index already")
        place = self.owners.index(None) if None in self.owners else len(self.owners)
        self.owners[place : place + 1] = [worker]
        self.bits[worker] = 1 << place
        self.blocks[worker] = {}

    def workers_of(self, bits: int) -> list[Worker]:
        """The workers of a mask, one bit each."""
        workers = []
        while bits:
            lowest = bits & -bits
            workers.append(self.owners[lowest.bit_length() - 1])
            bits -= lowest
        return workers

    # ANCHOR_END: workers

    def remove_worker(self, worker: Worker) -> None:
        """Forget a worker and all its blocks."""
        self.apply(worker, Cleared())
        del self.blocks[worker]
        self.owners[self.bits.pop(worker).bit_length() - 1] = None

    def apply(self, worker: Worker, change: Change) -> bool:
        """Do what an event says. Returns False, and changes nothing, for blocks whose parent this worker does not have.

        Stored twice is stored; a removed block that is not there is no mistake. Raises KeyError for unknown workers.
        """
        raise NotImplementedError(
            "Week 4 Day 4 Task 2: PrefixIndex.apply - see book/src/week4-04-kv-aware-routing.md#task-2"
        )

    def match(self, names: Sequence[int]) -> dict[Worker, int]:
        """The score of each worker that has the first block of a prompt.

        A score is the number of consecutive leading blocks that a worker has: one behind a gap is of no use.
        names: sequence hashes of the prompt's complete blocks.
        """
        raise NotImplementedError(
            "Week 4 Day 4 Task 2: PrefixIndex.match - see book/src/week4-04-kv-aware-routing.md#task-2"
        )
