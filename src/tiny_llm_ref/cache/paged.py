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
        if not 0 <= n <= len(self._free):
            raise ValueError(f"cannot allocate {n} pages: {len(self._free)} are free")
        pages = self._free[: -n - 1 : -1]
        del self._free[len(self._free) - n :]
        self._taken.update(pages)
        return pages

    def free(self, pages: Sequence[int]) -> None:
        """Take `pages` back.

        Raises ValueError, and takes none back, for a page that is not allocated (freed before, or never a page of this
        allocator), and for one that is named twice. The message names the page.
        """
        back = set(pages)
        if len(back) < len(pages) or not back <= self._taken:
            page = next(page for i, page in enumerate(pages) if page not in self._taken or page in pages[:i])
            raise ValueError(f"page {page} cannot be freed: it is not allocated, or named twice")
        self._taken -= back
        self._free += pages


class PageTable:
    """One row of page numbers per request: entry i holds positions i * page_size .. (i + 1) * page_size - 1.

    dummy_page: the page of positions that nobody reads. Each entry without a page of its own points there.
    entries: (rows + 1, ceil(max_len / page_size)) int32. Its last row, `dummy_row`, belongs to the request that pads a
    batch: it has the dummy page for every position.
    counts: pages in each row, rows + 1 of them; all entries of the dummy row count.
    """

    def __init__(self, rows: int, max_len: int, page_size: int, dummy_page: int):
        columns = -(-max_len // page_size)
        self.page_size = page_size
        self.dummy_page = dummy_page
        self.dummy_row = rows
        self.entries = np.full((rows + 1, columns), dummy_page, np.int32)
        self.counts = [0] * rows + [columns]

    def append(self, row: int, pages: Sequence[int]) -> None:
        """Put `pages` behind those that the row has.

        Raises ValueError, and changes nothing, where they are more than its entries.
        """
        count = self.counts[row]
        end = count + len(pages)
        if end > self.entries.shape[1]:
            raise ValueError(f"row {row} has {count} of {self.entries.shape[1]} pages: {len(pages)} more do not fit")
        self.entries[row, count:end] = pages
        self.counts[row] = end

    def replace(self, row: int, start: int, pages: Sequence[int]) -> None:
        """Put `pages` in the place of those from entry `start` on: other pages with equal content.

        Raises ValueError, and changes nothing, where the row does not have that many.
        """
        end = start + len(pages)
        if not 0 <= start <= end <= self.counts[row]:
            raise ValueError(f"row {row} has {self.counts[row]} pages: entries {start} .. {end - 1} cannot be replaced")
        self.entries[row, start:end] = pages

    def pages(self, row: int) -> list[int]:
        """The pages of a row, in the order of their positions."""
        return self.entries[row, : self.counts[row]].tolist()

    def clear(self, row: int) -> list[int]:
        """Empty a row, so that no later request finds pages of this one. Returns the pages that it had."""
        pages = self.pages(row)
        self.entries[row] = self.dummy_page
        self.counts[row] = 0
        return pages

    def slots(self, row: int, start: int, end: int) -> np.ndarray:
        """Where positions start .. end - 1 of a row are: slot = page * page_size + position in the page.

        Returns (end - start,) int32. Raises ValueError for positions that the row has no page for.
        """
        held = self.counts[row] * self.page_size
        if not 0 <= start <= end <= held:
            raise ValueError(f"row {row} has pages for {held} positions, not for {start} .. {end - 1}")
        positions = np.arange(start, end, dtype=np.int32)
        return self.entries[row, positions // self.page_size] * self.page_size + positions % self.page_size
