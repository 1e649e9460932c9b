"""Which worker has which prefix in its cache.

Knows local hashes and the names that workers give to blocks; nothing of tokens or time. After Dynamo's radix indexer. A
flat map from local hashes to workers would be wrong: the same block after another prefix has other keys and values. In
the tree the path says what is before.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Worker = Hashable


class Block(NamedTuple):
    """A block in events.

    external: what the worker calls it, for good: no other content, and no other prefix, gets this name.
    local: hash of its own content.
    """

    external: int
    local: int


class Stored(NamedTuple):
    """These blocks are in the cache now, each behind the one before it, the first behind block `parent`."""

    parent: int | None
    blocks: tuple[Block, ...]


class Removed(NamedTuple):
    """The blocks with these external names have left the cache."""

    blocks: tuple[int, ...]


class Cleared(NamedTuple):
    """All blocks have left the cache."""


Change = Stored | Removed | Cleared


@dataclass(eq=False, slots=True)
class Node:
    """One block behind those of its ancestors.

    children: by local hash. workers: who has it, one bit for each.
    """

    parent: "Node | None" = field(default=None, repr=False)
    local: int = 0
    workers: int = 0
    children: dict[int, "Node"] = field(default_factory=dict, repr=False)


class PrefixIndex:
    """A tree of blocks with the workers that have them.

    A worker may evict a block before those behind it: its node stays as long as something is below, so that they count
    again when it comes back.
    """

    def __init__(self) -> None:
        self.root = Node()
        self.lookup: dict[Worker, dict[int, Node]] = {}
        self._bits: dict[Worker, int] = {}
        self._owners: list[Worker | None] = []

    def add_worker(self, worker: Worker) -> None:
        """Know a worker, with an empty cache. Raises ValueError where it is known."""
        if worker in self.lookup:
            raise ValueError(f"worker {worker} is in the index already")
        bit = self._owners.index(None) if None in self._owners else len(self._owners)
        self._owners[bit : bit + 1] = [worker]
        self._bits[worker] = 1 << bit
        self.lookup[worker] = {}

    def remove_worker(self, worker: Worker) -> None:
        """Forget a worker and all its blocks."""
        self.apply(worker, Cleared())
        del self.lookup[worker]
        self._owners[self._bits.pop(worker).bit_length() - 1] = None

    def apply(self, worker: Worker, change: Change) -> bool:
        """Do what an event says. Returns False, and changes nothing, for blocks whose parent this worker does not have.

        Stored twice is stored; a removed block that is not there is no mistake. Raises KeyError for unknown workers.
        """
        nodes = self.lookup[worker]
        if not isinstance(change, Stored):
            self._remove(worker, list(nodes) if isinstance(change, Cleared) else change.blocks)
        elif change.parent is None or change.parent in nodes:
            self._store(worker, self.root if change.parent is None else nodes[change.parent], change.blocks)
        else:
            return False
        return True

    def _store(self, worker: Worker, parent: Node, blocks: Sequence[Block]) -> None:
        nodes, bit = self.lookup[worker], self._bits[worker]
        for external, local in blocks:
            node = parent.children.get(local)
            if node is None:
                node = parent.children[local] = Node(parent, local, bit)
            else:
                node.workers |= bit
            nodes[external] = parent = node

    def _remove(self, worker: Worker, blocks: Sequence[int]) -> None:
        nodes, others = self.lookup[worker], ~self._bits[worker]
        for external in blocks:
            node = nodes.pop(external, None)
            if node is not None:
                node.workers &= others
                while node.parent is not None and not (node.workers or node.children):
                    del node.parent.children[node.local]
                    node = node.parent

    # ANCHOR: match
    def match(self, locals_: Sequence[int]) -> dict[Worker, int]:
        """The score of each worker that has the first block.

        A score is the number of consecutive leading blocks that a worker has.
        """
        scores: dict[Worker, int] = {}
        node, left = self.root, -1
        for depth, local in enumerate(locals_):
            node = node.children.get(local)
            both = node.workers & left if node is not None else 0
            if both != left:
                if depth:
                    self._score(scores, left & ~both, depth)
                left = both
            if not left:
                return scores
        if locals_:
            self._score(scores, left, len(locals_))
        return scores

    # ANCHOR_END: match

    def _score(self, scores: dict[Worker, int], workers: int, depth: int) -> None:
        while workers:
            bit = workers & -workers
            scores[self._owners[bit.bit_length() - 1]] = depth
            workers -= bit
