# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 5 in another style: eviction looks through the tree, without a heap; the hand-over goes page by page."""


# file: cache/radix.py
class RadixTree(RadixTree):
    """Counts what is evictable anew where it is simple to do so."""

    def walk(self, keys):
        """Compare by zip."""
        self.time += 1
        here, done = self.root, 0
        while True:
            rest = keys[done : done + 1]
            child = here.children.get(rest[0]) if rest else None
            if child is None:
                return here, done
            equal = 0
            for a, b in zip(child.keys, keys[done:], strict=False):
                if a != b:
                    break
                equal += 1
            here = child
            if equal < len(child.keys):
                here = self.split(child, equal)
            here.time = self.time
            done += equal

    def split(self, node, at):
        """Build the front from scratch."""
        if at < 1 or at >= len(node.keys):
            raise ValueError(f"{at} is not inside a node of {len(node.keys)}")
        front = Node(keys=[], pages=[], parent=node.parent, time=node.time)
        front.ref_count = node.ref_count
        for _ in range(at):
            front.keys.append(node.keys.pop(0))
            front.pages.append(node.pages.pop(0))
        node.parent.children.update({front.keys[0]: front})
        front.children = {node.keys[0]: node}
        node.parent = front
        return front

    def insert(self, keys, pages):
        """Count afterwards."""
        if len(pages) != len(keys):
            raise ValueError(f"{len(pages)} pages for {len(keys)} keys")
        node, there = self.walk(keys)
        new = [(key, page) for key, page in zip(keys, pages, strict=True)][there:]
        if new:
            leaf = Node([key for key, _ in new], [page for _, page in new], parent=node)
            leaf.time = self.time
            node.children[keys[there]] = leaf
            self.evictable = self.evictable + len(new)
            node = leaf
        return there, node

    def _path(self, node):
        while node is not self.root:
            yield node
            node = node.parent

    def lock(self, node):
        """Along the path."""
        for part in self._path(node):
            part.ref_count += 1
            if part.ref_count == 1:
                self.evictable, self.protected = self.evictable - len(part.pages), self.protected + len(part.pages)

    def unlock(self, node):
        """Along the path, checked first."""
        if any(part.ref_count < 1 for part in self._path(node)):
            raise ValueError("not locked")
        for part in self._path(node):
            part.ref_count -= 1
            if part.ref_count == 0:
                self.evictable, self.protected = self.evictable + len(part.pages), self.protected - len(part.pages)

    def _leaves(self):
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            if not node.children and node.ref_count == 0:
                yield node

    def evict(self, pages):
        """One page at a time, from a heap of all leaves made for each call."""
        if pages < 0 or pages > self.evictable:
            raise ValueError(f"{pages} of {self.evictable}")
        heap = [(node.time, n, node) for n, node in enumerate(self._leaves())]
        heapq.heapify(heap)
        gone = []
        while len(gone) < pages:
            _, n, leaf = heap[0]
            gone.append(leaf.pages.pop())
            first = leaf.keys[0]
            leaf.keys.pop()
            if not leaf.keys:
                heapq.heappop(heap)
                above = leaf.parent
                del above.children[first]
                if above is not self.root and not above.children and above.ref_count == 0:
                    heapq.heappush(heap, (above.time, n, above))
        self.evictable -= len(gone)
        return gone


# file: serving/prefix_memory.py
class PrefixMemory(PrefixMemory):
    """Page by page."""

    @property
    def available(self):
        """A sum."""
        return sum((self.allocator.available, self.tree.evictable))

    def match(self, request):
        """Of all keys but those of the last token."""
        usable = (len(request.ids) - 1) // self.page_size * self.page_size
        pages, node = self.tree.match(request.page_keys(self.page_size, usable))
        return Prefix(node=node, pages=tuple(pages), tokens=self.page_size * len(pages))

    def open(self, request, prefix):
        """Lock after the row is given."""
        PagedMemory.open(self, request, prefix)
        node = self.tree.root if prefix.node is None else prefix.node
        self.shared[request.row] = (node, len(prefix.pages))
        self.tree.lock(node)

    def evict(self, pages):
        """Page by page."""
        for _ in range(pages):
            self.allocator.free(self.tree.evict(1))

    def share(self, request):
        """Look at each page of the row."""
        node, _ = self.shared[request.row]
        tokens = min(len(request.ids) - 1, request.cached_len)
        keys = request.page_keys(self.page_size, tokens)
        row = self.table.pages(request.row)[: len(keys)]
        _, last = self.tree.insert(keys, row)
        doubles = []
        for i, page in enumerate(self.tree.pages(last)):
            if row[i] != page:
                doubles.append(row[i])
                self.table.replace(request.row, i, [page])
        self.allocator.free(doubles)
        self.tree.lock(last)
        self.tree.unlock(node)
        self.shared[request.row] = last, len(keys)

    def close(self, request):
        """As an end of sharing."""
        row = request.row
        if row is None:
            raise ValueError(f"{request.uid} has no row")
        self.share(request)
        node, count = self.shared[row]
        del self.shared[row]
        self.release(request, count)
        self.tree.unlock(node)
