# This file is yours to edit. Read book/src/week4-04-kv-aware-routing.md.
"""From the caches of the workers to the index of a router: numbered events over a channel that may lose some.

Knows numbers, questions and answers; nothing of time or of the channel. Both ends are plain objects: whoever drives
them carries events, questions and answers between them, late, twice, in any order, or not at all.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .indexer import Change, PrefixIndex, Worker


# ANCHOR: messages
class Event(NamedTuple):
    """One change of a worker's cache. Numbers go up by 1 from 0."""

    number: int
    change: Change


class Question(NamedTuple):
    """What a router that missed something asks a worker.

    first: the number of the first event that it lacks; None for the whole tree.
    """

    first: int | None


class Events(NamedTuple):
    """The answer from the ring: all events from the first asked for to the newest."""

    events: tuple[Event, ...]


class Dump(NamedTuple):
    """The answer when they are no longer there: the whole cache.

    Its changes have no numbers: they are not events, and nothing counts them.
    last: the newest event that it covers.
    """

    last: int
    changes: tuple[Change, ...]


class TooNew(NamedTuple):
    """The answer where no event has such a number yet.

    last: the newest event, -1 before the first.
    """

    last: int


Answer = Events | Dump | TooNew
# ANCHOR_END: messages


class EventLog:
    """A worker's end: numbers its changes, and keeps the newest `capacity` of them.

    dump: changes that give an empty index all blocks of the cache as it is now, parents first. last: number of the
    newest event, -1 before the first. recent: the newest events, which stand in a row, the oldest first.
    """

    # ANCHOR: log
    def __init__(self, capacity: int, dump: Callable[[], Iterable[Change]]):
        self.last = -1
        self.dump = dump
        self.recent: deque[Event] = deque(maxlen=capacity)

    def publish(self, change: Change) -> Event:
        """Give the next number to a change. Returns the event to send."""
        self.last += 1
        event = Event(self.last, change)
        self.recent.append(event)
        return event

    # ANCHOR_END: log

    def answer(self, question: Question) -> Answer:
        """All events from `first` on if they are still here, or else the whole tree; `TooNew` for a number to come."""
        raise NotImplementedError(
            "Week 4 Day 4 Task 1: EventLog.answer - see book/src/week4-04-kv-aware-routing.md#task-1"
        )


# ANCHOR: cursor
@dataclass
class Cursor:
    """How far a router is with one worker.

    last: the newest event that is in the index, as all before it are.
    heard: the newest number that was heard of.
    complete: False from a block without its parent, whose event is not taken,
    until the whole tree has come.
    asked: the question that is out.
    """

    last: int = -1
    heard: int = -1
    complete: bool = True
    asked: Question | None = None
    # ANCHOR_END: cursor


class EventFeed:
    """A router's end: puts the events of each worker into an index, once each and in order; asks for those it lacks.

    Each worker has at most one question out. An event behind a gap is dropped: the answer brings it again. Who hears
    nothing cannot know that the last event was lost: so a worker tells its newest number now and then (`hear`).
    """

    def __init__(self, index: PrefixIndex):
        self.index = index
        self.cursors: dict[Worker, Cursor] = {}

    def add_worker(self, worker: Worker) -> None:
        """Discovery found a worker."""
        self.index.add_worker(worker)
        self.cursors[worker] = Cursor()

    def remove_worker(self, worker: Worker) -> None:
        """Discovery lost a worker: its blocks go, and events of it that still arrive change nothing."""
        del self.cursors[worker]
        self.index.remove_worker(worker)

    def match(self, names: Sequence[int], now: int) -> dict[Worker, int]:
        """Scores as those of `PrefixIndex.match`."""
        return self.index.match(names)

    def sent(self, worker: Worker, names: Sequence[int], now: int) -> None:
        """A prompt went to `worker`. Nothing to do: the worker will tell what it keeps."""

    # ANCHOR: feed
    def receive(self, worker: Worker, event: Event) -> Question | None:
        """Take an event. Returns what to ask the worker, None for nothing."""
        if (cursor := self.cursors.get(worker)) is None:
            return None
        self.take(worker, cursor, event)
        return self.missing(cursor)

    def hear(self, worker: Worker, number: int) -> Question | None:
        """A worker says that its newest event has this number.

        Returns what to ask it, None for nothing.
        """
        if (cursor := self.cursors.get(worker)) is None:
            return None
        cursor.heard = max(cursor.heard, number)
        return self.missing(cursor)

    def repeat(self, worker: Worker) -> Question | None:
        """The question that is out, to ask again: no answer came in time."""
        cursor = self.cursors.get(worker)
        return cursor.asked if cursor else None

    # ANCHOR_END: feed
    def take(self, worker: Worker, cursor: Cursor, event: Event) -> None:
        """Apply an event if it is the next one, and the index has the parent of its blocks."""
        raise NotImplementedError(
            "Week 4 Day 4 Task 1: EventFeed.take - see book/src/week4-04-kv-aware-routing.md#task-1"
        )

    def missing(self, cursor: Cursor) -> Question | None:
        """What to ask now, None for nothing: all is there that was heard of, or a question is out already.

        From the first event that is missing, or the whole tree after a block without its parent.
        """
        raise NotImplementedError(
            "Week 4 Day 4 Task 1: EventFeed.missing - see book/src/week4-04-kv-aware-routing.md#task-1"
        )

    def recover(self, worker: Worker, answer: Answer) -> Question | None:
        """Take an answer; it may be late, or come twice. Returns what to ask next, None for nothing.

        A tree that is older than the index changes nothing: blocks that were removed since would be there again.
        """
        raise NotImplementedError(
            "Week 4 Day 4 Task 1: EventFeed.recover - see book/src/week4-04-kv-aware-routing.md#task-1"
        )
