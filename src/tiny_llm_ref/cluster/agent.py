"""Who moves blocks between two processes: descriptors of memory are exchanged once, requests carry block numbers only.

Knows block numbers and names; the engine below knows bytes. After NIXL, the mover of Dynamo.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .segment import Buffer, Segment, runs
from .transfer import Op, Status, TransferRequest
from .transfer_engine import TransferEngine


# ANCHOR: metadata
class Blocks(NamedTuple):
    """`count` blocks of `size` bytes behind each other, the first at address `start`."""

    start: int
    size: int
    count: int
    location: str = "cpu:0"

    def address(self, block: int) -> int:
        """Where a block begins. Raises ValueError for one that is not here."""
        if not 0 <= block < self.count:
            raise ValueError(f"block {block} is not one of {self.count}")
        return self.start + block * self.size

    @property
    def buffer(self) -> Buffer:
        """Its memory."""
        return Buffer(self.start, self.size * self.count, self.location)


class Metadata(NamedTuple):
    """What an agent tells another one, once: its name, and where its blocks are."""

    name: str
    blocks: Blocks
    # ANCHOR_END: metadata


@dataclass(eq=False)
class Handle:
    """A transfer that can be posted, again and again. batch: of the post under way, None before and after."""

    remote: str
    requests: tuple[TransferRequest, ...]
    message: str | None
    batch: int | None = None
    status: Status | None = None


class Agent:
    """One process's end.

    notify: gets (name of the target, message) when all data of a post has arrived, never before.
    """

    def __init__(self, name: str, engine: TransferEngine, blocks: Blocks, notify: Callable[[str, str], object]):
        self.name, self.engine, self.blocks, self.notify = name, engine, blocks, notify
        self.remotes: dict[str, Blocks] = {}
        self._posted: dict[Handle, None] = {}
        engine.register(blocks.buffer)

    def metadata(self) -> Metadata:
        """What other agents need to know."""
        return Metadata(self.name, self.blocks)

    def add_remote(self, metadata: Metadata) -> None:
        """Know another agent. Raises ValueError where its blocks have another size."""
        if metadata.blocks.size != self.blocks.size:
            raise ValueError(f"blocks of {metadata.name} have {metadata.blocks.size} bytes, not {self.blocks.size}")
        self.remotes[metadata.name] = metadata.blocks
        self.engine.learn(Segment(metadata.name, (metadata.blocks.buffer,)))

    def invalidate(self, name: str) -> None:
        """Forget an agent: it has died. No handle to it can be made or posted any more."""
        self.remotes.pop(name, None)
        self.engine.invalidate(name)

    def prepare(
        self, op: Op, local: Sequence[int], remote: Sequence[int], name: str, message: str | None = None
    ) -> Handle:
        """A handle that copies blocks between here and agent `name`, pair by pair. Neighbours on both sides go as one.

        Raises KeyError for an unknown agent, ValueError for blocks that do not exist, or not equally many.
        """
        there = self.remotes[name]
        size = self.blocks.size
        for blocks, numbers in ((self.blocks, local), (there, remote)):
            for block in numbers:  # each of them: a run may begin inside and end outside
                blocks.address(block)
        requests = tuple(
            TransferRequest(op, self.blocks.address(first), name, there.address(second), count * size)
            for first, second, count in runs(list(zip(local, remote, strict=True)))
        )
        return Handle(name, requests, message)

    def post(self, handle: Handle, now: int) -> None:
        """Begin. Raises ValueError while an earlier post is under way, KeyError where the other agent is gone."""
        if handle.batch is not None:
            raise ValueError(f"a transfer with {handle.remote} is under way: one post at a time")
        if handle.remote not in self.remotes:
            raise KeyError(f"agent {handle.remote} is unknown: it was never added, or it has died")
        batch = self.engine.allocate(len(handle.requests))
        self.engine.submit(batch, handle.requests, now)
        handle.batch, handle.status = batch, Status.WAITING
        self._posted[handle] = None
        self.advance(now)

    def advance(self, now: int) -> None:
        """Take what arrives up to `now`, and notify of posts that are done."""
        self.engine.advance(now)
        for handle in list(self._posted):
            found = self.engine.status(handle.batch)
            if Status.WAITING in found:
                continue
            handle.status = Status.FAILED if Status.FAILED in found else Status.DONE
            self.engine.free(handle.batch)
            handle.batch = None
            del self._posted[handle]
            if handle.message is not None and handle.status is Status.DONE:
                self.notify(handle.remote, handle.message)
