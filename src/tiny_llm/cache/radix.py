# This file is yours to edit. Read book/src/week3-05-prefix-cache.md.
"""A radix tree of cached pages: which prefixes are in memory, where, who uses them, and which go first.

Knows opaque keys, one for each page, and page numbers. All lengths are in pages. It owns no memory, and its clock is a
counter of walks. After SGLang's RadixAttention (Zheng et al., 2024) and Mini-SGLang's tree.
"""

import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field


# ANCHOR: node
@dataclass(eq=False)
class Node:
    """A stretch of pages that no cached prefix leaves in its middle.

    keys, pages: what identifies each page, and its number; equally many.
    children: by the first of their keys.
    ref_count: locks on this node or on one below it.
    time: the last walk that matched the whole node.
    """

    keys: list[Hashable]
    pages: list[int]
    parent: "Node | None" = field(default=None, repr=False)
    time: int = 0
    ref_count: int = 0
    children: dict[Hashable, "Node"] = field(default_factory=dict, repr=False)
    queued: bool = False
    """Whether the tree's heap of candidates for eviction names it."""
    # ANCHOR_END: node


class RadixTree:
    """Prefixes of page keys with their pages. The root is empty and always locked.

    evictable: pages in unlocked nodes. protected: pages in locked ones. time: walks so far.
    """

    def __init__(self) -> None:
        self.root = Node([], [], ref_count=1)
        self.evictable = 0
        self.protected = 0
        self.time = 0
        self._heap: list[tuple[int, int, Node]] = []

    def walk(self, keys: Sequence[Hashable]) -> tuple[Node, int]:
        """Follow `keys` from the root as far as they are cached. A node that matches in part is split.

        Each node on the way gets the time of this walk. The rest of a split node was not asked for, and keeps its own.
        Returns the last node, all of which matched, and the pages from the root to its end.
        """
        raise NotImplementedError("Week 3 Day 5 Task 1: RadixTree.walk - see book/src/week3-05-prefix-cache.md#task-1")

    def split(self, node: Node, at: int) -> Node:
        """Put a new node with the first `at` pages of `node` above it; `node` itself keeps the rest.

        Locks keep their node, so they hold the rest as before, and the front with it. Returns the front.
        Raises ValueError unless 0 < at < pages of the node.
        """
        raise NotImplementedError("Week 3 Day 5 Task 1: RadixTree.split - see book/src/week3-05-prefix-cache.md#task-1")

    def match(self, keys: Sequence[Hashable]) -> tuple[list[int], Node]:
        """The pages of the longest cached prefix of `keys`, and the node at its end. Locks nothing."""
        node, _ = self.walk(keys)
        return self.pages(node), node

    def pages(self, node: Node) -> list[int]:
        """All pages from the root to the end of `node`."""
        path = [node]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        return [page for part in reversed(path) for page in part.pages]

    def insert(self, keys: Sequence[Hashable], pages: Sequence[int]) -> tuple[int, Node]:
        """Take over those of `pages` whose prefix is not cached yet, as one new leaf that is not locked.

        Returns how many pages were there already, which the caller keeps, and the node at the end of `keys`.
        Raises ValueError, and changes nothing, unless there are as many pages as keys.
        """
        raise NotImplementedError(
            "Week 3 Day 5 Task 1: RadixTree.insert - see book/src/week3-05-prefix-cache.md#task-1"
        )

    def lock(self, node: Node) -> None:
        """Keep `node`, and so all above it, from eviction until `unlock`. Locks are counted."""
        raise NotImplementedError("Week 3 Day 5 Task 2: RadixTree.lock - see book/src/week3-05-prefix-cache.md#task-2")

    def unlock(self, node: Node) -> None:
        """Take one lock back. Raises ValueError, and changes nothing, where `node` has none."""
        raise NotImplementedError(
            "Week 3 Day 5 Task 2: RadixTree.unlock - see book/src/week3-05-prefix-cache.md#task-2"
        )

    def evict(self, pages: int) -> list[int]:
        """Forget `pages` pages: always from the end of the unlocked leaf whose time is the oldest.

        Returns their numbers, exactly as many. Raises ValueError, and forgets nothing, for more than `evictable`.
        """
        raise NotImplementedError("Week 3 Day 5 Task 2: RadixTree.evict - see book/src/week3-05-prefix-cache.md#task-2")

    # ANCHOR: heap
    def offer(self, node: Node) -> None:
        """Name `node` in the heap if it is an unlocked leaf.

        Once, so that the heap never outgrows the tree.
        """
        if not (node.ref_count or node.children or node.queued):
            heapq.heappush(self._heap, (node.time, id(node), node))
            node.queued = True

    def oldest(self) -> Node:
        """Take the unlocked leaf with the oldest time out of the heap.

        What the heap says may be out of date.
        """
        while self._heap:
            time, _, node = heapq.heappop(self._heap)
            node.queued = False
            if time == node.time and not (node.ref_count or node.children):
                return node
            self.offer(node)  # again with its new time, if it is a candidate at all
        raise LookupError("the heap names no unlocked leaf: was each one offered?")
        # ANCHOR_END: heap
