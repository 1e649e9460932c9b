"""What the master of an object store writes down, and what it tells its clients.

Knows keys, places and times in ns.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from .segment_pool import Replica

SECOND = 10**9


class StoreError(RuntimeError):
    """A request that the store refuses: another state, no space, a lease."""


class NoSpaceError(StoreError):
    """There is no space now: the same request may go well later."""


# ANCHOR: config
@dataclass(frozen=True)
class StoreConfig:
    """Times in ns; shares of the capacity.

    lease: how long who asked for an object may read it. soft_pin: from the last use. discard: age of a put that another
    may replace. release: age at which its space is used again: until then its client may still write there.
    heartbeat: silence of a client after which its segments are gone. high: share in use above which `share` is evicted.
    """

    lease: int = 10 * SECOND
    soft_pin: int = 1800 * SECOND
    discard: int = 30 * SECOND
    release: int = 600 * SECOND
    heartbeat: int = 10 * SECOND
    high: float = 0.9
    share: float = 0.05
    # ANCHOR_END: config


# ANCHOR: records
class Put(NamedTuple):
    """A put under way: write `replicas`, then `put_end`. version: no two puts share one."""

    key: Hashable
    version: int
    replicas: tuple[Replica, ...]


class Grant(NamedTuple):
    """What a get may read, and until when: a read that ends later may have read anything, and has failed."""

    key: Hashable
    version: int
    replicas: tuple[Replica, ...]
    until: int

    def holds(self, now: int) -> bool:
        """Whether a read that ends at `now` read the object."""
        return now <= self.until


@dataclass
class Entry:
    """An object. complete: whether its put has ended. leased, soft: until when it may not go; hard: it never may."""

    put: Put
    started: int
    soft_pinned: bool
    hard: bool
    complete: bool = False
    leased: int = -1
    soft: int = -1
    # ANCHOR_END: records
