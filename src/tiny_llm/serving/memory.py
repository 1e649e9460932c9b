"""What a scheduler may know of the memory for keys and values: counts of rows and pages, and who holds how many.

A scheduler only sees `Memory`; whether pages exist, are counted, or are shared with a prefix cache is not its business.
"""

from dataclasses import dataclass, field
from typing import Protocol

from .request import Request


class OutOfPagesError(RuntimeError):
    """Pages were asked for that nobody can give now."""


@dataclass(frozen=True)
class Prefix:
    """What is already in memory of a prompt: whole pages of its first `tokens` positions.

    node: where the prefix cache keeps them, None without one.
    """

    tokens: int = 0
    pages: tuple[int, ...] = ()
    node: object | None = field(default=None, compare=False)


# ANCHOR: memory
class Memory(Protocol):
    """Rows (one per admitted request) and pages of `page_size` positions.

    max_len: positions that the longest request may have.
    free_rows: requests that can still be admitted.
    """

    page_size: int
    max_len: int
    free_rows: int

    @property
    def available(self) -> int:
        """Pages that can be handed out now.

        Free ones, and those that can be evicted from a prefix cache.
        """
        ...

    def match(self, request: Request) -> Prefix:
        """The longest cached prefix of its ids, but at most all save one.

        Holds nothing.
        """
        ...

    def open(self, request: Request, prefix: Prefix) -> None:
        """Admit: give it a row that begins with `prefix`.

        Sets row and cached_len. The prefix can no longer be evicted.
        """
        ...

    def held(self, request: Request) -> int:
        """Pages in its row, those of its prefix included.

        0 for a request that is not admitted.
        """
        ...

    def grow(self, request: Request, length: int) -> None:
        """Give its row pages for `length` positions, evicting where needed.

        Raises OutOfPagesError, and changes nothing, where too few are available.
        """
        ...

    def share(self, request: Request) -> None:
        """Offer its computed whole pages to the prefix cache.

        Its row may then point to equal pages of others.
        """
        ...

    def close(self, request: Request) -> None:
        """Take everything back, the row included.

        What a prefix cache can use stays there, evictable.
        """
        ...

    # ANCHOR_END: memory


def pages_for(length: int, page_size: int) -> int:
    """Pages that hold `length` positions."""
    return -(-length // page_size)


class RowMemory:
    """Rows of `max_len` positions each, reserved in full from admission to the end: no page is ever missing.

    Counts only. With `pages` below rows * ceil(max_len / page_size) pages do run out, as in a `Memory` with real ones.
    """

    def __init__(self, rows: int, max_len: int, page_size: int = 1, pages: int | None = None):
        full = rows * pages_for(max_len, page_size)
        self.page_size = page_size
        self.pages = full if pages is None else pages
        self.max_len = min(max_len, self.pages * page_size)
        self.free_rows = rows
        self.available = self.pages
        self._free = list(range(rows - 1, -1, -1))
        self._held: dict[int, int] = {}

    def match(self, request: Request) -> Prefix:
        """Nothing: no row knows another."""
        return Prefix()

    def open(self, request: Request, prefix: Prefix) -> None:
        """Give it a row. Raises ValueError where it has one or none is free."""
        if request.row is not None or not self._free:
            raise ValueError(f"request {request.uid} has row {request.row}; {len(self._free)} rows are free")
        request.row = self._free.pop()
        request.cached_len = prefix.tokens
        self._held[request.row] = 0
        self.free_rows -= 1

    def held(self, request: Request) -> int:
        """Pages counted for it."""
        return self._held.get(request.row, 0)

    def grow(self, request: Request, length: int) -> None:
        """Count the pages for `length` positions."""
        more = max(pages_for(length, self.page_size) - self.held(request), 0)
        if more > self.available:
            raise OutOfPagesError(f"request {request.uid} needs {more} more pages, {self.available} are available")
        self._held[request.row] += more
        self.available -= more

    def share(self, request: Request) -> None:
        """Nothing is shared."""

    def close(self, request: Request) -> None:
        """Free its row. Raises ValueError where it has none: a row is freed once."""
        if request.row is None:
            raise ValueError(f"request {request.uid} has no row: it was closed before")
        self.available += self._held.pop(request.row)
        self._free.append(request.row)
        self.free_rows += 1
        request.row = None
