# This file is yours to edit. Read book/src/week3-06-overlap.md.
"""Streams and events in virtual time: what CUDA promises about order, and nothing more, reproducibly.

Time is in whole nanoseconds. One CPU enqueues ops on streams and goes on; a stream runs its ops one after another.
What an op does to data happens when it ends. So a missing dependency gives a wrong value, and the same one each time.
Knows durations and order; not what the ops compute.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

CPU = "cpu"
_T = TypeVar("_T")


class NotReadyError(RuntimeError):
    """The time of an event was asked for that has not happened yet."""


@dataclass(eq=False)
class Stream:
    """A queue of ops. free: when all that was enqueued so far is done. blocking: ordered with the default stream."""

    name: str
    blocking: bool = False
    free: int = 0


@dataclass(eq=False)
class Event:
    """A marker in a stream. time: when its latest record is reached, None before the first. timing: can be measured."""

    name: str
    timing: bool = True
    time: int | None = None


class Op(NamedTuple):
    """What ran when: on a stream, or on the CPU."""

    name: str
    track: str
    start: int
    end: int


# ANCHOR: call
class Call(NamedTuple):
    """One line of a device's log, in the order of the calls.

    It is enough to tell what is ordered with what.
    kind: "access": op `name` of stream `who` ("cpu": the host) reads and writes buffers;
    "record": the event `name` now stands for all that stream `who` was given so far;
    "wait": what `who` does from now on comes after the latest record of event `name`.
    """

    kind: str
    who: str
    name: str
    reads: tuple[Hashable, ...] = ()
    writes: tuple[Hashable, ...] = ()


# ANCHOR_END: call


class Device:
    """One CPU timeline and the streams that it feeds.

    launch_cost: CPU time of a launch. poll_cost: CPU time of a query; without it a loop of queries would not end.
    now: the CPU's clock. ops: all that ran or will run. log: the calls, for `find_hazards`.
    """

    def __init__(self, launch_cost: int = 0, poll_cost: int = 100):
        self.launch_cost, self.poll_cost = launch_cost, poll_cost
        self.now = 0
        self.default = Stream("default")
        self.streams = [self.default]
        self.events = 0
        self.engines: dict[str, int] = {}
        self.effects: list[tuple[int, int, Callable[[], object]]] = []
        self.ops: list[Op] = []
        self.log: list[Call] = []

    def stream(self, name: str, blocking: bool = False) -> Stream:
        """Make a stream. Raises ValueError for a name in use."""
        if name in {CPU, *(stream.name for stream in self.streams)}:
            raise ValueError(f"there is a stream {name!r} already: give each one its own name")
        self.streams.append(Stream(name, blocking))
        return self.streams[-1]

    def event(self, name: str = "event", timing: bool = True) -> Event:
        """Make an event; its name becomes unique."""
        self.events += 1
        return Event(f"{name} {self.events}", timing)

    def advance(self, time: int, name: str = "") -> None:
        """Let the CPU's clock reach `time`; it never goes back. What ends until then takes effect, in order of its end.

        Among equal ends, and so within a stream, the order is that of the launches. With a name, the time is entered in
        `ops` as spent on the CPU, if it is more than 0.
        """
        raise NotImplementedError("Week 3 Day 6 Task 1: Device.advance - see book/src/week3-06-overlap.md#task-1")

    def host(
        self,
        name: str,
        duration: int = 0,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
        effect: Callable[[], _T] = lambda: None,
    ) -> _T:
        """Work on the CPU itself, which takes effect when it ends. Returns what `effect` returns."""
        raise NotImplementedError("Week 3 Day 6 Task 1: Device.host - see book/src/week3-06-overlap.md#task-1")

    def launch(
        self,
        stream: Stream,
        name: str,
        duration: int,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
        effect: Callable[[], object] | None = None,
        engine: str | None = None,
    ) -> Op:
        """Enqueue an op, and return at once: only the CPU's launch cost passes.

        It starts when the call has returned, all that was in the stream before is done, and what the stream waits for
        has happened. engine: a unit that runs one op at a time, in the order of the launches, whatever their streams: a
        copy engine, or all cores. An op on the default stream comes after all earlier ops of blocking streams, and
        theirs come after its.
        Raises ValueError for a negative duration.
        """
        raise NotImplementedError("Week 3 Day 6 Task 1: Device.launch - see book/src/week3-06-overlap.md#task-1")

    def copy(self, stream: Stream, name: str, duration: int, *, engine: str, pinned: bool = True, **access) -> Op:
        """A copy between host and device. From or to pageable memory the CPU waits until it is done."""
        op = self.launch(stream, name, duration, engine=engine, **access)
        if not pinned:
            self.synchronize_stream(stream)
        return op

    def record(self, event: Event, stream: Stream) -> None:
        """Let `event` stand for all that the stream was given so far. An earlier record of it is forgotten."""
        raise NotImplementedError("Week 3 Day 6 Task 1: Device.record - see book/src/week3-06-overlap.md#task-1")

    def wait(self, stream: Stream, event: Event) -> None:
        """Let what the stream is given from now on wait for the latest record of `event`; a later one changes nothing.

        The CPU does not wait. Without a record there is nothing to wait for.
        """
        raise NotImplementedError("Week 3 Day 6 Task 1: Device.wait - see book/src/week3-06-overlap.md#task-1")

    def query(self, event: Event) -> bool:
        """Whether the latest record of `event` has been reached once the query is over. True without a record."""
        raise NotImplementedError("Week 3 Day 6 Task 1: Device.query - see book/src/week3-06-overlap.md#task-1")

    def synchronize(self, event: Event) -> None:
        """Let the CPU wait for the latest record of `event`; without a record it goes on."""
        raise NotImplementedError("Week 3 Day 6 Task 1: Device.synchronize - see book/src/week3-06-overlap.md#task-1")

    def synchronize_stream(self, stream: Stream) -> None:
        """Let the CPU wait for all that the stream was given."""
        self.synchronize(self.marker(stream))

    def synchronize_device(self) -> None:
        """Let the CPU wait for all streams."""
        for stream in self.streams:
            self.synchronize_stream(stream)

    def elapsed(self, start: Event, end: Event) -> float:
        """Milliseconds from one event to another.

        Raises ValueError where one was not recorded or has no timing, else NotReadyError where one was not reached.
        """
        raise NotImplementedError("Week 3 Day 6 Task 1: Device.elapsed - see book/src/week3-06-overlap.md#task-1")

    def marker(self, stream: Stream) -> Event:
        """An event for all that the stream was given so far."""
        event = self.event(stream.name)
        self.record(event, stream)
        return event

    def ordered_with(self, stream: Stream) -> list[Stream]:
        """The streams whose earlier ops an op of `stream` comes after without being told to."""
        if stream is self.default:
            return [other for other in self.streams if other.blocking]
        return [self.default] if stream.blocking else []
