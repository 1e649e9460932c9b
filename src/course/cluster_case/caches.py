"""The caches of workers by brute force, as sets of paths, and a channel that loses, doubles and reorders their events.

A path is the local hashes of a block and of all before it. Changes are plain lists: ["stored", path, locals], the
blocks `locals` one behind the other behind `path`; ["removed", paths]; ["cleared"]. Knows the public names of the
package under test. Workers name blocks as they like: no router may rely on how.
"""

from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from struct import pack

from course.solution import Solution

Path = tuple[int, ...]
Plain = list
"""One change."""
Held = dict[Path, None]
"""What a worker has, in the order in which it came."""


def chained(path: Sequence[int]) -> list[int]:
    """The sequence hash of each block of a path, from Dynamo's definition."""
    names: list[int] = []
    for local in path:
        data = pack("<QQ", names[-1], local) if names else b""
        salted = blake2b(data, digest_size=8, salt=(1337).to_bytes(8, "little"))
        names.append(int.from_bytes(salted.digest(), "little") if names else local)
    return names


def external(worker: int, path: Path) -> int:
    """What worker number `worker` calls the block at the end of `path`."""
    return int.from_bytes(blake2b(repr((worker, path)).encode(), digest_size=8).digest(), "little")


def score(held: Held, path: Sequence[int]) -> int:
    """The consecutive leading blocks of `path` that are held."""
    return next((i for i in range(len(path)) if tuple(path[: i + 1]) not in held), len(path))


def alter(held: Held, change: Plain) -> None:
    """Do a change by brute force."""
    if change[0] == "cleared":
        held.clear()
    elif change[0] == "removed":
        for path in change[1]:
            held.pop(tuple(path), None)
    else:
        path = tuple(change[1])
        for local in change[2]:
            path = (*path, local)
            held[path] = None


def random_change(rng: Random, held: Held, any_order: bool = True) -> Plain:
    """A change that a worker with these blocks may make.

    any_order: it may also evict a block before those that are behind it.
    """
    roll = rng.random()
    if roll < 0.03:
        return ["cleared"]
    if roll < 0.4 and held:
        paths = list(held)
        if not any_order:
            paths = [path for path in paths if not any(other[:-1] == path for other in paths)]
        return ["removed", rng.sample(paths, rng.randint(1, min(3, len(paths))))]
    start = rng.choice([(), *held])
    return ["stored", start, [rng.randint(1, 3) for _ in range(rng.randint(1, 3))]]


def everything(held: Held) -> list[Plain]:
    """Changes that give an empty index these blocks, parents first.

    A block that was evicted before those behind it is stored and removed again: they need its place.
    """
    every = dict.fromkeys(path[: i + 1] for path in held for i in range(len(path)))
    gone = [path for path in every if path not in held]
    return [["stored", path[:-1], [path[-1]]] for path in every] + ([["removed", gone]] if gone else [])


def change_of(solution: Solution, worker: int, plain: Plain):
    """A change as an object of the package under test, with this worker's names."""
    of = solution.module("cluster.indexer")
    if plain[0] == "cleared":
        return of.Cleared()
    if plain[0] == "removed":
        return of.Removed(tuple(external(worker, tuple(path)) for path in plain[1]))
    start = tuple(plain[1])
    ends = [(*start, *plain[2][: i + 1]) for i in range(len(plain[2]))]
    blocks = tuple(of.Block(external(worker, end), end[-1]) for end in ends)
    return of.Stored(external(worker, start) if start else None, blocks)


class NameSets:
    """An index that keeps no more than the names that each worker has: what `EventFeed` needs of one.

    applied: all changes that it took, as pairs of worker and what came or went.
    """

    def __init__(self) -> None:
        self.held: dict[int, dict[int, None]] = {}
        self.applied: list[tuple[int, object]] = []

    def add_worker(self, worker: int) -> None:
        """Know a worker."""
        self.held[worker] = {}

    def remove_worker(self, worker: int) -> None:
        """Forget a worker."""
        del self.held[worker]

    def apply(self, worker: int, change) -> bool:
        """As `PrefixIndex.apply`: False for blocks whose parent is not there."""
        held, kind = self.held[worker], type(change).__name__
        if kind == "Stored" and change.parent is not None and change.parent not in held:
            return False
        self.applied.append((worker, change))
        if kind == "Stored":
            held.update(dict.fromkeys(block.external for block in change.blocks))
        else:
            for name in change.blocks if kind == "Removed" else list(held):
                held.pop(name, None)
        return True


class Channel:
    """Workers whose caches change, and a router whose questions, answers and events are lost, doubled and reordered.

    Until `settle`: then all that is sent arrives, once. index: what the router feeds. questions: how many it asked.
    """

    def __init__(self, solution: Solution, index: object, workers: int, capacity: int, seed: int):
        self.solution, self.rng, self.lossy = solution, Random(seed), True
        events = solution.module("cluster.events")
        self.feed = events.EventFeed(index)
        self.caches: dict[int, Held] = {worker: {} for worker in range(workers)}
        self.logs = {worker: events.EventLog(capacity, lambda w=worker: self.dump(w)) for worker in self.caches}
        for worker in self.logs:
            self.feed.add_worker(worker)
        self.flying: list[tuple] = []
        self.questions = 0

    def dump(self, worker: int) -> list:
        """All blocks of a worker."""
        return [change_of(self.solution, worker, plain) for plain in everything(self.caches[worker])]

    def change(self, worker: int, plain: Plain) -> None:
        """A cache changes, and its worker tells it."""
        alter(self.caches[worker], plain)
        self.send("event", worker, self.logs[worker].publish(change_of(self.solution, worker, plain)))

    def send(self, kind: str, worker: int, what: object) -> None:
        """Put a message on its way, or lose it, or double it."""
        self.flying += [(kind, worker, what)] * (self.rng.choice([0, 1, 1, 1, 2]) if self.lossy else 1)

    def deliver(self) -> None:
        """Any message that is on its way arrives."""
        kind, worker, what = self.flying.pop(self.rng.randrange(len(self.flying)))
        if kind == "question":
            if worker in self.logs:
                self.send("answer", worker, self.logs[worker].answer(what))
        else:
            take = self.feed.receive if kind == "event" else self.feed.recover
            self.ask(worker, take(worker, what))

    def ask(self, worker: int, question: object) -> None:
        """Send the router's question, if it has one."""
        if question is not None:
            self.questions += 1
            self.send("question", worker, question)

    def leave(self, worker: int) -> None:
        """Discovery loses a worker. What it sent may still arrive."""
        self.feed.remove_worker(worker)
        del self.logs[worker], self.caches[worker]

    def settle(self, most: int) -> bool:
        """Nothing changes any more, nothing is lost; each worker tells its newest number, questions are repeated.

        Returns whether silence came before the router had asked `most` more questions.
        """
        self.lossy = False
        most += self.questions
        for _ in range(4):
            while self.flying and self.questions <= most:
                self.deliver()
            for worker, log in self.logs.items():
                self.ask(worker, self.feed.repeat(worker))
                self.ask(worker, self.feed.hear(worker, log.last))
        return not self.flying
