# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 5 in another style: functions on nodes, a search for the minimum, and a hand-over in slices of arrays."""


# file: cache/radix.py
def _common(a, b):
    """Equal keys at the begin of both."""
    n = min(len(a), len(b))
    return next((i for i in range(n) if a[i] != b[i]), n)


def _walk(self, keys):
    self.time, node, at = self.time + 1, self.root, 0
    while at < len(keys) and keys[at] in node.children:
        child = node.children[keys[at]]
        same = _common(child.keys, keys[at : at + len(child.keys)])
        node = self.split(child, same) if same != len(child.keys) else child
        node.time, at = self.time, at + same
    return node, at


def _split(self, node, at):
    if at not in range(1, len(node.keys)):
        raise ValueError(f"no split of {len(node.keys)} pages at {at}")
    above = node.parent
    front = Node(node.keys[:at], node.pages[:at], above, node.time, node.ref_count, {node.keys[at]: node})
    above.children[node.keys[0]] = front
    del node.keys[:at], node.pages[:at]
    node.parent = front
    return front


def _insert(self, keys, pages):
    keys, pages = tuple(keys), tuple(pages)
    if len(keys) - len(pages):
        raise ValueError(f"keys and pages differ: {len(keys)}, {len(pages)}")
    node, at = self.walk(keys)
    if keys[at:]:
        self.evictable += len(keys[at:])
        node.children[keys[at]] = Node([*keys[at:]], [*pages[at:]], node, self.time)
        node = node.children[keys[at]]
    return at, node


def _change(self, node, by):
    while node.parent:
        was, node.ref_count = node.ref_count, node.ref_count + by
        if not (was and node.ref_count):
            self.evictable -= by * len(node.pages)
            self.protected += by * len(node.pages)
        node = node.parent


def _unlock(self, node):
    if node.ref_count <= 0:
        raise ValueError("nobody holds this node")
    _change(self, node, -1)


def _evict(self, pages):
    if pages not in range(self.evictable + 1):
        raise ValueError(f"{pages} pages are more than {self.evictable}, or fewer than none")
    gone = []
    while pages > len(gone):
        level, leaves = [self.root], []
        while level:
            leaves += [n for n in level if not n.children and not n.ref_count]
            level = [child for n in level for child in n.children.values()]
        leaf = min(leaves, key=lambda n: n.time)
        take = min(len(leaf.pages), pages - len(gone))
        gone += leaf.pages[len(leaf.pages) - take :]
        first = leaf.keys[0]
        del leaf.keys[len(leaf.keys) - take :], leaf.pages[len(leaf.pages) - take :]
        if not leaf.keys:
            leaf.parent.children.pop(first)
    self.evictable -= len(gone)
    return gone


RadixTree.walk, RadixTree.split, RadixTree.insert = _walk, _split, _insert
RadixTree.lock, RadixTree.unlock, RadixTree.evict = lambda self, node: _change(self, node, 1), _unlock, _evict


# file: serving/prefix_memory.py
class PrefixMemory(PrefixMemory):
    """The row as an array; the lock goes down before the old one goes up."""

    @property
    def available(self):
        """What could be free."""
        return self.tree.evictable + self.allocator.available

    def match(self, request):
        """Match all, and give up a last page that would leave nothing."""
        pages, node = self.tree.match(request.page_keys(self.page_size, len(request.ids)))
        if pages and len(pages) * self.page_size == len(request.ids):
            pages, node = self.tree.match(request.page_keys(self.page_size, len(request.ids))[: len(pages) - 1])
        return Prefix(len(pages) * self.page_size, tuple(pages), node)

    def open(self, request, prefix):
        """Refused opens change nothing, since the row comes first."""
        PagedMemory.open(self, request, prefix)
        self.shared[request.row] = prefix.node or self.tree.root, len(prefix.pages)
        self.tree.lock(self.shared[request.row][0])

    def evict(self, pages):
        """In one go."""
        evicted = self.tree.evict(pages)
        self.allocator.free(evicted)

    def share(self, request):
        """Positions of committed steps."""
        row, (old, kept) = request.row, self.shared[request.row]
        known = max(min(len(request.ids) - 1, request.cached_len), kept * self.page_size)
        keys = request.page_keys(self.page_size, known)
        mine = self.table.entries[row, : len(keys)].tolist()
        already, node = self.tree.insert(keys, mine)
        self.table.replace(row, kept, self.tree.pages(node)[kept:])
        self.tree.lock(node)
        self.tree.unlock(old)
        self.shared[row] = node, len(keys)
        self.allocator.free(mine[kept:already])

    def close(self, request):
        """The row's number is gone after the release."""
        if request.row not in self.shared:
            raise ValueError(f"request {request.uid} is not open")
        self.share(request)
        node, count = self.shared.pop(request.row)
        self.tree.unlock(node)
        self.release(request, count)
