# This file is yours to edit. Read book/src/week3-03-paged-kv.md.
"""A memory whose pages exist: a request's row in the page table grows page by page.

Knows which row and pages a request has; not what stands in them.
"""

from ..cache.paged import PageAllocator, PageTable
from .memory import Prefix
from .request import Request


class PagedMemory:
    """A `Memory` of `rows` rows that share `pages` pages, each of `page_size` positions.

    allocator, table: what is free, and what each row holds. A prefix cache is a subclass with another `match`, `evict`,
    `share` and `close`.
    """

    def __init__(self, rows: int, max_len: int, page_size: int, pages: int):
        self.page_size = page_size
        self.pages = pages
        self.max_len = min(max_len, pages * page_size)
        self.allocator = PageAllocator(pages)
        self.table = PageTable(rows, self.max_len, page_size, dummy_page=pages)
        self._rows = list(range(rows - 1, -1, -1))

    @property
    def free_rows(self) -> int:
        """Rows that no request has."""
        return len(self._rows)

    @property
    def available(self) -> int:
        """Pages that nobody holds."""
        return self.allocator.available

    def match(self, request: Request) -> Prefix:
        """Nothing: no row knows another."""
        return Prefix()

    def open(self, request: Request, prefix: Prefix) -> None:
        """Give it a row that begins with the pages of `prefix`, and set its row and cached_len.

        Raises ValueError, and changes nothing, where it has a row or none is free.
        """
        raise NotImplementedError("Week 3 Day 3 Task 4: PagedMemory.open - see book/src/week3-03-paged-kv.md#task-4")

    def held(self, request: Request) -> int:
        """Pages in its row; 0 for a request that is not admitted."""
        return 0 if request.row is None else self.table.counts[request.row]

    def grow(self, request: Request, length: int) -> None:
        """Give its row the pages that are missing for `length` positions.

        Raises OutOfPagesError where they are more than `available`, ValueError for a request without a row, or more
        than `max_len` positions. A grow that raises changes nothing.
        """
        raise NotImplementedError("Week 3 Day 3 Task 4: PagedMemory.grow - see book/src/week3-03-paged-kv.md#task-4")

    def evict(self, pages: int) -> None:
        """Free this many pages of `available` that no row holds. Here there are none."""

    def share(self, request: Request) -> None:
        """Nothing is shared."""

    def close(self, request: Request) -> None:
        """Free its row and its pages, once. Raises ValueError where it has none: it was closed before."""
        self.release(request)

    def release(self, request: Request, keep: int = 0) -> None:
        """Free its row, and its pages except the first `keep`, which belong to somebody else from now on.

        Raises ValueError, and changes nothing, where it has no row.
        """
        raise NotImplementedError("Week 3 Day 3 Task 4: PagedMemory.release - see book/src/week3-03-paged-kv.md#task-4")
