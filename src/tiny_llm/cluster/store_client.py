# This file is yours to edit. Read book/src/week4-06-moving-kv.md.
"""What a client of the store does around the bytes that it moves: leases are checked, and puts are tried again.

Knows keys, sizes in bytes and times in ns. It moves nothing: `read` and `write` begin a transfer, and whoever carries
it calls `done` at its end. The caller brings the time with each call.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable

from .store import Master
from .store_object import SECOND, Grant, Put, StoreError


# ANCHOR: reads
class Reads:
    """Gets of `keys`, at most `window` at a time.

    results: for each key that is done, whether it was read. False: there is none, or its lease ran out before its read
    ended, and the bytes may be another object's.
    """

    def __init__(self, master: Master, keys: Iterable[Hashable], read: Callable[[Grant], object], window: int = 4):
        self.master, self.read, self.window = master, read, window
        self.waiting = deque(dict.fromkeys(keys))
        self.reading: dict[Hashable, Grant] = {}
        self.results: dict[Hashable, bool] = {}
        # ANCHOR_END: reads

    def begin(self, now: int) -> None:
        """Begin as many reads as the window allows. A lease is asked for when its read begins, and not before."""
        raise NotImplementedError("Week 4 Day 6 Task 5: Reads.begin - see book/src/week4-06-moving-kv.md#task-5")

    def done(self, key: Hashable, now: int) -> None:
        """All bytes of an object have come: note whether in time, and begin the next."""
        raise NotImplementedError("Week 4 Day 6 Task 5: Reads.done - see book/src/week4-06-moving-kv.md#task-5")


# ANCHOR: writes
class Writes:
    """Puts, each tried up to `tries` times, `pause` ns apart, while the store has no space.

    results: for each key that is done, whether it is in the store.
    """

    def __init__(self, master: Master, write: Callable[[Put], object], pause: int = SECOND, tries: int = 10):
        self.master, self.write, self.pause, self.tries = master, write, pause, tries
        self.again: deque[tuple[int, Hashable, int, int]] = deque()  # time, key, size, number of the try
        self.results: dict[Hashable, bool] = {}

    def next_time(self) -> int | None:
        """When to try again, in ns; None where nothing waits."""
        return self.again[0][0] if self.again else None

    def done(self, put: Put, now: int) -> None:
        """All bytes of an object are written."""
        try:
            self.master.put_end(put, now)
        except StoreError:  # it took too long, and another put has replaced it
            self.results[put.key] = False
        else:
            self.results[put.key] = True
        # ANCHOR_END: writes

    def put(self, key: Hashable, size: int, now: int, number: int = 1) -> None:
        """Put an object, or note when to try again. One that exists, or that somebody else puts, is in the store."""
        raise NotImplementedError("Week 4 Day 6 Task 5: Writes.put - see book/src/week4-06-moving-kv.md#task-5")

    def advance(self, now: int) -> None:
        """Try again what is due by `now`."""
        raise NotImplementedError("Week 4 Day 6 Task 5: Writes.advance - see book/src/week4-06-moving-kv.md#task-5")
