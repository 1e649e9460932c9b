# This file is yours to edit. Read book/src/week3-05-prefix-cache.md.
"""A paged memory with a prefix cache: what one request computed, the next one with the same beginning finds.

Knows requests, their rows, and a radix tree of pages. Each page has one owner: the allocator while it is
free, the tree, or a row. Rows point to pages of the tree as well, and lock them as long as they do.
"""

from ..cache.radix import Node, RadixTree
from .memory import Prefix
from .paged_memory import PagedMemory
from .request import Request


class PrefixMemory(PagedMemory):
    """A `Memory` whose rows begin with pages that others computed.

    shared: for each row in use the node that it locks, and how many of its pages, from the first, the tree owns.
    """

    def __init__(self, rows: int, max_len: int, page_size: int, pages: int):
        super().__init__(rows, max_len, page_size, pages)
        self.tree = RadixTree()
        self.shared: dict[int, tuple[Node, int]] = {}

    @property
    def available(self) -> int:
        """Pages that nobody holds, and those of the tree that no row holds."""
        raise NotImplementedError(
            "Week 3 Day 5 Task 3: PrefixMemory.available - see book/src/week3-05-prefix-cache.md#task-3"
        )

    def match(self, request: Request) -> Prefix:
        """The longest cached prefix of its ids in whole pages. One token at least is left to run: it gives logits."""
        raise NotImplementedError(
            "Week 3 Day 5 Task 3: PrefixMemory.match - see book/src/week3-05-prefix-cache.md#task-3"
        )

    def open(self, request: Request, prefix: Prefix) -> None:
        """Give it a row that begins with `prefix`, and lock that. Raises ValueError as `PagedMemory.open` does."""
        raise NotImplementedError(
            "Week 3 Day 5 Task 3: PrefixMemory.open - see book/src/week3-05-prefix-cache.md#task-3"
        )

    def evict(self, pages: int) -> None:
        """Free this many pages of the tree, those that nobody asked for longest."""
        raise NotImplementedError(
            "Week 3 Day 5 Task 3: PrefixMemory.evict - see book/src/week3-05-prefix-cache.md#task-3"
        )

    def share(self, request: Request) -> None:
        """Give its computed whole pages to the tree. Where the tree had a page already, the row gets that one instead.

        Counted are positions whose ids are known, and that a step has computed whose result was read. That leaves the
        last id out: the step that computes it may be in flight.
        """
        raise NotImplementedError(
            "Week 3 Day 5 Task 4: PrefixMemory.share - see book/src/week3-05-prefix-cache.md#task-4"
        )

    def close(self, request: Request) -> None:
        """Share what it computed, the answer too, then free its other pages and its row.

        Raises ValueError where it has no row: it was closed before.
        """
        raise NotImplementedError(
            "Week 3 Day 5 Task 4: PrefixMemory.close - see book/src/week3-05-prefix-cache.md#task-4"
        )
