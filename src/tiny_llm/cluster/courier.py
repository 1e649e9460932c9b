"""Moves bytes between the workers of a simulation, over the NICs of one of them, and calls back at the end."""

from collections import deque
from collections.abc import Callable, Mapping

from .alarm import Alarm
from .kernel import Phase, Simulation
from .link import Link
from .segment import Buffer, Segment
from .transfer import Op, Status, Topology, TransferRequest
from .transfer_engine import TransferEngine

EVERYTHING = Buffer(0, 1 << 62)
"""A simulation asks how long bytes take, not where they lie."""


class Courier:
    """One worker's end, with the NICs that all its transfers share.

    slice_bytes: by default a transfer is one slice: one event, over the NIC that carries least. With several NICs take
    about a quarter of a usual transfer for each of them. window: slices that a NIC holds of each transfer: few, so that
    a slow NIC carries less; with many, all slices are dealt out at once, and the slowest NIC is waited for.
    """

    def __init__(
        self, sim: Simulation, nics: Mapping[str, Link], slice_bytes: int = EVERYTHING.length, window: int = 1
    ):
        self.sim = sim
        topology = Topology({EVERYTHING.location: list(nics)})
        self._ended: deque[int] = deque()
        self.engine = TransferEngine(
            nics,
            topology,
            lambda name: Segment(name, (EVERYTHING,)),
            ended=self._ended.append,
            slice_bytes=slice_bytes,
            window=window,
        )
        self.engine.register(EVERYTHING)
        self._alarm = Alarm(sim, self.engine.next_time, self._ring)
        self._calls: dict[int, Callable[[bool], object]] = {}

    def move(self, op: Op, peer: str, size: int, done: Callable[[bool], object]) -> None:
        """Move `size` bytes from (READ) or to (WRITE) `peer`; then call `done(whether all of them arrived)`."""
        batch = self.engine.allocate(1)
        self._calls[batch] = done
        self.engine.submit(batch, [TransferRequest(op, 0, peer, 0, size)], self.sim.now)
        self._changed()

    def set_rate(self, nic: str, bytes_per_s: int) -> None:
        """A NIC goes on at another rate; at 0 what it carries waits."""
        self.engine.nics[nic].set_rate(bytes_per_s, self.sim.now)
        self._changed()

    def fail_nic(self, nic: str) -> None:
        """A NIC has failed. Others carry what it had; with none left, transfers fail."""
        self.engine.fail_nic(nic, self.sim.now)
        self._changed()

    def repair_nic(self, nic: str) -> None:
        """A NIC works again."""
        self.engine.repair_nic(nic, self.sim.now)
        self._changed()

    def _changed(self) -> None:
        """Nobody is called back while he calls: what has ended at once is told in an event of its own."""
        if self._ended:
            self.sim.at(self.sim.now, Phase.TRANSFER_DONE, self._tell)
        self._alarm.set()

    def _ring(self, now: int) -> None:
        self.engine.advance(now)
        self._tell()

    def _tell(self) -> None:
        while self._ended:
            batch = self._ended.popleft()
            (status,) = self.engine.status(batch)
            self.engine.free(batch)
            self._calls.pop(batch)(status is Status.DONE)
