"""Two processes with real bytes and a package's transfer engine between them; a script of requests and faults."""

from collections.abc import Callable
from random import Random

SECOND = 10**9


class Bytes:
    """Memory here, from address `base` on, and in segment "peer"; NICs nic0, nic1, ... of `rates` bytes/s.

    slices: [time of arrival, address, first byte, length] in the order of their arrival.
    """

    def __init__(self, solution, size: int, rates: list[int], latency: int = 0, base: int = 0, **options):
        link, self.transfer, segment = (solution.module(f"cluster.{name}") for name in ("link", "transfer", "segment"))
        self.nics = {f"nic{i}": link.Link(rate, latency) for i, rate in enumerate(rates)}
        self.base, self.now = base, 0
        self.here, self.there = bytearray(Random(1).randbytes(size)), bytearray(Random(2).randbytes(size))
        self.asked: list[str] = []
        self.slices: list[list[int]] = []
        preferred = options.pop("preferred", list(self.nics))
        secondary = options.pop("secondary", [])
        topology = self.transfer.Topology({"cpu:0": preferred}, {"cpu:0": secondary})
        self.segment, self.buffer = segment.Segment, segment.Buffer
        engine = solution.module("cluster.transfer_engine").TransferEngine
        self.engine = engine(self.nics, topology, self.describe, deliver=self.deliver, **options)

    def describe(self, name: str):
        """What the engine asks when it opens a segment."""
        self.asked.append(name)
        return self.segment(name, (self.buffer(0, len(self.there)),))

    def deliver(self, piece) -> None:
        """Copy the bytes of a slice."""
        request, start, length = piece
        self.slices.append([self.now, request.address, start, length])
        a, b = request.address - self.base + start, request.offset + start
        if request.op is self.transfer.Op.READ:
            self.here[a : a + length] = self.there[b : b + length]
        else:
            self.there[b : b + length] = self.here[a : a + length]

    def request(self, address: int, offset: int, length: int, op: str = "READ"):
        """A request between here and there."""
        return self.transfer.TransferRequest(self.transfer.Op[op], address, "peer", offset, length)

    def run(self, advance: Callable[[int], object], until: int = 10**18) -> int:
        """Come back at each `next_time` up to `until`. Returns the last of them, in ns."""
        last = 0
        while (time := self.engine.next_time()) is not None and time <= until:
            last = self.now = time
            advance(time)
        return last
