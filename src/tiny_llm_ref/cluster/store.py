"""The master of an object store: which objects there are, where their replicas lie, and who may count on them.

It never sees data: clients move it, between `put_start` and `put_end`, and after `get`. After Mooncake Store (Qin et
al., 2025). The caller brings the time in ns with each call, and calls `tick` often.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from random import Random

from .placement import BestFree, Placement
from .segment_pool import SegmentPool
from .store_object import Entry, Grant, Put, StoreConfig, StoreError


class Master:
    """Objects by key, at most one of each; those used last come last.

    zombies: puts that were replaced or never ended, whose space nobody may use yet.
    """

    def __init__(self, rng: Random, config: StoreConfig | None = None, placement: Placement | None = None):
        self.config = config or StoreConfig()
        self.pool = SegmentPool(placement or BestFree(), rng)
        self.objects: OrderedDict[Hashable, Entry] = OrderedDict()
        self.zombies: list[Entry] = []
        self.beats: dict[str, int] = {}
        self._versions = 0

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

    def heartbeat(self, client: str, now: int) -> None:
        """A client lives."""
        if client in self.beats:
            self.beats[client] = now

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

        Evicts where space is short. Raises StoreError where the key exists, is being put, or space is missing still.
        """
        if (entry := self.objects.get(key)) is not None:
            if entry.complete or now - entry.started < self.config.discard:
                raise StoreError(f"key {key} {'exists' if entry.complete else 'is being put'}: objects never change")
            self.zombies.append(self.objects.pop(key))
        self._versions += 1
        pieces = self.pool.allocate(size, replicas, near)
        while pieces is None and self.pool.possible(size, replicas) and self._evict(size * replicas, now):
            pieces = self.pool.allocate(size, replicas, near)
        if pieces is None:
            free, capacity = self.pool.free, self.pool.capacity
            raise StoreError(f"{replicas} pieces of {size} bytes do not fit: {free} of {capacity} are free")
        put = Put(key, self._versions, pieces)
        self.objects[key] = Entry(put, now, soft, hard)
        return put

    def put_end(self, put: Put, now: int) -> None:
        """All replicas are written: who asks for the object gets it. Raises StoreError where the put was given up."""
        entry = self._processing(put)
        entry.complete = True
        self._use(entry, now)

    def put_revoke(self, put: Put) -> None:
        """The client gives up, and writes no more: the space is free at once. Raises StoreError as `put_end` does."""
        self._release(self._processing(put))
        del self.objects[put.key]

    def exists(self, key: Hashable, now: int) -> bool:
        """Whether a get would find the object."""
        entry = self.objects.get(key)
        if entry is None or not entry.complete:
            return False
        if self.config.lease_on_exists:
            entry.leased = max(entry.leased, now + self.config.lease)
        return True

    def get(self, key: Hashable, now: int) -> Grant | None:
        """Where to read the object, and a lease; None where there is none, or not yet."""
        entry = self.objects.get(key)
        if entry is None or not entry.complete:
            return None
        entry.leased = max(entry.leased, now + self.config.lease)
        self._use(entry, now)
        return Grant(key, entry.put.version, entry.put.replicas, entry.leased)

    def remove(self, key: Hashable, now: int) -> None:
        """Drop an object. Raises StoreError where there is none, its put has not ended, or somebody may read it."""
        entry = self.objects.get(key)
        if entry is None or not entry.complete or entry.leased >= now:
            state = "unknown" if entry is None else "leased" if entry.complete else "being put"
            raise StoreError(f"key {key} is {state}: it cannot be removed")
        self._release(self.objects.pop(key))

    def tick(self, now: int) -> None:
        """Drop segments of silent clients, use the space of old zombies again, and evict where too much is in use."""
        for client in [client for client, beat in self.beats.items() if now - beat > self.config.heartbeat]:
            del self.beats[client]
            for name in self.pool.of(client):
                self.unmount(name)
        for key in [key for key, entry in self.objects.items() if not entry.complete and self._old(entry, now)]:
            self._release(self.objects.pop(key))
        for entry in [entry for entry in self.zombies if self._old(entry, now)]:
            self.zombies.remove(entry)
            self._release(entry)
        if self.pool.capacity - self.pool.free > self.config.high * self.pool.capacity:
            self._evict(0, now)

    def _old(self, entry: Entry, now: int) -> bool:
        return now - entry.started >= self.config.release

    def _processing(self, put: Put) -> Entry:
        entry = self.objects.get(put.key)
        if entry is None or entry.put.version != put.version or entry.complete:
            raise StoreError(f"put {put.version} of key {put.key} is not under way: it ended, or was given up")
        return entry

    def _use(self, entry: Entry, now: int) -> None:
        self.objects.move_to_end(entry.put.key)
        if entry.soft_pinned:
            entry.soft = now + self.config.soft_pin

    def _release(self, entry: Entry) -> None:
        self.pool.release(entry.put.replicas)

    def _evictable(self, now: int) -> Iterator[Hashable]:
        """Keys in the order in which they may go: least recently used first, soft pins after all others."""
        ready = [(key, e) for key, e in self.objects.items() if e.complete and not e.hard and e.leased < now]
        yield from [key for key, entry in ready if entry.soft < now]
        yield from [key for key, entry in ready if entry.soft >= now]

    def _evict(self, least: int, now: int) -> int:
        """Evict until `share` of the capacity, and `least` bytes, are freed. Returns the bytes that were."""
        wanted, before = max(least, int(self.config.share * self.pool.capacity)), self.pool.free
        for key in self._evictable(now):
            if self.pool.free - before >= wanted:
                break
            self._release(self.objects.pop(key))
        return self.pool.free - before
