"""A paged memory with a prefix cache, the plain way: a dict from a whole prefix to the page that ends it.

Follows the rules of `Memory` of the package under test, and needs of it the names of `serving.memory` only. So cases
about schedulers can share prefixes before the package can.
"""

import numpy as np

from course.solution import Solution

Prefix = tuple[object, ...]


class Table:
    """What a `HashRunner` reads through: entries (rows, pages of a row) of page numbers."""

    def __init__(self, rows: int, columns: int, dummy_page: int):
        self.dummy_page = dummy_page
        self.entries = np.full((rows, columns), dummy_page, np.int32)


class PrefixModel:
    """`rows` rows that share `pages` pages. Sequences of page keys that were computed are found again.

    cached: the page of each prefix, the one that was used longest ago first. locks: rows that hold the prefix.
    """

    def __init__(self, solution: Solution, rows: int, max_len: int, page_size: int, pages: int):
        self.names = solution.module("serving.memory")
        self.page_size, self.pages = page_size, pages
        self.max_len = min(max_len, pages * page_size)
        self.table = Table(rows, -(-self.max_len // page_size), pages)
        self.cached: dict[Prefix, int] = {}
        self.locks: dict[Prefix, int] = {}
        self._free = list(range(pages))
        self._rows = list(range(rows))
        self._pages: dict[int, list[int]] = {}
        self._shared: dict[int, list[Prefix]] = {}

    @property
    def free_rows(self) -> int:
        """Rows that no request has."""
        return len(self._rows)

    @property
    def available(self) -> int:
        """Pages that are free, or cached and not locked."""
        return len(self._free) + sum(self.locks[prefix] == 0 for prefix in self.cached)

    def match(self, request: object) -> object:
        """The longest cached prefix that leaves a token to run."""
        keys, pages = request.page_keys(self.page_size, len(request.ids) - 1), []
        for prefix in _prefixes(keys):
            if prefix not in self.cached:
                break
            pages.append(self.cached[prefix])
        return self.names.Prefix(len(pages) * self.page_size, tuple(pages), tuple(keys[: len(pages)]))

    def open(self, request: object, prefix: object) -> None:
        """Give it a row, and lock the prefix."""
        if request.row is not None or not self._rows:
            raise ValueError(f"request {request.uid} has row {request.row}; {len(self._rows)} rows are free")
        request.row, request.cached_len = self._rows.pop(), prefix.tokens
        self._pages[request.row], self._shared[request.row] = list(prefix.pages), []
        for known in _prefixes(prefix.node or ()):
            self._lock(request.row, known)
        self._write(request.row)

    def held(self, request: object) -> int:
        """Pages in its row."""
        return len(self._pages.get(request.row, ()))

    def grow(self, request: object, length: int) -> None:
        """Take free pages, evicting cached ones where they do not suffice."""
        more = max(-(-length // self.page_size) - self.held(request), 0)
        if more > self.available:
            raise self.names.OutOfPagesError(f"request {request.uid} needs {more} pages of {self.available}")
        while more > len(self._free):
            self._evict()
        self._pages[request.row] += [self._free.pop() for _ in range(more)]
        self._write(request.row)

    def share(self, request: object) -> None:
        """Cache its computed pages; a page that is cached already takes the place of its own."""
        row, tokens = request.row, min(request.cached_len, len(request.ids) - 1)
        for i, prefix in enumerate(_prefixes(request.page_keys(self.page_size, tokens))):
            if i < len(self._shared[row]):
                continue
            if prefix in self.cached:
                self._free.append(self._pages[row][i])
                self._pages[row][i] = self.cached[prefix]
            else:
                self.cached[prefix], self.locks[prefix] = self._pages[row][i], 0
            self._lock(row, prefix)
        self._write(row)

    def close(self, request: object) -> None:
        """Share what it has, then take back the rest."""
        if request.row is None:
            raise ValueError(f"request {request.uid} has no row: it was closed before")
        self.share(request)
        row, shared = request.row, self._shared.pop(request.row)
        for prefix in shared:
            self.locks[prefix] -= 1
        self._free += self._pages.pop(row)[len(shared) :]
        self.table.entries[row] = self.table.dummy_page
        self._rows.append(row)
        request.row = None

    def _evict(self) -> None:
        inner = {prefix[:-1] for prefix in self.cached}
        leaf = next(prefix for prefix in self.cached if not self.locks[prefix] and prefix not in inner)
        self._free.append(self.cached.pop(leaf))
        del self.locks[leaf]

    def _lock(self, row: int, prefix: Prefix) -> None:
        self.locks[prefix] += 1
        self._shared[row].append(prefix)
        self.cached[prefix] = self.cached.pop(prefix)  # now the last one used

    def _write(self, row: int) -> None:
        self.table.entries[row, : len(self._pages[row])] = self._pages[row]


def _prefixes(keys: tuple[object, ...] | list[object]) -> list[Prefix]:
    return [tuple(keys[: i + 1]) for i in range(len(keys))]
