# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 3 in a third style: pages in sets and deques, slots that wrap around the pool, writes by slices."""

# file: cache/paged.py
from collections import deque


class PageAllocator(PageAllocator):
    """First freed, first given."""

    def __init__(self, pages: int):
        self.pages = pages
        self.queue = deque(range(pages))

    @property
    def available(self) -> int:
        """Length of the queue."""
        return len(self.queue)

    def allocate(self, n: int) -> list[int]:
        """From the left."""
        if not 0 <= n <= self.available:
            raise ValueError(f"{n} of {self.available} pages")
        return [self.queue.popleft() for _ in range(n)]

    def free(self, pages: Sequence[int]) -> None:
        """A set of what must not come back."""
        refused = set(self.queue)
        for page in pages:
            if page in refused or page < 0 or page >= self.pages:
                raise ValueError(f"page {page} is not with anybody")
            refused.add(page)
        self.queue.extend(pages)


class PageTable(PageTable):
    """Lists of pages; the entries are filled again after each change."""

    def __init__(self, rows: int, max_len: int, page_size: int, dummy_page: int):
        self.page_size, self.dummy_page, self.dummy_row = page_size, dummy_page, rows
        columns = (max_len + page_size - 1) // page_size
        self.entries = np.tile(np.array([dummy_page], np.int32), (rows + 1, columns))
        self.lists = [[] for _ in range(rows)] + [[dummy_page] * columns]

    @property
    def counts(self) -> list[int]:
        """Lengths of the lists."""
        return [len(pages) for pages in self.lists]

    def _set(self, row: int, pages: list[int]) -> None:
        columns = self.entries.shape[1]
        if len(pages) > columns:
            raise ValueError(f"{len(pages)} pages in a row of {columns}")
        self.lists[row] = pages
        self.entries[row] = pages + [self.dummy_page] * (columns - len(pages))

    def append(self, row: int, pages: Sequence[int]) -> None:
        """A longer list."""
        self._set(row, self.lists[row] + list(pages))

    def replace(self, row: int, start: int, pages: Sequence[int]) -> None:
        """Another list of the same length."""
        old = self.lists[row]
        new = old[: max(start, 0)] + list(pages) + old[start + len(pages) :]
        if start < 0 or len(new) != len(old):
            raise ValueError(f"row {row} has {len(old)} pages, not {start + len(pages)}")
        self._set(row, new)

    def clear(self, row: int) -> list[int]:
        """An empty list."""
        pages = self.lists[row]
        self._set(row, [])
        return pages

    def slots(self, row: int, start: int, end: int) -> np.ndarray:
        """Position by position."""
        if not 0 <= start <= end or end > len(self.lists[row]) * self.page_size:
            raise ValueError(f"positions {start} .. {end} of row {row} are not all there")
        split = (divmod(position, self.page_size) for position in range(start, end))
        return np.array([self.lists[row][i] * self.page_size + place for i, place in split], np.int32)


# file: cache/pool.py
def _write(self: PagePool, layer: int, k: mx.array, v: mx.array, slots: np.ndarray) -> None:
    slots = mx.array(slots)[:, None]
    where = slots // self.page_size, mx.arange(k.shape[1])[None], slots % self.page_size
    self.keys[layer][where], self.values[layer][where] = k, v


def _gather(self: PagePool, layer: int, pages: Sequence[int], length: int) -> tuple[mx.array, mx.array]:
    slots = mx.array([pages[p // self.page_size] * self.page_size + p % self.page_size for p in range(length)])
    page, place = slots // self.page_size, slots % self.page_size
    keys, values = self.keys[layer][page, :, place], self.values[layer][page, :, place]
    return keys.swapaxes(0, 1)[None], values.swapaxes(0, 1)[None]


PagePool.write, PagePool.gather = _write, _gather


def page_bytes(config: ModelConfig, page_size: int, dtype: mx.Dtype) -> int:
    """Of the pool's own arrays."""
    pool = PagePool(config, 0, page_size, dtype)
    return sum(x.nbytes for x in pool.keys + pool.values)


def pages_that_fit(memory: int, config: ModelConfig, page_size: int, dtype: mx.Dtype) -> int:
    """Divide, and look at the rest."""
    size = page_bytes(config, page_size, dtype)
    all_pages, _ = divmod(memory, size)
    if all_pages <= 1:
        raise ValueError(f"{memory} bytes do not hold two pages of {size} bytes")
    return all_pages - 1


# file: serving/paged_memory.py
def _open(self: PagedMemory, request: Request, prefix: Prefix) -> None:
    taken = request.row is not None
    if taken or len(self._rows) < 1:
        raise ValueError(f"no row for request {request.uid}")
    request.row, request.cached_len = self._rows.pop(), prefix.tokens
    self.table.append(request.row, prefix.pages)


def _grow(self: PagedMemory, request: Request, length: int) -> None:
    if request.row is None or self.max_len < length:
        raise ValueError(f"{length} positions for request {request.uid} in row {request.row}")
    start = self.held(request) * self.page_size
    more = len(range(start, length, self.page_size))
    if self.available < more:
        raise OutOfPagesError(f"{more} pages, and {self.available} are available")
    lacking = more - self.allocator.available
    if lacking > 0:
        self.evict(lacking)
    self.table.append(request.row, self.allocator.allocate(more))


def _release(self: PagedMemory, request: Request, keep: int = 0) -> None:
    if request.row is None:
        raise ValueError(f"request {request.uid} was released")
    pages = self.table.clear(request.row)
    del pages[:keep]
    self.allocator.free(pages)
    self._rows.append(request.row)
    request.row = None


PagedMemory.open, PagedMemory.grow, PagedMemory.release = _open, _grow, _release


# file: serving/padding.py
def padded(batch: Batch, row: int, ladder: tuple[int, ...] = LADDER) -> Batch:
    """Recursion: one dummy step at a time."""
    n = len(batch.steps)
    if n in ladder or n > ladder[-1] or batch.tokens != n:
        return batch
    nobody = Request(-1, [0, 0], 2)
    nobody.row = row
    return padded(Batch((*batch.steps, nobody.launch(1))), row, ladder)
