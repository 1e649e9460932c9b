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
        self.time += 1
        node, length = self.root, 0
        while length < len(keys) and (child := node.children.get(keys[length])) is not None:
            same = len(child.keys)
            if child.keys != keys[length : length + same]:  # seldom, and a comparison of lists is quick
                same = 1
                while same < min(len(child.keys), len(keys) - length) and child.keys[same] == keys[length + same]:
                    same += 1
            node = child if same == len(child.keys) else self.split(child, same)
            node.time = self.time
            length += same
        return node, length

    def split(self, node: Node, at: int) -> Node:
        """Put a new node with the first `at` pages of `node` above it; `node` itself keeps the rest.

        Locks keep their node, so they hold the rest as before, and the front with it. Returns the front.
        Raises ValueError unless 0 < at < pages of the node.
        """
        if not 0 < at < len(node.keys):
            raise ValueError(f"cannot split a node of {len(node.keys)} pages at {at}")
        front = Node(node.keys[:at], node.pages[:at], node.parent, node.time, node.ref_count)
        node.parent.children[front.keys[0]] = front
        node.keys, node.pages, node.parent = node.keys[at:], node.pages[at:], front
        front.children[node.keys[0]] = node
        return front

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
        if len(keys) != len(pages):
            raise ValueError(f"{len(keys)} keys need as many pages, not {len(pages)}")
        node, already = self.walk(keys)
        if already < len(keys):
            # Copies: the caller's row of pages goes on changing.
            leaf = Node(list(keys[already:]), list(pages[already:]), node, self.time)
            node.children[leaf.keys[0]] = leaf
            self.evictable += len(leaf.keys)
            self.offer(leaf)
            node = leaf
        return already, node

    def lock(self, node: Node) -> None:
        """Keep `node`, and so all above it, from eviction until `unlock`. Locks are counted."""
        while node.parent is not None:
            if node.ref_count == 0:
                self.evictable -= len(node.keys)
                self.protected += len(node.keys)
            node.ref_count += 1
            node = node.parent

    def unlock(self, node: Node) -> None:
        """Take one lock back. Raises ValueError, and changes nothing, where `node` has none."""
        if node.ref_count == 0:
            raise ValueError("this node is not locked: it was unlocked before, or never locked")
        while node.parent is not None:
            node.ref_count -= 1
            if node.ref_count == 0:
                self.evictable += len(node.keys)
                self.protected -= len(node.keys)
                self.offer(node)
            node = node.parent

    def evict(self, pages: int) -> list[int]:
        """Forget `pages` pages: always from the end of the unlocked leaf whose time is the oldest.

        Returns their numbers, exactly as many. Raises ValueError, and forgets nothing, for more than `evictable`.
        """
        if not 0 <= pages <= self.evictable:
            raise ValueError(f"cannot evict {pages} pages: {self.evictable} are evictable")
        evicted: list[int] = []
        while len(evicted) < pages:
            leaf = self.oldest()
            kept = max(len(leaf.keys) - (pages - len(evicted)), 0)
            evicted += leaf.pages[kept:]
            if kept:
                del leaf.keys[kept:], leaf.pages[kept:]
                self.offer(leaf)
            else:
                del leaf.parent.children[leaf.keys[0]]
                self.offer(leaf.parent)
        self.evictable -= pages
        return evicted

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
