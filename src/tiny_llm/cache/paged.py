# This file is yours to edit. Read book/src/week3-03-paged-kv.md.
"""Pages: which are free, and which of them hold the positions of a request (Kwon et al., PagedAttention, 2023).

Knows page numbers and counts, on the host; nothing of what a page holds, nor of requests.
"""

from collections.abc import Sequence

import numpy as np


class PageAllocator:
    """Which of the pages 0 .. pages - 1 are free. A page is with its owner from `allocate` to `free`."""

    def __init__(self, pages: int):
        self.pages = pages
        self._free = list(range(pages - 1, -1, -1))
        self._taken: set[int] = set()

    @property
    def available(self) -> int:
        """Pages that are free."""
        return len(self._free)

    def allocate(self, n: int) -> list[int]:
        """Take `n` different free pages, any of them. n may be 0.

        Returns their numbers. Raises ValueError, and takes none, where fewer are free, or n is negative.
        """
        raise NotImplementedError(
            "Week 3 Day 3 Task 1: PageAllocator.allocate - see book/src/week3-03-paged-kv.md#task-1"
        )

    def free(self, pages: Sequence[int]) -> None:
        """Take `pages` back.

        Raises ValueError, and takes none back, for a page that is not allocated (freed before, or never a page of this
        allocator), and for one that is named twice. The message names the page.
        """
        raise NotImplementedError("Week 3 Day 3 Task 1: PageAllocator.free - see book/src/week3-03-paged-kv.md#task-1")


class PageTable:
    """One row of page numbers per request: entry i holds positions i * page_size .. (i + 1) * page_size - 1.

    dummy_page: the page of positions that nobody reads. Each entry without a page of its own points there.
    entries: (rows + 1, ceil(max_len / page_size)) int32. Its last row, `dummy_row`, belongs to the request that pads a
    batch: it has the dummy page for every position.
    counts: pages in each row, rows + 1 of them; all entries of the dummy row count.
    """

    def __init__(self, rows: int, max_len: int, page_size: int, dummy_page: int):
        raise NotImplementedError("Week 3 Day 3 Task 2: PageTable.__init__ - see book/src/week3-03-paged-kv.md#task-2")

    def append(self, row: int, pages: Sequence[int]) -> None:
        """Put `pages` behind those that the row has.

        Raises ValueError, and changes nothing, where they are more than its entries.
        """
        raise NotImplementedError("Week 3 Day 3 Task 2: PageTable.append - see book/src/week3-03-paged-kv.md#task-2")

    def replace(self, row: int, start: int, pages: Sequence[int]) -> None:
        """Put `pages` in the place of those from entry `start` on: other pages with equal content.

        Raises ValueError, and changes nothing, where the row does not have that many.
        """
        raise NotImplementedError("Week 3 Day 3 Task 2: PageTable.replace - see book/src/week3-03-paged-kv.md#task-2")

    def pages(self, row: int) -> list[int]:
        """The pages of a row, in the order of their positions."""
        return self.entries[row, : self.counts[row]].tolist()

    def clear(self, row: int) -> list[int]:
        """Empty a row, so that no later request finds pages of this one. Returns the pages that it had."""
        raise NotImplementedError("Week 3 Day 3 Task 2: PageTable.clear - see book/src/week3-03-paged-kv.md#task-2")

    def slots(self, row: int, start: int, end: int) -> np.ndarray:
        """Where positions start .. end - 1 of a row are: slot = page * page_size + position in the page.

        Returns (end - start,) int32. Raises ValueError for positions that the row has no page for.
        """
        raise NotImplementedError("Week 3 Day 3 Task 2: PageTable.slots - see book/src/week3-03-paged-kv.md#task-2")
