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
        return self.allocator.available + self.tree.evictable

    def match(self, request: Request) -> Prefix:
        """The longest cached prefix of its ids in whole pages. One token at least is left to run: it gives logits."""
        pages, node = self.tree.match(request.page_keys(self.page_size, len(request.ids) - 1))
        return Prefix(len(pages) * self.page_size, tuple(pages), node)

    def open(self, request: Request, prefix: Prefix) -> None:
        """Give it a row that begins with `prefix`, and lock that. Raises ValueError as `PagedMemory.open` does."""
        super().open(request, prefix)
        node = prefix.node if isinstance(prefix.node, Node) else self.tree.root
        self.tree.lock(node)
        self.shared[request.row] = node, len(prefix.pages)

    def evict(self, pages: int) -> None:
        """Free this many pages of the tree, those that nobody asked for longest."""
        self.allocator.free(self.tree.evict(pages))

    def share(self, request: Request) -> None:
        """Give its computed whole pages to the tree. Where the tree had a page already, the row gets that one instead.

        Counted are positions whose ids are known, and that a step has computed whose result was read. That leaves the
        last id out: the step that computes it may be in flight.
        """
        row = request.row
        own, (locked, shared) = self.table.pages(row), self.shared[row]
        keys = request.page_keys(self.page_size, min(request.cached_len, len(request.ids) - 1))
        already, node = self.tree.insert(keys, own[: len(keys)])
        self.tree.lock(node)
        self.tree.unlock(locked)
        self.shared[row] = node, len(keys)
        # The row goes to the tree's pages first: a page is freed only when nobody points to it any more.
        self.table.replace(row, 0, self.tree.pages(node))
        self.allocator.free(own[shared:already])

    def close(self, request: Request) -> None:
        """Share what it computed, the answer too, then free its other pages and its row.

        Raises ValueError where it has no row: it was closed before.
        """
        if request.row is None:
            raise ValueError(f"request {request.uid} has no row: it was closed before")
        self.share(request)
        node, shared = self.shared.pop(request.row)
        self.tree.unlock(node)
        self.release(request, keep=shared)
