# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 3 in another style: a bit per page, a loop over positions, einsum-free gathers by concatenation."""


# file: cache/paged.py
class PageAllocator(PageAllocator):
    """One flag per page; the lowest free pages go first."""

    def __init__(self, pages: int):
        self.pages = pages
        self.is_free = np.ones(pages, bool)

    @property
    def available(self) -> int:
        """Flags that are set."""
        return int(self.is_free.sum())

    def allocate(self, n: int) -> list[int]:
        """The first flags that are set."""
        if n < 0 or n > self.available:
            raise ValueError(f"{n} pages asked for, {self.available} are free")
        found = np.flatnonzero(self.is_free)[:n]
        self.is_free[found] = False
        return found.tolist()

    def free(self, pages: Sequence[int]) -> None:
        """Look at all, then set all."""
        named = set()
        for page in pages:
            if not 0 <= page < self.pages or self.is_free[page] or page in named:
                raise ValueError(f"page {page} is not one that can be freed")
            named.add(page)
        self.is_free[list(pages)] = True


class PageTable(PageTable):
    """Entries are written one by one."""

    def __init__(self, rows: int, max_len: int, page_size: int, dummy_page: int):
        self.page_size, self.dummy_page, self.dummy_row = page_size, dummy_page, rows
        columns = len(range(0, max_len, page_size))
        self.entries = np.empty((rows + 1, columns), dtype=np.int32)
        self.entries[...] = dummy_page
        self.counts = np.zeros(rows + 1, int)
        self.counts[rows] = columns

    def append(self, row: int, pages: Sequence[int]) -> None:
        """Refuse, then one by one."""
        if self.counts[row] + len(pages) > len(self.entries[row]):
            raise ValueError(f"{len(pages)} pages do not fit in row {row}")
        for page in pages:
            self.entries[row, self.counts[row]] = page
            self.counts[row] += 1

    def replace(self, row: int, start: int, pages: Sequence[int]) -> None:
        """One by one."""
        if start < 0 or start + len(pages) > self.counts[row]:
            raise ValueError(f"{len(pages)} pages from {start} on, and row {row} has {self.counts[row]}")
        for i, page in enumerate(pages):
            self.entries[row, start + i] = page

    def clear(self, row: int) -> list[int]:
        """From the last to the first."""
        pages = []
        while self.counts[row]:
            self.counts[row] -= 1
            pages.insert(0, int(self.entries[row, self.counts[row]]))
            self.entries[row, self.counts[row]] = self.dummy_page
        return pages

    def slots(self, row: int, start: int, end: int) -> np.ndarray:
        """All slots of the row, then a slice of them."""
        if start < 0 or end < start or end > self.counts[row] * self.page_size:
            raise ValueError(f"row {row} has no positions {start} .. {end}")
        first = self.entries[row, : self.counts[row]] * self.page_size
        return (first[:, None] + np.arange(self.page_size, dtype=np.int32)).reshape(-1)[start:end]


# file: cache/pool.py
def _write(self: PagePool, layer: int, k: mx.array, v: mx.array, slots: np.ndarray) -> None:
    pages, places = mx.array(slots // self.page_size), mx.array(slots % self.page_size)
    for pool, new in ((self.keys, k), (self.values, v)):
        pool[layer][pages, :, places] = new


def _gather(self: PagePool, layer: int, pages: Sequence[int], length: int) -> tuple[mx.array, mx.array]:
    count = (length + self.page_size - 1) // self.page_size
    both = []
    for pool in (self.keys[layer], self.values[layer]):
        joined = mx.concatenate([pool[page : page + 1] for page in pages[:count]], axis=2)
        both.append(joined[:, :, :length])
    return both[0], both[1]


PagePool.write, PagePool.gather = _write, _gather


def page_bytes(config: ModelConfig, page_size: int, dtype: mx.Dtype) -> int:
    """What a pool of one page, without a dummy, would take: by counting arrays."""
    array = config.num_key_value_heads * page_size * config.head_dim * dtype.size
    return sum(2 * array for _ in range(config.num_hidden_layers))


def pages_that_fit(memory: int, config: ModelConfig, page_size: int, dtype: mx.Dtype) -> int:
    """Subtract the dummy page first."""
    page = page_bytes(config, page_size, dtype)
    if memory < 2 * page:
        raise ValueError(f"{memory} bytes are less than two pages of {page}")
    return (memory - page) // page


# file: serving/paged_memory.py
class PagedMemory(PagedMemory):
    """Grows page by page, after the checks."""

    def open(self, request: Request, prefix: Prefix) -> None:
        """Refuse, or take the last free row."""
        if request.row is not None:
            raise ValueError(f"request {request.uid} is open in row {request.row}")
        if self.free_rows == 0:
            raise ValueError(f"no row is free for request {request.uid}")
        row = self._rows.pop(0)
        self.table.append(row, list(prefix.pages))
        request.row, request.cached_len = row, prefix.tokens

    def grow(self, request: Request, length: int) -> None:
        """One page at a time until they hold `length`."""
        if request.row is None:
            raise ValueError(f"request {request.uid} is not open")
        if length > self.max_len:
            raise ValueError(f"{length} positions: at most {self.max_len} fit")
        if pages_for(length, self.page_size) > self.held(request) + self.available:
            raise OutOfPagesError(f"no pages for {length} positions of request {request.uid}")
        missing = pages_for(length, self.page_size) - self.held(request)
        short = missing - self.allocator.available
        if short > 0:
            self.evict(short)
        while self.held(request) * self.page_size < length:
            self.table.append(request.row, self.allocator.allocate(1))

    def release(self, request: Request, keep: int = 0) -> None:
        """Page by page."""
        row, request.row = request.row, None
        if row is None:
            raise ValueError(f"request {request.uid} is not open (any more)")
        for i, page in enumerate(self.table.clear(row)):
            if i >= keep:
                self.allocator.free([page])
        self._rows.insert(0, row)


# file: serving/padding.py
def padded(batch: Batch, row: int, ladder: tuple[int, ...] = LADDER) -> Batch:
    """A request of its own for each lane."""
    n = len(batch.steps)
    fits = [size for size in ladder if size >= n]
    if not fits or any(step.end - step.start != 1 for step in batch.steps):
        return batch
    steps = list(batch.steps)
    while len(steps) < fits[0]:
        lane = Request(-1, [3], 5)
        lane.row = row
        steps.append(Step(lane, 0, 1, False))
    return Batch(tuple(steps))
