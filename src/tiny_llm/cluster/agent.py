# This file is yours to edit. Read book/src/week4-06-moving-kv.md.
"""Who moves blocks between two processes: descriptors of memory are exchanged once, requests carry block numbers only.

Knows block numbers and names; the engine below knows bytes. After NIXL, the mover of Dynamo.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .segment import Buffer
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
        raise NotImplementedError("Week 4 Day 6 Task 3: Agent.add_remote - see book/src/week4-06-moving-kv.md#task-3")

    def invalidate(self, name: str) -> None:
        """Forget an agent: it has died. No handle to it can be made or posted any more."""
        raise NotImplementedError("Week 4 Day 6 Task 3: Agent.invalidate - see book/src/week4-06-moving-kv.md#task-3")

    def prepare(
        self, op: Op, local: Sequence[int], remote: Sequence[int], name: str, message: str | None = None
    ) -> Handle:
        """A handle that copies blocks between here and agent `name`, pair by pair. Neighbours on both sides go as one.

        Raises KeyError for an unknown agent, ValueError for blocks that do not exist, or not equally many.
        """
        raise NotImplementedError("Week 4 Day 6 Task 3: Agent.prepare - see book/src/week4-06-moving-kv.md#task-3")

    def post(self, handle: Handle, now: int) -> None:
        """Begin. Raises ValueError while an earlier post is under way, KeyError where the other agent is gone."""
        raise NotImplementedError("Week 4 Day 6 Task 3: Agent.post - see book/src/week4-06-moving-kv.md#task-3")

    def advance(self, now: int) -> None:
        """Take what arrives up to `now`, and notify of posts that are done."""
        raise NotImplementedError("Week 4 Day 6 Task 3: Agent.advance - see book/src/week4-06-moving-kv.md#task-3")
