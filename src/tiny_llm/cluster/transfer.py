# This file is yours to edit. Read book/src/week4-06-moving-kv.md.
"""Transfers between the memories of two processes: what is asked for, its slices, and which NICs may carry them.

Knows buffers, segments and lengths in bytes; not what the bytes mean. The words are Mooncake's.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Op(Enum):
    """READ copies from the remote segment, WRITE to it."""

    READ = "read"
    WRITE = "write"


class Status(Enum):
    """A transfer waits, then is done or has failed, and stays so."""

    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


class TransferRequest(NamedTuple):
    """Copy `length` bytes between the local `address` and `offset` in a segment of somebody else."""

    op: Op
    address: int
    segment: str
    offset: int
    length: int


class Slice(NamedTuple):
    """A part of a request: `length` bytes from byte `start` of it on."""

    request: TransferRequest
    start: int
    length: int


def slices_of(request: TransferRequest, size: int) -> list[Slice]:
    """The request in slices of `size` bytes, the last one of what is left; none where it asks for no bytes."""
    raise NotImplementedError("Week 4 Day 6 Task 2: slices_of - see book/src/week4-06-moving-kv.md#task-2")


# ANCHOR: transfer
@dataclass(eq=False)
class Transfer:
    """A request of batch number `batch` on its way.

    location: of its local buffer. pending: slices that no NIC has. flying: those that one has, by their start, with its
    name. lost: how often each slice was lost with a NIC.
    """

    request: TransferRequest
    batch: int
    location: str
    pending: deque[Slice]
    status: Status = Status.WAITING
    flying: dict[int, tuple[Slice, str]] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    # ANCHOR_END: transfer


@dataclass(frozen=True)
class Topology:
    """Which NICs reach the memory at each location: preferred ones, and others for when none of these is up."""

    preferred: Mapping[str, Sequence[str]]
    secondary: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def path(self, location: str, down: Collection[str]) -> list[str]:
        """The NICs to use for memory at `location` while those of `down` do not work; none where all are down."""
        raise NotImplementedError("Week 4 Day 6 Task 2: Topology.path - see book/src/week4-06-moving-kv.md#task-2")
