# This file is yours to edit. Read book/src/week4-06-moving-kv.md.
"""Batches of transfers over several NICs at once, cut into slices that any of them can carry.

Knows segments, slices and links. The caller brings the time with each call, and comes back at `next_time`. After
Mooncake's transfer engine (Qin et al., 2025).
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from .link import Link
from .segment import Buffer, Segment, covering
from .transfer import Slice, Status, Topology, Transfer, TransferRequest, slices_of

SLICE_BYTES = 64 * 1024


class TransferEngine:
    """Batches over `nics`.

    Each NIC carries up to `window` slices of each transfer, and takes the next one when one arrives: so a slow NIC
    carries less, and transfers share a NIC in equal parts. describe: asked once for each segment, then remembered.
    deliver: gets each slice when it arrives, once. ended: gets the batch of each transfer that is done or has failed.
    tries: a transfer has failed when one of its slices was lost with a NIC so often.
    """

    def __init__(
        self,
        nics: Mapping[str, Link],
        topology: Topology,
        describe: Callable[[str], Segment],
        deliver: Callable[[Slice], object] = lambda _: None,
        ended: Callable[[int], object] = lambda _: None,
        slice_bytes: int = SLICE_BYTES,
        window: int = 4,
        tries: int = 8,
    ):
        self.nics = nics
        self.topology = topology
        self.describe, self.deliver, self.ended = describe, deliver, ended
        self.slice_bytes, self.window, self.tries = slice_bytes, window, tries
        self.down: dict[str, None] = {}
        self.segments: dict[str, Segment] = {}
        self.buffers: list[Buffer] = []
        self._batches: dict[int, tuple[int, list[Transfer]]] = {}
        self._count = 0

    def register(self, buffer: Buffer) -> None:
        """Local memory that transfers may touch. Raises ValueError where it overlaps with another one."""
        if any(buffer.start < other.end and other.start < buffer.end for other in self.buffers):
            raise ValueError(f"memory {buffer.start} .. {buffer.end - 1} is registered already, at least in part")
        self.buffers.append(buffer)

    def open(self, name: str) -> Segment:
        """The description of a segment."""
        if name not in self.segments:
            self.segments[name] = self.describe(name)
        return self.segments[name]

    def learn(self, segment: Segment) -> None:
        """Remember a description that came another way: nobody is asked for it then."""
        self.segments[segment.name] = segment

    def invalidate(self, name: str) -> None:
        """Forget a description: its owner died, or has changed it."""
        self.segments.pop(name, None)

    def allocate(self, capacity: int) -> int:
        """A batch for up to `capacity` requests. Returns its number."""
        self._count += 1
        self._batches[self._count] = capacity, []
        return self._count

    def submit(self, batch: int, requests: Sequence[TransferRequest], now: int) -> None:
        """Begin all of them; nothing is said of their order.

        Raises ValueError, and begins none, where they do not fit into the batch, or memory is not registered.
        """
        self.advance(now)
        capacity, transfers = self._batches[batch]
        if len(transfers) + len(requests) > capacity:
            raise ValueError(f"batch {batch} has {len(transfers)} of {capacity} requests: {len(requests)} do not fit")
        new = []
        for request in requests:
            local = covering(self.buffers, request.address, request.length)
            remote = covering(self.open(request.segment).buffers, request.offset, request.length)
            if local is None or remote is None:
                side = f"local {request.address}" if local is None else f"{request.segment} {request.offset}"
                raise ValueError(f"memory {side} + {request.length} is not in one registered buffer")
            new.append(Transfer(request, batch, local.location, deque(slices_of(request, self.slice_bytes))))
        transfers += new
        for transfer in new:
            self.feed(transfer, now)

    def status(self, batch: int) -> list[Status]:
        """Of each request, in the order in which they were submitted."""
        return [transfer.status for transfer in self._batches[batch][1]]

    def free(self, batch: int) -> None:
        """End a batch. Raises ValueError while one of its requests waits: memory would be written that others own."""
        if Status.WAITING in self.status(batch):
            raise ValueError(f"batch {batch} has requests under way: wait until each is done or failed")
        del self._batches[batch]

    def next_time(self) -> int | None:
        """When the next slice arrives, in ns; None where none will."""
        return min((time for nic in self.nics.values() if (time := nic.next_time()) is not None), default=None)

    def advance(self, now: int) -> None:
        """Take all slices that arrive up to `now`, each at its time: deliver it, then feed its transfer."""
        raise NotImplementedError(
            "Week 4 Day 6 Task 2: TransferEngine.advance - see book/src/week4-06-moving-kv.md#task-2"
        )

    def fail_nic(self, name: str, now: int) -> None:
        """A NIC has failed: what it carried by `now`, ns, goes again, over another one."""
        raise NotImplementedError(
            "Week 4 Day 6 Task 2: TransferEngine.fail_nic - see book/src/week4-06-moving-kv.md#task-2"
        )

    def repair_nic(self, name: str, now: int) -> None:
        """A NIC works again, and takes its part."""
        self.advance(now)
        self.down.pop(name, None)
        for transfer in self.waiting():
            self.feed(transfer, now)

    def waiting(self) -> list[Transfer]:
        """The transfers that are neither done nor failed."""
        every = [transfer for _, transfers in self._batches.values() for transfer in transfers]
        return [transfer for transfer in every if transfer.status is Status.WAITING]

    def feed(self, transfer: Transfer, now: int) -> None:
        """Give each NIC of the path its next slices, the one with fewest first, or end the transfer."""
        raise NotImplementedError(
            "Week 4 Day 6 Task 2: TransferEngine.feed - see book/src/week4-06-moving-kv.md#task-2"
        )

    def end(self, transfer: Transfer, status: Status, now: int) -> None:
        """A transfer is done or has failed: nothing of it is under way any more."""
        for start, (_, nic) in transfer.flying.items():
            self.nics[nic].cancel((transfer, start), now)
        transfer.flying.clear()
        transfer.pending.clear()
        transfer.status = status
        self.ended(transfer.batch)
