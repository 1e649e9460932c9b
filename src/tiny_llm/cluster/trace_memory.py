"""Week 3's memory with a prefix cache, for traces: nobody reads what stands in the pages, so lists are table enough.

Knows which pages are free and which each row has. Equal to `PrefixMemory` in all that a scheduler sees.
"""

from collections.abc import Sequence

from ..serving.prefix_memory import PrefixMemory


class PageStack:
    """A `PageAllocator` that trusts its callers. The page that was freed last goes first."""

    def __init__(self, pages: int):
        self.pages = self.available = pages
        self._used = 0
        self._freed: list[int] = []

    def allocate(self, n: int) -> list[int]:
        """Take `n` different free pages. Raises ValueError, and takes none, where fewer are free, or n is negative."""
        if not 0 <= n <= self.available:
            raise ValueError(f"cannot allocate {n} pages: {self.available} are free")
        self.available -= n
        at = max(len(self._freed) - n, 0)
        pages = self._freed[at:]
        del self._freed[at:]
        fresh = n - len(pages)
        pages += range(self._used, self._used + fresh)
        self._used += fresh
        return pages

    def free(self, pages: Sequence[int]) -> None:
        """Take pages back. Raises ValueError where more would be free than were allocated."""
        if self.available + len(pages) > self.pages:
            raise ValueError(f"cannot free {len(pages)} pages: {self.available} of {self.pages} are free already")
        self.available += len(pages)
        self._freed += pages


class RowLists:
    """A `PageTable` of lists: a row takes no more memory than it has pages."""

    def __init__(self, rows: int):
        self._rows: list[list[int]] = [[] for _ in range(rows)]
        self.counts = [0] * rows

    def append(self, row: int, pages: Sequence[int]) -> None:
        """Put pages behind those that the row has."""
        self._rows[row] += pages
        self.counts[row] += len(pages)

    def replace(self, row: int, start: int, pages: Sequence[int]) -> None:
        """Put pages in the place of those from entry `start` on. Raises ValueError where the row has fewer."""
        if start + len(pages) > self.counts[row]:
            raise ValueError(f"row {row} has {self.counts[row]} pages: {start + len(pages)} cannot be replaced")
        self._rows[row][start : start + len(pages)] = pages

    def pages(self, row: int) -> list[int]:
        """The pages of a row."""
        return self._rows[row][:]

    def clear(self, row: int) -> list[int]:
        """Empty a row. Returns the pages that it had."""
        pages, self._rows[row], self.counts[row] = self._rows[row], [], 0
        return pages


class TraceMemory(PrefixMemory):
    """A `PrefixMemory` for traces: small however long a request may be, and several times as fast."""

    def __init__(self, rows: int, max_len: int, page_size: int, pages: int):
        super().__init__(rows, 1, page_size, pages)  # a table as small as can be: it is replaced
        self.max_len = min(max_len, pages * page_size)
        self.allocator = PageStack(pages)
        self.table = RowLists(rows)
