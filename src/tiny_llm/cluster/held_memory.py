# This file is yours to edit. Read book/src/week4-05-disaggregation.md.
"""A memory that keeps pages for requests outside of any row: computed here for another worker, or to be filled by one.

Knows requests and pages; nothing of transfers. The scheduler above it sees a `Memory` as ever.

Each page has one owner: the allocator, the tree, a row, or a hold. A hold owns its pages behind the first `shared`,
and locks those in the tree.
"""

from dataclasses import dataclass

from ..cache.radix import Node
from ..serving.memory import Prefix, pages_for
from ..serving.prefix_memory import PrefixMemory
from ..serving.request import Request
from .trace_memory import TraceMemory


# ANCHOR: hold
@dataclass(eq=False)
class Hold:
    """Pages of a request outside of any row.

    node: where the tree has the first `shared` of them.
    tokens: positions that are filled, or will be.
    filled: whether they are: only then a row may begin with them.
    """

    node: Node
    shared: int
    pages: list[int]
    tokens: int
    filled: bool

    @property
    def own(self) -> list[int]:
        """Pages that nobody else has."""
        return self.pages[self.shared :]
        # ANCHOR_END: hold


class HeldMemory(PrefixMemory):
    """A `PrefixMemory` with holds.

    marked: requests whose pages are held at their end. holds: by request, the oldest first.
    """

    def __init__(self, rows: int, max_len: int, page_size: int, pages: int):
        super().__init__(rows, max_len, page_size, pages)
        # One page is set aside: schedulers count whole pages of a prefix, and a received one has a page more than that.
        self.max_len = min(self.max_len, (pages - 1) * page_size)
        self.marked: dict[Request, None] = {}
        self.holds: dict[Request, Hold] = {}
        self._spare = 0

    @property
    def available(self) -> int:
        """As before, and own pages of received prompts that have no row yet: others come first if none is left."""
        return super().available + self._spare

    @property
    def held_pages(self) -> int:
        """Pages that only holds own."""
        return sum(len(hold.own) for hold in self.holds.values())

    def close(self, request: Request) -> None:
        """As before; but a marked request that had all its tokens leaves its pages in a hold. Its row is free."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 3: HeldMemory.close - see book/src/week4-05-disaggregation.md#task-3"
        )

    def reserve(self, request: Request, spare: int = 0) -> bool:
        """Hold pages for its prompt, which will come from elsewhere, and for one token more.

        Returns False, and changes nothing, unless `spare` pages stay available without taking a received prompt's.
        """
        prefix, node = super().match(request), self.tree.root
        if isinstance(prefix.node, Node):
            node = prefix.node
        self.tree.lock(node)
        more = pages_for(request.prompt_len + 1, self.page_size) - len(prefix.pages)
        if more + spare > super().available:
            self.tree.unlock(node)
            return False
        if more > self.allocator.available:
            super().evict(more - self.allocator.available)
        pages = [*prefix.pages, *self.allocator.allocate(more)]
        self.holds[request] = Hold(node, len(prefix.pages), pages, request.prompt_len, filled=False)
        return True

    def missing(self, request: Request) -> list[int]:
        """Pages of a hold that another worker must fill."""
        hold = self.holds[request]
        return hold.pages[hold.shared : pages_for(hold.tokens, self.page_size)]

    def fill(self, request: Request, pages: int) -> None:
        """The first `pages` of those that were missing hold the prompt now. The others are free: compute them here."""
        hold = self.holds[request]
        filled = hold.shared + pages
        if filled * self.page_size < hold.tokens:
            hold.tokens = filled * self.page_size
            self.allocator.free(hold.pages[filled:])
            del hold.pages[filled:]
        hold.filled = True
        self._spare += len(hold.own)

    def let_go(self, request: Request) -> None:
        """Free a hold, once. Raises ValueError where there is none."""
        hold = self._pop(request)
        self.tree.unlock(hold.node)
        self.allocator.free(hold.own)

    def match(self, request: Request) -> Prefix:
        """What was received for it, else as before. The last token it has is left to run, as ever."""
        hold = self.holds.get(request)
        if hold is None or not hold.filled:
            return super().match(request)
        return Prefix(min(hold.tokens, len(request.ids) - 1), tuple(hold.pages), hold.node)

    def open(self, request: Request, prefix: Prefix) -> None:
        """As before; a received prompt becomes the row's, and its whole pages are shared."""
        hold = self.holds.get(request)
        if hold is None or not hold.filled:
            super().open(request, prefix)
            return
        super().open(request, Prefix(prefix.tokens, tuple(hold.pages[: hold.shared]), hold.node))
        self.table.append(request.row, hold.own)
        self.tree.unlock(self._pop(request).node)
        self.share(request)

    def evict(self, pages: int) -> None:
        """As before; where the tree has too few, received prompts without a row go there, the newest first."""
        wanted = self.allocator.available + pages
        while self.allocator.available + self.tree.evictable < wanted:
            self.relent()
        super().evict(max(wanted - self.allocator.available, 0))

    def relent(self) -> bool:
        """Give up the newest received prompt without a row. Returns whether there was one."""
        newest = next((request for request in reversed(self.holds) if self.holds[request].filled), None)
        if newest is not None:
            self.give_up(newest)
        return newest is not None

    def give_up(self, request: Request) -> None:
        """Let the tree have a received prompt's whole pages, and free the rest."""
        hold = self._pop(request)
        keys = request.page_keys(self.page_size, hold.tokens)
        already, _ = self.tree.insert(keys, hold.pages[: len(keys)])
        self.tree.unlock(hold.node)
        self.allocator.free(hold.pages[hold.shared : already] + hold.pages[len(keys) :])

    def _pop(self, request: Request) -> Hold:
        hold = self.holds.pop(request, None)
        if hold is None:
            raise ValueError(f"request {request.uid} has no pages outside of a row: they were freed before")
        if hold.filled:
            self._spare -= len(hold.own)
        return hold


class HeldTraceMemory(HeldMemory, TraceMemory):
    """The same for traces."""
