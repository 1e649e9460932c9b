"""A device whose memory is remembered slot by slot, so that whoever reads a wrong page or writes too late is seen."""

from collections.abc import Callable, Sequence
from typing import Protocol


class Allocator(Protocol):
    """Hands out pages. Its functions are replaced by ones that take notes."""

    allocate: Callable[[int], list[int]]
    free: Callable[[Sequence[int]], None]


class Memory(Protocol):
    """What has pages."""

    page_size: int
    allocator: Allocator


def prefix_values(ids: Sequence[int]) -> list[int]:
    """What the keys and values of each position hold: a number that all tokens up to it give."""
    values, value = [], 7
    for token in ids:
        value = (value * 1_000_003 + token + 1) % (1 << 61)
        values.append(value)
    return values


def heads_of(rank: int, ranks: int, kv_heads: int) -> list[int]:
    """The heads of a rank, by their definition: spread in order, each on as few ranks as possible."""
    return [head for head in range(kv_heads) if head * ranks // kv_heads == rank or rank * kv_heads // ranks == head]


class Device:
    """Pages of `size` positions on each of `ranks` ranks, each with its own heads.

    lives: how often each page was allocated; free: which pages are free; on_free: gets those that become free. Follows
    the page allocator of a memory from its creation.
    """

    def __init__(
        self, memory: Memory, pages: int, ranks: int, kv_heads: int, on_free: Callable[[Sequence[int]], object]
    ):
        self.size, self.ranks, self.kv_heads, self.on_free = memory.page_size, ranks, kv_heads, on_free
        self.lives = [0] * (pages + 1)
        self.free = dict.fromkeys(range(pages + 1))
        self.slots: dict[tuple[int, int, int, int], int] = {}
        self.follow(memory.allocator)

    def follow(self, allocator: Allocator) -> None:
        """See what the allocator hands out and takes back."""
        allocate, free = allocator.allocate, allocator.free

        def allocated(count: int) -> list[int]:
            pages = allocate(count)
            for page in pages:
                self.lives[page] += 1
                self.free.pop(page)
            return pages

        def freed(pages: Sequence[int]) -> None:
            free(pages)
            self.free.update(dict.fromkeys(pages))
            self.on_free(pages)

        allocator.allocate, allocator.free = allocated, freed

    def mark(self, pages: Sequence[int]) -> list[tuple[int, int]]:
        """Pages as they are now: each with how often it was allocated."""
        return [(page, self.lives[page]) for page in pages]

    def same(self, page: int, life: int) -> bool:
        """Whether a page still belongs to whom it belonged to when it was marked."""
        return page not in self.free and self.lives[page] == life

    def compute(self, row: Sequence[int], start: int, values: Sequence[int]) -> None:
        """A step writes its positions, on every rank."""
        for position, value in enumerate(values, start):
            page, slot = row[position // self.size], position % self.size
            for rank in range(self.ranks):
                for head in heads_of(rank, self.ranks, self.kv_heads):
                    self.slots[rank, page, head, slot] = value

    def copy(self, page: int, part, target: "Device", into: int) -> None:
        """Write what a page holds of a part's heads to a page of another device."""
        for head in range(part.first, part.first + part.heads):
            for slot in range(self.size):
                value = self.slots.get((part.source, page, head, slot))
                target.slots[part.target, into, head, slot] = value

    def wrong(self, row: Sequence[int], values: Sequence[int]) -> str | None:
        """The first place where a row does not hold these values, in words; None where it holds all."""
        for position, value in enumerate(values):
            page, slot = row[position // self.size], position % self.size
            for rank in range(self.ranks):
                for head in heads_of(rank, self.ranks, self.kv_heads):
                    if self.slots.get((rank, page, head, slot)) != value:
                        return f"position {position}, rank {rank}, head {head}"
        return None
