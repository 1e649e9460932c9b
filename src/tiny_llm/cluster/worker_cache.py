"""A worker's prefix cache that tells what comes and goes: any `PrefixMemory`, with another tree.

Knows the radix tree of the week before, whose code it does not change, and events. A page is a block. Pages that only a
running request holds are nobody else's business: a block is stored when it enters the tree, once, under its canonical
page, and removed when it is evicted. To split a node changes no block, and tells nothing.
"""

from collections.abc import Callable, Hashable, Sequence

from ..cache.radix import Node, RadixTree
from ..serving.prefix_memory import PrefixMemory
from .events import Event, EventLog
from .hashing import Naming, key_hashes, sequence_hashes
from .indexer import Block, Change, Removed, Stored

Publish = Callable[[Change], object]
Send = Callable[[Event], object]
LocalHashes = Callable[[Sequence[Hashable]], list[int]]


class TellingTree(RadixTree):
    """A `RadixTree` that publishes its changes.

    local: the local hashes of page keys. naming: gives the external names. names: by page.
    """

    def __init__(self, publish: Publish, local: LocalHashes = key_hashes, naming: Naming = sequence_hashes):
        super().__init__()
        self.publish, self.local, self.naming = publish, local, naming
        self.names: dict[int, int] = {}

    def insert(self, keys: Sequence[Hashable], pages: Sequence[int]) -> tuple[int, Node]:
        """As `RadixTree.insert`. Publishes the blocks that were not there."""
        already, node = super().insert(keys, pages)
        if already < len(keys):  # then `node` is a new leaf with all of them, behind a node that was there
            parent = self.names[node.parent.pages[-1]] if already else None
            locals_ = self.local(node.keys)
            names = self.naming(locals_, parent)
            self.names.update(zip(node.pages, names, strict=True))
            self.publish(Stored(parent, tuple(map(Block, names, locals_))))
        return already, node

    def evict(self, pages: int) -> list[int]:
        """As `RadixTree.evict`. Publishes the blocks that are gone."""
        evicted = super().evict(pages)
        if evicted:
            self.publish(Removed(tuple(self.names.pop(page) for page in evicted)))
        return evicted

    def dump(self) -> list[Change]:
        """Changes that give an empty index all blocks of the tree, parents first."""
        changes: list[Change] = []
        todo = list(self.root.children.values())
        for node in todo:  # grows on the way
            parent = self.names[node.parent.pages[-1]] if node.parent.pages else None
            blocks = zip((self.names[page] for page in node.pages), self.local(node.keys), strict=True)
            changes.append(Stored(parent, tuple(map(Block._make, blocks))))
            todo += node.children.values()
        return changes


def tell(
    memory: PrefixMemory, capacity: int, send: Send, local: LocalHashes = key_hashes, naming: Naming = sequence_hashes
) -> EventLog:
    """Let `memory`, which holds nothing yet, tell its changes from now on. Raises ValueError where it holds pages.

    send: gets each event, at once. Returns the log, which answers questions from its last `capacity` events.
    """
    if memory.tree.evictable + memory.tree.protected:
        raise ValueError("the memory holds pages already: nobody would hear of them")
    tree = memory.tree = TellingTree(lambda change: send(log.publish(change)), local, naming)
    log = EventLog(capacity, tree.dump)
    return log
