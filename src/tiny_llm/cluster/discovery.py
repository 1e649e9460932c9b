# This file is yours to edit. Read book/src/week4-03-distributed-runtime.md.
"""Who exists: keys that live as long as the lease of their process, and those who want to know (after etcd).

Plain state: time comes with each call, and nothing waits. Knows paths; not what is registered there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from .transport import Json

T = TypeVar("T")


class LeaseError(RuntimeError):
    """The lease has expired, was revoked, or never was."""


# ANCHOR: change
class Change(NamedTuple, Generic[T]):
    """What happened to a key: it now has a value, or, with None, it is gone."""

    key: str
    value: T | None

    # ANCHOR_END: change


def covers(prefix: str, key: str) -> bool:
    """Whether a key is the prefix or lies below it: `work` covers `work/1`, not `worker/1`; an empty one covers all."""
    raise NotImplementedError("Week 4 Day 3 Task 1: covers - see book/src/week4-03-distributed-runtime.md#task-1")


# ANCHOR: lease
@dataclass
class Watch:
    """Somebody who wants to know what changes below a prefix, in order."""

    prefix: str
    tell: Callable[[Change[Json]], object] = field(repr=False)


@dataclass
class Lease:
    """When it ends unless it is renewed, in ns, and what ends with it."""

    deadline: int
    keys: dict[str, None] = field(default_factory=dict)
    # ANCHOR_END: lease


# ANCHOR: registry
class Registry:
    """Keys, leases and watches.

    ttl: ns that a lease lives after it was granted or renewed. numbers: of leases and watches. No id comes twice, so a
    process that comes back is another one.
    """

    def __init__(self, ttl: int):
        self.ttl = ttl
        self.leases: dict[int, Lease] = {}
        self.values: dict[str, Json] = {}
        self.watches: dict[int, Watch] = {}
        self.numbers = count(1)
        # ANCHOR_END: registry

    def grant(self, now: int) -> int:
        """A new lease, which lives for `ttl`. Returns its id, which was never used before."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 1: Registry.grant - see book/src/week4-03-distributed-runtime.md#task-1"
        )

    def renew(self, lease: int, now: int) -> None:
        """Let it live for another `ttl` from now. Raises LeaseError, with its id, where it is too late."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 1: Registry.renew - see book/src/week4-03-distributed-runtime.md#task-1"
        )

    def revoke(self, lease: int, now: int) -> None:
        """End it, and what it holds, now. Idempotent."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 1: Registry.revoke - see book/src/week4-03-distributed-runtime.md#task-1"
        )

    def put(self, lease: int, key: str, value: Json, now: int) -> None:
        """Set a key that ends with this lease, no more with the one that set it before, and tell of it.

        Raises LeaseError, with the id, without a lease that lives.
        """
        raise NotImplementedError(
            "Week 4 Day 3 Task 1: Registry.put - see book/src/week4-03-distributed-runtime.md#task-1"
        )

    def expire(self, now: int) -> None:
        """End the leases whose deadline has come, and what they hold; tell of each key."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 1: Registry.expire - see book/src/week4-03-distributed-runtime.md#task-1"
        )

    # ANCHOR: queries
    def get(self, prefix: str, now: int) -> dict[str, Json]:
        """What lies at a prefix and below, by key."""
        self.expire(now)
        return {key: value for key, value in self.values.items() if covers(prefix, key)}

    def watch(self, prefix: str, tell: Callable[[Change[Json]], object], now: int) -> tuple[int, dict[str, Json]]:
        """Be told of each change from now on.

        Returns the watch's id, and what there is now.
        """
        snapshot = self.get(prefix, now)
        number = next(self.numbers)
        self.watches[number] = Watch(prefix, tell)
        return number, snapshot

    def unwatch(self, number: int) -> None:
        """End a watch. Idempotent."""
        self.watches.pop(number, None)

    def tell(self, change: Change[Json]) -> None:
        """Tell those who watch its key."""
        for watch in list(self.watches.values()):
            if covers(watch.prefix, change.key):
                watch.tell(change)
                # ANCHOR_END: queries

    def next_deadline(self) -> int | None:
        """When the next lease ends, unless it is renewed."""
        return min((lease.deadline for lease in self.leases.values()), default=None)


class View(Generic[T]):
    """What a watcher believes: entries by key, as the registry has told.

    parse: makes an entry of a value, or raises ValueError. Such a value changes nothing: an entry keeps its old one.
    """

    def __init__(self, parse: Callable[[Json], T]):
        self.parse = parse
        self.entries: dict[str, T] = {}

    def apply(self, change: Change[Json]) -> list[Change[T]]:
        """Take a change. Returns what it changes here: one change, or none."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 1: View.apply - see book/src/week4-03-distributed-runtime.md#task-1"
        )

    def resync(self, snapshot: Mapping[str, Json]) -> list[Change[T]]:
        """Take all that there is, after changes may have been missed. Returns the difference, what is gone first."""
        raise NotImplementedError(
            "Week 4 Day 3 Task 1: View.resync - see book/src/week4-03-distributed-runtime.md#task-1"
        )
