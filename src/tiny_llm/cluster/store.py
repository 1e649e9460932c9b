# This file is yours to edit. Read book/src/week4-06-moving-kv.md.
"""The master of an object store: which objects there are, where their replicas lie, and who may count on them.

It never sees data: clients move it, between `put_start` and `put_end`, and after `get`. After Mooncake Store (Qin et
al., 2025). The caller brings the time in ns with each call, and calls `tick` several times in each `heartbeat`.
"""

from collections import OrderedDict
from collections.abc import Hashable
from random import Random

from .segment_pool import SegmentPool
from .store_object import Entry, Grant, Put, StoreConfig, StoreError


# ANCHOR: master
class Master:
    """Objects by key, at most one of each; those used last come last.

    zombies: puts that were replaced before they ended: their space is not free yet. beats: when each client was last
    heard. ticked: the time of the last tick, None before the first.
    """

    def __init__(self, rng: Random, config: StoreConfig | None = None):
        self.config = config or StoreConfig()
        self.pool = SegmentPool(rng)
        self.objects: OrderedDict[Hashable, Entry] = OrderedDict()
        self.zombies: list[Entry] = []
        self.beats: dict[str, int] = {}
        self.versions = 0
        self.ticked: int | None = None
        # ANCHOR_END: master

    # ANCHOR: mount
    def mount(self, name: str, capacity: int, client: str, now: int) -> None:
        """A client lends a segment of `capacity` bytes. Raises ValueError for a name that is mounted."""
        self.pool.mount(name, capacity, client)
        self.beats[client] = now

    def unmount(self, name: str) -> None:
        """A segment is gone: so are its replicas, and objects and puts that had no other one. A lease is no help."""
        self.pool.unmount(name)
        for entry in [*self.objects.values(), *self.zombies]:
            kept = tuple(replica for replica in entry.put.replicas if replica.segment != name)
            entry.put = entry.put._replace(replicas=kept)
        self.zombies = [entry for entry in self.zombies if entry.put.replicas]
        for key in [key for key, entry in self.objects.items() if not entry.put.replicas]:
            del self.objects[key]
        # ANCHOR_END: mount

    def heartbeat(self, client: str, now: int) -> bool:
        """A client lives. Returns False where it is unknown, or was dropped: it has to mount its segments again."""
        raise NotImplementedError("Week 4 Day 6 Task 4: Master.heartbeat - see book/src/week4-06-moving-kv.md#task-4")

    def put_start(
        self,
        key: Hashable,
        size: int,
        now: int,
        replicas: int = 1,
        soft: bool = False,
        hard: bool = False,
        near: str | None = None,
    ) -> Put:
        """Space for an object: `replicas` pieces of `size` bytes in different segments. near: a segment to prefer.

        A put of the same key that is `discard` old and has not ended is replaced: it becomes a zombie. Evicts where
        space is short and evicting could help. Raises StoreError where the key exists or is being put, NoSpaceError
        where space is missing still.
        """
        raise NotImplementedError("Week 4 Day 6 Task 4: Master.put_start - see book/src/week4-06-moving-kv.md#task-4")

    def put_end(self, put: Put, now: int) -> None:
        """All replicas are written: who asks for the object gets it. Raises StoreError where the put was given up."""
        raise NotImplementedError("Week 4 Day 6 Task 4: Master.put_end - see book/src/week4-06-moving-kv.md#task-4")

    # ANCHOR: given
    def put_revoke(self, put: Put) -> None:
        """The client gives up, and writes no more: the space is free at once. Raises StoreError as `put_end` does."""
        self.pool.release(self.under_way(put).put.replicas)
        del self.objects[put.key]

    def under_way(self, put: Put) -> Entry:
        """The entry of a put that has not ended. Raises StoreError where it has, or was given up or replaced."""
        entry = self.objects.get(put.key)
        if entry is None or entry.put.version != put.version or entry.complete:
            raise StoreError(f"put {put.version} of key {put.key} is not under way: it ended, or was given up")
        return entry

    def use(self, entry: Entry, now: int) -> None:
        """An object was used: it comes last, and its soft pin begins anew."""
        self.objects.move_to_end(entry.put.key)
        if entry.soft_pinned:
            entry.soft = now + self.config.soft_pin

    def remove(self, key: Hashable, now: int) -> None:
        """Drop an object. Raises StoreError where there is none, its put has not ended, or somebody may read it."""
        entry = self.objects.get(key)
        if entry is None or not entry.complete or entry.leased >= now:
            state = "unknown" if entry is None else "leased" if entry.complete else "being put"
            raise StoreError(f"key {key} is {state}: it cannot be removed")
        self.pool.release(self.objects.pop(key).put.replicas)
        # ANCHOR_END: given

    def exists(self, key: Hashable) -> bool:
        """Whether a get would find the object. To ask is no use of it: who polls must not keep it for ever."""
        raise NotImplementedError("Week 4 Day 6 Task 4: Master.exists - see book/src/week4-06-moving-kv.md#task-4")

    def get(self, key: Hashable, now: int) -> Grant | None:
        """Where to read the object, and a lease; None where there is none, or not yet."""
        raise NotImplementedError("Week 4 Day 6 Task 4: Master.get - see book/src/week4-06-moving-kv.md#task-4")

    def evict(self, least: int, now: int) -> int:
        """Evict until `share` of the capacity, and `least` bytes, are freed. Returns the bytes that were.

        The least recently used go first, soft pins after all others; hard pins, leased objects and puts under way stay.
        """
        raise NotImplementedError("Week 4 Day 6 Task 4: Master.evict - see book/src/week4-06-moving-kv.md#task-4")

    def tick(self, now: int) -> None:
        """Drop the segments of silent clients, use the space of old puts again, and evict where too much is in use.

        Silence is longer than `heartbeat`. If the last tick is longer ago, it was the master that was away: nobody
        could be heard, and silence counts from now. Space of a put that is `release` old is free, zombie or not.
        """
        raise NotImplementedError("Week 4 Day 6 Task 4: Master.tick - see book/src/week4-06-moving-kv.md#task-4")
