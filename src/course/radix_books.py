"""A prefix cache as a set of prefixes, and what a radix tree did held against it.

Knows neither nodes nor splits: one page for each cached prefix, when it was last asked for, and the locks.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise

from course.page_books import fail_unless
from course.radix_case import Op

Path = tuple[Hashable, ...]
"""The keys of a prefix."""


class PrefixBooks:
    """A prefix cache as a set of prefixes. `path` of a node is the prefix that it ends."""

    def __init__(self) -> None:
        self.pages: dict[Path, int] = {}
        self.times: dict[Path, int] = {}
        self.locks: list[Path] = []
        self.time = 0

    def walk(self, keys: Sequence[Hashable]) -> int:
        """Pages that are cached of a prefix, which have been asked for now."""
        self.time += 1
        length = 0
        while length < len(keys) and tuple(keys[: length + 1]) in self.pages:
            length += 1
            self.times[tuple(keys[:length])] = self.time
        return length

    def match(self, keys: Sequence[Hashable]) -> list[int]:
        length = self.walk(keys)
        return [self.pages[tuple(keys[:n])] for n in range(1, length + 1)]

    def insert(self, keys: Sequence[Hashable], pages: Sequence[int]) -> int:
        already = self.walk(keys)
        for n in range(already, len(keys)):
            prefix = tuple(keys[: n + 1])
            self.pages[prefix], self.times[prefix] = pages[n], self.time
        return already

    def locked(self, prefix: Path) -> int:
        """Locks that hold a prefix: on it, or on one that begins with it."""
        return sum(lock[: len(prefix)] == prefix for lock in self.locks)

    @property
    def evictable(self) -> int:
        return sum(not self.locked(prefix) for prefix in self.pages)

    def leaves(self) -> list[Path]:
        """Unlocked prefixes that no cached one goes on from, those first that were asked for longest ago."""
        inner = {prefix[:-1] for prefix in self.pages}
        ends = [prefix for prefix in self.pages if prefix not in inner and not self.locked(prefix)]
        return sorted(ends, key=self.times.__getitem__)

    def evict(self, pages: int) -> list[int]:
        if not 0 <= pages <= self.evictable:
            raise ValueError
        evicted = []
        for _ in range(pages):
            prefix = self.leaves()[0]
            evicted.append(self.pages.pop(prefix))
            del self.times[prefix]
        return evicted


def judge_tree(script: Sequence[Op], trace: Sequence[dict[str, object]]) -> None:
    """Raise AssertionError where a tree did anything else than books that are a set of prefixes."""
    books, paths = PrefixBooks(), {}
    for at, (op, did) in enumerate(zip(script, trace, strict=True)):
        call = f"operation {at + 1} of {[short(op) for op in script[: at + 1]]}"
        fail_unless(did["error"] is None, f"{call} raised {did['error']}")
        judge_op(call, books, paths, at, op, did)
        judge_nodes(call, books, did)


def short(op: Op) -> str:
    """An operation as a call."""
    return f"{op[0]}({', '.join(map(str, op[1:]))})"


def judge_op(call: str, books: PrefixBooks, paths: dict[int, Path], at: int, op: Op, did: dict[str, object]) -> None:
    """Judge what one operation gave, and do it in the books."""
    match op:
        case ["match", keys]:
            judge_match(call, did["value"], books.match(keys))
            paths[at] = tuple(keys[: len(did["value"])])
        case ["insert", keys, pages]:
            want = books.insert(keys, pages)
            got = did["value"]
            fail_unless(got == want, f"{call} returned that {got} pages were there already: expected {want}")
            paths[at] = tuple(keys)
        case ["lock", number]:
            books.locks.append(paths[number])
        case ["unlock", number]:
            books.locks.remove(paths[number])
        case ["evict", pages]:
            judge_evict(call, books, pages, did["value"])
    if op[0] in ("match", "insert"):
        got = tuple(did["path"])
        fail_unless(got == paths[at], f"{call} gave a node at the end of {list(got)}, expected {list(paths[at])}")


def judge_match(call: str, got: list[int], want: list[int]) -> None:
    """Say in which way matched pages are wrong."""
    if got == want:
        return
    likely = "these are the pages of another prefix"
    if got == want[::-1]:
        likely = "they stand in the wrong order: the root's come first"
    elif got == want[: len(got)]:
        likely = f"the match ends {len(want) - len(got)} pages too early"
    elif want == got[: len(want)]:
        likely = "it goes on behind the first key that differs"
    raise AssertionError(f"{call} matched pages {got}, expected {want}\n  likely mistake: {likely}")


def judge_evict(call: str, books: PrefixBooks, pages: int, got: list[int]) -> None:
    """Say which page should not have been evicted, and evict in the books."""
    where = {page: prefix for prefix, page in books.pages.items()}
    likely = ""
    if len(got) > pages:
        likely = "more than was asked for: of the last leaf only the end goes"
    elif len(got) < pages:
        likely = "too few: what becomes a leaf goes next"
    elif unknown := [page for page in got if page not in where]:
        likely = f"page {unknown[0]} is not cached at all"
    elif locked := [page for page in got if books.locked(where[page])]:
        likely = f"page {locked[0]} is locked: somebody reads it"
    elif inner := [page for page in got if _goes_on(where[page], books, got)]:
        likely = f"page {inner[0]} is an inner one: pages that stay go on from it"
    mru = books.leaves()[-1:]
    if not likely and mru and books.pages[mru[0]] in got:
        likely = "what was asked for last went first"
    want = books.evict(pages)
    fail_unless(
        sorted(got) == sorted(want),
        f"{call} evicted pages {sorted(got)}, expected {sorted(want)}\n"
        f"  likely mistake: {likely or 'another leaf had not been asked for longer'}",
    )


def _goes_on(prefix: Path, books: PrefixBooks, gone: list[int]) -> bool:
    return any(
        other[: len(prefix)] == prefix and len(other) > len(prefix) and page not in gone
        for other, page in books.pages.items()
    )


def judge_nodes(call: str, books: PrefixBooks, did: dict[str, object]) -> None:
    """The invariants of a tree, held against the books."""
    fail_unless(did["broken"] is None, f"after {call}: {did['broken']}")
    there: dict[Path, int] = {}
    for node in did["nodes"]:
        begin = len(node["path"]) - len(node["keys"])
        there |= {tuple(node["path"][: begin + n + 1]): page for n, page in enumerate(node["pages"])}
    if there != books.pages:
        extra, missing = (
            sorted(set(a.values()) - set(b.values())) for a, b in ((there, books.pages), (books.pages, there))
        )
        raise AssertionError(
            f"after {call}: the tree holds pages {extra} that should not be there, and misses {missing}"
        )
    for node in did["nodes"]:
        locks = books.locked(tuple(node["path"]))
        fail_unless(
            node["locks"] == locks,
            f"after {call}: the node at the end of {node['path']} has ref_count {node['locks']}, expected {locks}: "
            "one for each lock on it or on a node below it",
        )
    want = books.evictable, len(books.pages) - books.evictable
    got = did["evictable"], did["protected"]
    fail_unless(got == want, f"after {call}: evictable, protected are {got}, expected {want}")
    judge_times(call, books, did["nodes"])


def judge_times(call: str, books: PrefixBooks, nodes: Sequence[dict[str, object]]) -> None:
    """The order of the nodes' times is that in which they were asked for; how far apart they are does not matter."""
    stamped: dict[int, int] = {}
    for node in nodes:
        path = node["path"]
        for end in range(len(path) - len(node["keys"]) + 1, len(path) + 1):
            time = stamped.setdefault(books.times[tuple(path[:end])], node["time"])
            fail_unless(
                time == node["time"],
                f"after {call}: the node at the end of {path} has time {node['time']}, and another, asked for by "
                f"the same walk has {time}: a walk stamps all that it matched, and nothing else",
            )
    order = [stamped[asked] for asked in sorted(stamped)]
    right = all(a < b for a, b in pairwise(order))
    fail_unless(right, f"after {call}: from the oldest to the newest, nodes have times {order}: they must increase")
